import { createPrivateKey, X509Certificate } from 'node:crypto'
import { accessSync, constants, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EACCES: 'may not be read by this user',
  EISDIR: 'is a folder',
  ENOTDIR: 'lies below something that is not a folder',
}

/** The operating system's error in words; never the whole message, which repeats the path and the call. */
export function fileReason(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
  return reasons[code] ?? `cannot be used (${code})`
}

/** What is wrong with the PEM file at `path`, or undefined. */
export function checkPem(path: string, label: 'CERTIFICATE' | 'PRIVATE KEY'): string | undefined {
  let text: string
  try {
    text = readFileSync(path, 'latin1')
  } catch (error) {
    return `${path} ${fileReason(error)}`
  }
  const begins = text.match(new RegExp(`-----BEGIN (?:[A-Z0-9]+ )*${label}-----`, 'g'))?.length ?? 0
  if (begins === 0) return `${path} has no "BEGIN ${label}" block`
  // A key is read together with its certificate.
  if (label === 'PRIVATE KEY') return undefined
  const blocks = certificateBlocks(text)
  const broken = blocks.length < begins ? blocks.length : blocks.findIndex((block) => readCertificate(block) === undefined)
  if (broken < 0) return undefined
  return `${begins === 1 ? 'the certificate' : `certificate ${broken + 1} of ${begins}`} in ${path} is damaged`
}

/** The certificates in a PEM text, in its order. */
function certificateBlocks(text: string): string[] {
  return text.match(/-----BEGIN ((?:[A-Z0-9]+ )*CERTIFICATE)-----[^-]*-----END \1-----/g) ?? []
}

function readCertificate(pem: string | Buffer): X509Certificate | undefined {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

/** What is wrong with this pair of files, or undefined; unreadable ones were reported before. */
export function checkCertificate(certPath: string, keyPath: string): string | undefined {
  if (checkPem(certPath, 'CERTIFICATE') !== undefined || checkPem(keyPath, 'PRIVATE KEY') !== undefined) return undefined
  try {
    const certificate = new X509Certificate(readFileSync(certPath))
    if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(keyPath)))) return `the private key of the certificate ${certPath}`
  } catch (error) {
    return `a private key and certificate OpenSSL can read, but it says: ${(error as Error).message}`
  }
  return undefined
}

/** The DNS names a certificate is for, lower case; empty if it cannot be read. */
export function certificateNames(path: string): string[] {
  return (firstCertificate(path)?.subjectAltName ?? '')
    .split(', ')
    .filter((entry) => entry.startsWith('DNS:'))
    .map((entry) => entry.slice(4).toLowerCase())
}

/** The same for two files of the same certificate, and for no others; undefined if it cannot be read. */
export function certificateIdentity(path: string): string | undefined {
  return firstCertificate(path)?.fingerprint256
}

function firstCertificate(path: string): X509Certificate | undefined {
  try {
    return new X509Certificate(readFileSync(path))
  } catch {
    return undefined
  }
}

/**
 * What is wrong with the dates of the certificates at `path`, or undefined. `need` `every`: all must
 * be valid at `now` (ms since 1970), as in a chain; `some`: one is enough, as among authorities.
 */
export function checkDates(path: string, need: 'every' | 'some', now: number): string | undefined {
  let text: string
  try {
    text = readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
  const blocks = certificateBlocks(text)
  const problems = blocks.map((block, index) => {
    const certificate = readCertificate(block)
    if (certificate === undefined) return undefined
    const which = blocks.length === 1 ? 'the certificate' : `certificate ${index + 1} of ${blocks.length}`
    const { validFromDate, validToDate } = certificate
    if (validToDate.getTime() < now) return `${which} in ${path} expired on ${dateInWords(validToDate)}`
    if (validFromDate.getTime() > now) return `${which} in ${path} is not valid before ${dateInWords(validFromDate)}`
    return undefined
  })
  return need === 'some' && problems.includes(undefined) ? undefined : problems.find((problem) => problem !== undefined)
}

/** `2026-01-02 03:04 UTC`. */
function dateInWords(date: Date): string {
  return `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** Why a log file cannot be written at `path`, or undefined. */
export function checkWritable(path: string): string | undefined {
  try {
    if (statSync(path).isDirectory()) return `${path} is a folder`
    accessSync(path, constants.W_OK)
    return undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return `${path} may not be written by this user`
  }
  try {
    accessSync(dirname(path), constants.W_OK)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES'
      ? `${dirname(path)} may not be written by this user`
      : `the folder ${dirname(path)} ${fileReason(error)}`
  }
}
