import { isAuthority, isPath, isToken, noLength, UsageError, type Fields, type Head } from '../http/index.ts'
import { FieldEncoder, fieldsSize, writeText } from './encoder.ts'
import { Framing } from './message.ts'
import type { SendQueue } from './send-queue.ts'
import { withoutHandshake } from './upgrade.ts'

/** Encodes the fields of all requests; holds the facts about the section written last. */
export const requestFields: FieldEncoder = new FieldEncoder()

/** Request line without method and target, `host: `, and all lines the engine adds. */
const extras = 256

/**
 * Queues a request head and returns the framing it announces; the declared length is then in
 * `requestFields.contentLength`. `key`: of a WebSocket handshake, or empty.
 * `proxyAuthorization`: written unless `head` has that field, or empty. Throws UsageError, having
 * queued nothing, for what cannot go on the wire.
 */
export function writeRequestHead(
  queue: SendQueue,
  head: Head,
  end: boolean,
  close: boolean,
  absoluteForm: boolean,
  key: string,
  proxyAuthorization: string,
): Framing {
  const tunnel = head.method === 'CONNECT'
  const upgrade = tunnel ? head.protocol : ''
  checkTarget(head, upgrade)
  const method = upgrade === '' ? head.method : 'GET'
  const target = requestTarget(head, tunnel && upgrade === '', absoluteForm)
  let { fields } = head
  if (upgrade !== '') fields = withoutHandshake(fields, 'sec-websocket-key')
  fields = withJoinedCookies(fields)

  const size = method.length + target.length + head.authority.length + fieldsSize(fields) + upgrade.length + key.length
  queue.reserve(size + proxyAuthorization.length + extras)
  const { buffer } = queue
  let at = writeText(buffer, queue.limit, method)
  buffer[at++] = 0x20
  at = writeText(buffer, at, target)
  // RFC 9110 §7.2: Host first, because it is what servers look for first.
  at = writeText(buffer, at, ' HTTP/1.1\r\nhost: ')
  at = writeText(buffer, at, head.authority)
  buffer[at++] = 0x0d
  buffer[at++] = 0x0a
  // RFC 9110 §9.3.6: CONNECT has no content, and so no length.
  at = requestFields.write(fields, buffer, at, tunnel)
  let framing: Framing = Framing.None
  const length = requestFields.contentLength
  if (tunnel) {
    framing = Framing.Tunnel
  } else if (length !== noLength) {
    if (end && length > 0) throw new UsageError('content-length without content')
    framing = Framing.Length
  } else if (!end) {
    framing = Framing.Chunked
    at = writeText(buffer, at, 'transfer-encoding: chunked\r\n')
  } else if (method === 'POST' || method === 'PUT' || method === 'PATCH') {
    // RFC 9110 §8.6: these methods anticipate content, so its absence is said.
    at = writeText(buffer, at, 'content-length: 0\r\n')
  }
  at = writeConnection(buffer, at, upgrade, close || requestFields.close, requestFields.te)
  if (key !== '') {
    at = writeText(buffer, at, `sec-websocket-key: ${key}\r\n`)
    if (!fields.includes('sec-websocket-version')) at = writeText(buffer, at, 'sec-websocket-version: 13\r\n')
  }
  if (proxyAuthorization !== '' && !fields.includes('proxy-authorization')) {
    // RFC 9110 §11.7.2: for the proxy we are connected to, whoever made the head.
    at = writeText(buffer, at, `proxy-authorization: ${proxyAuthorization}\r\n`)
  }
  buffer[at++] = 0x0d
  buffer[at++] = 0x0a
  queue.commit(at)
  return framing
}

function writeConnection(buffer: Buffer, at: number, upgrade: string, close: boolean, te: boolean): number {
  // RFC 9110 §10.1.4: TE is the connection's, so Connection names it.
  if (upgrade !== '') return writeText(buffer, at, `connection: upgrade${te ? ', te' : ''}\r\nupgrade: ${upgrade}\r\n`)
  if (!close && !te) return at
  return writeText(buffer, at, close ? (te ? 'connection: close, te\r\n' : 'connection: close\r\n') : 'connection: te\r\n')
}

let checkedMethod = 'GET'
let checkedAuthority = ''

/** Throws UsageError for a request line that could not be told from something else. */
function checkTarget(head: Head, upgrade: string): void {
  const { method, authority, path } = head
  // The ones before are the likeliest, and equal strings are compared faster than checked.
  if (method !== checkedMethod) {
    if (!isToken(method)) throw new UsageError(`invalid method ${JSON.stringify(method)}`)
    checkedMethod = method
  }
  if (authority !== checkedAuthority) {
    if (!isAuthority(authority)) throw new UsageError(`invalid authority ${JSON.stringify(authority)}`)
    checkedAuthority = authority
  }
  if (method === 'CONNECT' && upgrade === '') {
    // RFC 9112 §3.2.3: with the port.
    if (path !== '' || !/:\d+$/.test(authority)) throw new UsageError('CONNECT takes a host and port, and no path')
  } else if (!isPath(path) && !(path === '*' && method === 'OPTIONS')) {
    throw new UsageError(`invalid path ${JSON.stringify(path)}`)
  }
  if (upgrade !== '' && !isToken(upgrade)) throw new UsageError(`invalid protocol ${JSON.stringify(upgrade)}`)
}

function requestTarget(head: Head, authorityForm: boolean, absoluteForm: boolean): string {
  if (authorityForm) return head.authority
  if (!absoluteForm) return head.path
  // RFC 9112 §3.2.4: "*" has no place in absolute-form; the last proxy makes it from the missing path.
  return `${head.scheme}://${head.authority}${head.path === '*' ? '' : head.path}`
}

/** RFC 9113 §8.2.3: the crumbs of Cookie become one line before they leave HTTP/2. */
function withJoinedCookies(fields: Fields): Fields {
  let crumbs = 0
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === 'cookie') crumbs++
  if (crumbs < 2) return fields
  const joined: string[] = []
  let cookieAt = -1
  for (let i = 0; i < fields.length; i += 2) {
    const value = fields[i + 1] as string
    if (fields[i] !== 'cookie') {
      joined.push(fields[i] as string, value)
    } else if (cookieAt < 0) {
      cookieAt = joined.length + 1
      joined.push('cookie', value)
    } else if (value !== '') {
      joined[cookieAt] = joined[cookieAt] === '' ? value : `${joined[cookieAt]}; ${value}`
    }
  }
  return joined
}
