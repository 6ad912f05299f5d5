import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import {
  connect,
  createSecureContext,
  type ConnectionOptions,
  type PeerCertificate,
  type SecureContext,
  type SecureVersion,
  type TLSSocket,
} from 'node:tls'
import { checkOptionNames, NetworkError, type HeddleError, type OptionNames } from '../http/index.ts'
import { clientProtocols } from './alpn.ts'
import { describe } from './errors.ts'
import { keylogWanted, writeKeylog } from './keylog.ts'
import { checkNotEmpty, checkPem, given, identityNames, type Pem } from './tls-identity.ts'

/** TLS towards a server. Keep one object for one set of options: contexts are cached by its identity. */
export interface TlsClientOptions {
  /** Server name for SNI and for the certificate check. Default: the target's host. */
  readonly servername?: string | undefined
  /** ALPN protocols, best first. Default `['http/1.1']`. Empty: no ALPN. */
  readonly alpn?: readonly string[] | undefined
  /** Certificates to trust instead of Node's. */
  readonly ca?: Pem | readonly Pem[] | undefined
  /** Client certificate (PEM) and its key. */
  readonly cert?: Pem | readonly Pem[] | undefined
  readonly key?: Pem | readonly Pem[] | undefined
  readonly pfx?: Uint8Array | undefined
  readonly passphrase?: string | undefined
  /** False accepts any certificate. Default true. */
  readonly rejectUnauthorized?: boolean | undefined
  /** In place of `tls.checkServerIdentity`. */
  readonly checkServerIdentity?: ((host: string, certificate: PeerCertificate) => Error | undefined) | undefined
  readonly minVersion?: SecureVersion | undefined
  readonly maxVersion?: SecureVersion | undefined
  readonly ciphers?: string | undefined
  /** Gets each line of NSS key log. The environment's SSLKEYLOGFILE is obeyed besides. */
  readonly keylog?: ((line: Uint8Array) => void) | undefined
  /** Sessions kept for resumption. Give each set of certificates and checks its own: a resumed session is not verified again. */
  readonly sessions?: TlsSessions | undefined
}

/** Sessions kept for one name: a server gives two or more tickets at a time, and each opens one connection. */
const sessionsPerName = 4

/** TLS sessions for resumption, each used once (RFC 8446 appendix C.4: reuse would let observers link connections). */
export class TlsSessions {
  readonly #most: number
  readonly #names = new Map<string, Buffer[]>()

  /** `most`: names kept; the one that got no session for longest goes first. Default 100. */
  constructor(most = 100) {
    this.#most = most
  }

  /** Keeps a session of `name`. */
  put(name: string, session: Buffer): void {
    const sessions = this.#names.get(name) ?? []
    sessions.push(session)
    if (sessions.length > sessionsPerName) sessions.shift()
    this.#names.delete(name)
    this.#names.set(name, sessions)
    if (this.#names.size <= this.#most) return
    const [oldest] = this.#names.keys()
    if (oldest !== undefined) this.#names.delete(oldest)
  }

  /** Takes the newest session of `name` out. */
  take(name: string): Buffer | undefined {
    const sessions = this.#names.get(name)
    const session = sessions?.pop()
    if (sessions?.length === 0) this.#names.delete(name)
    return session
  }
}

// Making a context parses certificates and costs up to milliseconds; the same options give the same one.
const contexts = new WeakMap<TlsClientOptions, SecureContext>()

const optionNames: OptionNames<TlsClientOptions> = {
  ...identityNames,
  servername: true,
  alpn: true,
  rejectUnauthorized: true,
  checkServerIdentity: true,
  keylog: true,
  sessions: true,
}

/**
 * Throws UsageError for options that are unknown, for an empty `ca`, which Node would take for its own, and for what is no PEM.
 * `face` says who is asked.
 */
export function checkTlsClientOptions(face: string, options: TlsClientOptions): void {
  checkOptionNames(face, 'tls', options, optionNames)
  checkNotEmpty(`${face}: tls`, options)
  checkPem(`${face}: tls`, options)
}

function contextOf(options: TlsClientOptions): SecureContext {
  let context = contexts.get(options)
  if (context === undefined) {
    checkTlsClientOptions('dial', options)
    context = createSecureContext(given(options, ['ca', 'cert', 'key', 'pfx', 'passphrase', 'minVersion', 'maxVersion', 'ciphers']))
    contexts.set(options, context)
  }
  return context
}

/** What is wrong; where OpenSSL says it in words of its own, in plain ones. */
function inWords(error: Error, alpn: readonly string[]): string {
  const { code } = error as { code?: string }
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') return `what answers there speaks no TLS (${code})`
  // RFC 7301 §3.2
  if (code === 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL') return `the server speaks none of ${alpn.join(', ')} (${code})`
  return describe(error)
}

/**
 * Shakes hands as a client over `stream`, a connection that stands: TCP, or a tunnel. `host` and
 * `port` say whom it leads to. `done` is called once, later, with a TLS_FAILED error
 * (`unprocessed`) or the secured socket, on which no listener is left but one for errors; not after
 * `cancel`. Failing and cancelling destroy `stream`. Throws what node:tls throws for options it
 * cannot use.
 */
export function secure(
  stream: Duplex,
  host: string,
  port: number,
  options: TlsClientOptions,
  done: (error: HeddleError | undefined, socket: TLSSocket | undefined) => void,
): { cancel(): void } {
  const { sessions, keylog } = options
  const name = options.servername ?? host
  const sessionName = `${name}:${port}`
  const settings: ConnectionOptions = {
    socket: stream,
    host: name,
    secureContext: contextOf(options),
    rejectUnauthorized: options.rejectUnauthorized ?? true,
  }
  // RFC 6066 §3: an IP address is no server name.
  settings.servername = isIP(name) === 0 ? name : ''
  const alpn = options.alpn ?? clientProtocols
  if (alpn.length > 0) settings.ALPNProtocols = [...alpn]
  const check = options.checkServerIdentity
  if (check !== undefined) settings.checkServerIdentity = (name, certificate) => guarded(() => check(name, certificate))
  const session = sessions?.take(sessionName)
  if (session !== undefined) settings.session = session

  const socket = connect(settings)
  let over = false
  const fail = (error: Error): void => {
    if (over) return
    over = true
    socket.destroy()
    stream.destroy()
    done(new NetworkError('TLS_FAILED', `TLS with ${name} failed: ${inWords(error, alpn)}`, { cause: error, unprocessed: true }), undefined)
  }
  const closed = (): void => fail(new Error('the connection was closed during the handshake'))
  socket.on('error', fail)
  socket.on('close', closed)
  if (sessions !== undefined) socket.on('session', (next: Buffer) => sessions.put(sessionName, next))
  if (keylog !== undefined || keylogWanted()) {
    socket.on('keylog', (line: Buffer) => {
      writeKeylog(line)
      const error = guarded(() => keylog?.(line))
      if (error !== undefined) fail(error)
    })
  }
  socket.once('secureConnect', () => {
    if (over) return
    over = true
    socket.off('close', closed)
    done(undefined, socket)
  })
  return {
    cancel: () => {
      over = true
      socket.destroy()
      stream.destroy()
    },
  }
}

/** Runs a callback of the user's inside of node:tls, where a throw would end the process. */
function guarded(callback: () => unknown): Error | undefined {
  try {
    const result = callback()
    return result instanceof Error ? result : undefined
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}
