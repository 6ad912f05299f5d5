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
export function checkPem(path: string, label: string): string | undefined {
  let text: string
  try {
    text = readFileSync(path, 'latin1')
  } catch (error) {
    return `${path} ${fileReason(error)}`
  }
  return new RegExp(`-----BEGIN (?:[A-Z]+ )*${label}-----`).test(text) ? undefined : `${path} has no "BEGIN ${label}" block`
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
  let altNames: string
  try {
    altNames = new X509Certificate(readFileSync(path)).subjectAltName ?? ''
  } catch {
    return []
  }
  return altNames
    .split(', ')
    .filter((entry) => entry.startsWith('DNS:'))
    .map((entry) => entry.slice(4).toLowerCase())
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
