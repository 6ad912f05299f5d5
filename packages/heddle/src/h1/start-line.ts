import { latin1Slice } from '../bytes/index.ts'
import { isAuthority, isPath, ProtocolError, targetTable, tokenTable, valueTable } from '../http/index.ts'

/** The four forms of a request target (RFC 9112 §3.2). */
export const TargetForm = { Origin: 0, Absolute: 1, Authority: 2, Asterisk: 3 } as const
export type TargetForm = (typeof TargetForm)[keyof typeof TargetForm]

/** A parsed and validated request line. Immutable; shared by the line cache. */
export class RequestLine {
  readonly method: string
  readonly form: TargetForm
  /** Path and query; `*` in asterisk-form; empty in authority-form. */
  readonly path: string
  /** From absolute-form and authority-form; otherwise empty and Host decides. */
  readonly authority: string
  /** 0 for HTTP/1.0, 1 for HTTP/1.1 and later minor versions. */
  readonly minor: number
  /** False: the target may hold a secret (it has a query). */
  readonly cacheable: boolean

  constructor(method: string, form: TargetForm, path: string, authority: string, minor: number) {
    this.method = method
    this.form = form
    this.path = path
    this.authority = authority
    this.minor = minor
    this.cacheable = !path.includes('?')
  }
}

/** A parsed and validated status line. Immutable; shared by the line cache. */
export class StatusLine {
  readonly status: number
  /** 0 for HTTP/1.0, 1 for HTTP/1.1 and later minor versions. */
  readonly minor: number

  constructor(status: number, minor: number) {
    this.status = status
    this.minor = minor
  }
}

const space = 0x20
const slash = 0x2f
const numberSign = 0x23

/** Reads the request line `buffer[start, limit)`, its CRLF not included (RFC 9112 §3), or says what is wrong with it. */
export function readRequestLine(buffer: Uint8Array, start: number, limit: number): RequestLine | ProtocolError {
  let at = start
  while (at < limit && tokenTable[buffer[at] as number] !== 0) at++
  // RFC 9112 §3: a single space between the parts; lenient parsing is what smuggling feeds on.
  if (at === start || at === limit || buffer[at] !== space) return new ProtocolError('malformed method')
  const method = readMethod(buffer, start, at)

  const targetStart = ++at
  let sound = true
  for (; at < limit && buffer[at] !== space; at++) if (targetTable[buffer[at] as number] === 0 || buffer[at] === numberSign) sound = false
  if (at === limit) return new ProtocolError('request line without a version')
  if (at === targetStart) return new ProtocolError('empty request target')
  const target = latin1Slice(buffer, targetStart, at)

  const minor = readVersion(buffer, at + 1, limit)
  if (minor === otherMajor) return new ProtocolError('unsupported HTTP version', 505)
  if (minor === malformed) return new ProtocolError('malformed HTTP version')
  // Origin-form, by far the most frequent: a path and query of sound octets.
  if (sound && buffer[targetStart] === slash && method !== 'CONNECT') return new RequestLine(method, TargetForm.Origin, target, '', minor)
  return readTarget(method, target, minor)
}

const methods = ['GET', 'POST', 'PUT', 'HEAD', 'DELETE', 'PATCH', 'OPTIONS'].map((text) => ({ text, bytes: Buffer.from(text, 'latin1') }))

/** A token as a string; no new one for the usual methods. */
function readMethod(buffer: Uint8Array, start: number, limit: number): string {
  for (const { text, bytes } of methods) {
    if (bytes.length !== limit - start) continue
    let i = 0
    while (i < bytes.length && bytes[i] === buffer[start + i]) i++
    if (i === bytes.length) return text
  }
  return latin1Slice(buffer, start, limit)
}

function readTarget(method: string, target: string, minor: number): RequestLine | ProtocolError {
  // RFC 9112 §3.2.3: CONNECT takes authority-form, with the port, and only CONNECT does.
  if (method === 'CONNECT') {
    if (!isAuthority(target) || !hasPort.test(target)) return new ProtocolError('malformed CONNECT target')
    return new RequestLine(method, TargetForm.Authority, '', target, minor)
  }
  if (target === '*') {
    // RFC 9112 §3.2.4
    if (method !== 'OPTIONS') return new ProtocolError('asterisk-form without OPTIONS')
    return new RequestLine(method, TargetForm.Asterisk, '*', '', minor)
  }
  const parts = absoluteForm.exec(target)
  if (parts === null) return new ProtocolError('malformed request target')
  const authority = parts[1] as string
  // RFC 9110 §4.2.4: user information in a target is an error (isAuthority knows no "@").
  if (!isAuthority(authority)) return new ProtocolError('malformed authority in the request target')
  let path = parts[2] as string
  // RFC 9112 §3.2.4: OPTIONS for a URI without a path means "*"; RFC 9110 §4.2.3: else an empty path is "/".
  if (path === '') path = method === 'OPTIONS' ? '*' : '/'
  else if (path.startsWith('?')) path = `/${path}`
  if (path !== '*' && !isPath(path)) return new ProtocolError('malformed request target')
  return new RequestLine(method, TargetForm.Absolute, path, authority, minor)
}

const hasPort = /:\d+$/
const absoluteForm = /^https?:\/\/([^/?#]*)(.*)$/i

/** Reads the status line `buffer[start, limit)`, its CRLF not included (RFC 9112 §4), or says what is wrong with it. */
export function readStatusLine(buffer: Uint8Array, start: number, limit: number): StatusLine | ProtocolError {
  const minor = limit - start < 12 ? malformed : readVersion(buffer, start, start + 8)
  if (minor < 0) return new ProtocolError('malformed status line or unsupported version', 0)
  let status = 0
  for (let i = start + 9; i < start + 12; i++) {
    const digit = (buffer[i] as number) - 0x30
    if (digit < 0 || digit > 9) return new ProtocolError('malformed status code', 0)
    status = status * 10 + digit
  }
  // RFC 9110 §15: three digits, the first 1 to 5. The space before an absent reason phrase is often
  // left out by servers, and its absence is harmless.
  if (status < 100 || status > 599 || buffer[start + 8] !== space || (limit > start + 12 && buffer[start + 12] !== space)) {
    return new ProtocolError('malformed status line', 0)
  }
  for (let i = start + 13; i < limit; i++) {
    if (valueTable[buffer[i] as number] === 0) return new ProtocolError('forbidden octet in a reason phrase', 0)
  }
  return new StatusLine(status, minor)
}

const malformed = -1
const otherMajor = -2
const versionStart = [0x48, 0x54, 0x54, 0x50, 0x2f]

/** `HTTP/d.d` (RFC 9112 §2.3), all of `buffer[start, limit)`: 0 for 1.0, 1 for other 1.x, or a negative number. */
function readVersion(buffer: Uint8Array, start: number, limit: number): number {
  if (limit - start !== 8) return malformed
  for (let i = 0; i < 5; i++) if (buffer[start + i] !== versionStart[i]) return malformed
  const major = (buffer[start + 5] as number) - 0x30
  const minor = (buffer[start + 7] as number) - 0x30
  if (major < 0 || major > 9 || minor < 0 || minor > 9 || buffer[start + 6] !== 0x2e) return malformed
  if (major !== 1) return otherMajor
  // RFC 9110 §2.5: a higher minor version is processed as the highest one we know.
  return minor === 0 ? 0 : 1
}
