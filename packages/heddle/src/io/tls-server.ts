import type { Socket } from 'node:net'
import {
  createSecureContext,
  createServer,
  type SecureContext,
  type SecureContextOptions,
  type SecureVersion,
  type Server,
  type TLSSocket,
  type TlsOptions,
} from 'node:tls'
import { NetworkError, UsageError } from '../http/index.ts'
import { serverProtocols } from './alpn.ts'
import { describe } from './errors.ts'
import { keylogWanted, writeKeylog } from './keylog.ts'
import { given } from './tls-client.ts'

type Pem = string | Uint8Array

/** One certificate with its key, and what goes with it. */
export interface TlsIdentity {
  /** PEM; the leaf first, then its issuers. */
  readonly cert?: Pem | readonly Pem[] | undefined
  readonly key?: Pem | readonly Pem[] | undefined
  readonly pfx?: Uint8Array | undefined
  readonly passphrase?: string | undefined
  /** Trusted for client certificates. */
  readonly ca?: Pem | readonly Pem[] | undefined
  readonly minVersion?: SecureVersion | undefined
  readonly maxVersion?: SecureVersion | undefined
  readonly ciphers?: string | undefined
}

export interface TlsServerOptions extends TlsIdentity {
  /** ALPN protocols, best first; a client that offers only others gets the alert (RFC 7301 §3.2). Default `['http/1.1']`. */
  readonly alpn?: readonly string[] | undefined
  /** Chooses the protocol instead; undefined refuses the handshake, and so does a throw. */
  readonly alpnCallback?: ((serverName: string, protocols: readonly string[]) => string | undefined) | undefined
  /** Identities by server name: `example.org` or `*.example.org`. The options' own is for all other names. */
  readonly names?: Readonly<Record<string, TlsIdentity>> | undefined
  /** Asked for names that `names` lacks; undefined means the options' own. A throw or rejection fails that handshake only. */
  readonly sniCallback?: ((serverName: string) => TlsIdentity | undefined | Promise<TlsIdentity | undefined>) | undefined
  /** Asks clients for a certificate. Default false. */
  readonly requestCert?: boolean | undefined
  /** With `requestCert`: refuses clients without a valid one. Default true. */
  readonly rejectUnauthorized?: boolean | undefined
  /** 48 bytes, the same in every worker, so that sessions resume across them. */
  readonly ticketKeys?: Buffer | undefined
}

const identityOptions = ['cert', 'key', 'pfx', 'passphrase', 'ca', 'minVersion', 'maxVersion', 'ciphers'] as const

/** What handshakes to come are done with: all of one `updateTls`. */
interface Contexts {
  readonly own: SecureContext
  readonly names: ReadonlyMap<string, SecureContext>
  readonly options: TlsServerOptions
}

/** Whom a {@link TlsAcceptor} tells. */
export interface TlsOwner {
  onSecure(socket: TLSSocket): void
  /** Once for each socket given to `accept` that does not come out of `onSecure`. */
  onHandshakeFailed(error: unknown): void
  /** The user's callback threw or rejected; its handshake fails besides. */
  onCallbackFailed(error: unknown): void
}

/**
 * The TLS side of a listener: sockets go in by `accept`, and come out secured through `onSecure` or
 * are told as failed. It listens to nothing itself.
 */
export class TlsAcceptor {
  /** Handshakes in flight. */
  inFlight: number
  readonly #server: Server
  #contexts: Contexts
  /** Contexts of identities the SNI callback gave. */
  readonly #given: WeakMap<TlsIdentity, SecureContext>
  readonly #owner: TlsOwner
  /** What node:tls lets nobody change later. */
  readonly #requestCert: boolean
  readonly #rejectUnauthorized: boolean

  /** Throws UsageError for an identity that cannot be used. `handshakeTimeout` in ms. */
  constructor(tls: TlsServerOptions, handshakeTimeout: number, owner: TlsOwner) {
    this.inFlight = 0
    this.#contexts = makeContexts(tls)
    this.#given = new WeakMap()
    this.#owner = owner
    this.#requestCert = tls.requestCert ?? false
    this.#rejectUnauthorized = tls.rejectUnauthorized ?? true
    const options: TlsOptions = {
      ...given(tls, identityOptions),
      ...given(tls, ['ticketKeys']),
      handshakeTimeout,
      requestCert: this.#requestCert,
      rejectUnauthorized: this.#rejectUnauthorized,
      SNICallback: (name, done) => this.#chooseContext(name, done),
      ALPNCallback: ({ servername, protocols }) => this.#chooseProtocol(servername, protocols),
    }
    this.#server = createServer(options)
    this.#server.on('secureConnection', (socket) => {
      this.inFlight--
      // Not before: a client that leaves within the handshake would only be noticed by its time limit.
      socket.allowHalfOpen = true
      // TLS 1.2 renegotiation has no use here (RFC 9113 §9.2.1 forbids it) and costs the server more than the client.
      socket.disableRenegotiation()
      owner.onSecure(socket)
    })
    // Once for every handshake that ends otherwise: failed, timed out or broken off.
    this.#server.on('tlsClientError', (error, socket) => {
      this.inFlight--
      // node:tls leaves a socket open whose handshake took too long.
      socket.destroy()
      owner.onHandshakeFailed(new NetworkError('TLS_FAILED', `a TLS handshake failed: ${describe(error)}`, { cause: error }))
    })
    if (keylogWanted()) this.#server.on('keylog', writeKeylog)
  }

  accept(socket: Socket): void {
    this.inFlight++
    this.#server.emit('connection', socket)
  }

  /** Replaces identities, names and callbacks for handshakes to come. Throws UsageError and changes nothing for bad ones. */
  update(tls: TlsServerOptions): void {
    const { requestCert = this.#requestCert, rejectUnauthorized = this.#rejectUnauthorized } = tls
    if (requestCert !== this.#requestCert || rejectUnauthorized !== this.#rejectUnauthorized) {
      throw new UsageError('requestCert and rejectUnauthorized cannot be changed while listening')
    }
    this.#contexts = makeContexts(tls)
    this.#server.setSecureContext(given(tls, identityOptions) as SecureContextOptions)
  }

  #chooseContext(name: string, done: (error: Error | null, context?: SecureContext) => void): void {
    const { own, names, options } = this.#contexts
    const known = byName(names, name)
    const { sniCallback } = options
    if (known !== undefined || sniCallback === undefined) return done(null, known ?? own)
    const answer = (identity: TlsIdentity | undefined): void => done(null, identity === undefined ? own : this.#contextOf(identity))
    const fail = (error: unknown): void => {
      this.#owner.onCallbackFailed(error)
      done(error instanceof Error ? error : new Error(String(error)))
    }
    try {
      const identity = sniCallback(name)
      if (!(identity instanceof Promise)) return answer(identity)
      identity.then(answer).catch(fail)
    } catch (error) {
      fail(error)
    }
  }

  #contextOf(identity: TlsIdentity): SecureContext {
    let context = this.#given.get(identity)
    if (context === undefined) {
      context = createSecureContext(given(identity, identityOptions))
      this.#given.set(identity, context)
    }
    return context
  }

  #chooseProtocol(serverName: string, offered: readonly string[]): string | undefined {
    const { alpn = serverProtocols, alpnCallback } = this.#contexts.options
    if (alpnCallback === undefined) return alpn.find((protocol) => offered.includes(protocol))
    try {
      const chosen = alpnCallback(serverName, offered)
      // A name the client did not offer would make node:tls throw.
      return chosen !== undefined && offered.includes(chosen) ? chosen : undefined
    } catch (error) {
      this.#owner.onCallbackFailed(error)
      return undefined
    }
  }
}

function makeContexts(tls: TlsServerOptions): Contexts {
  const names = new Map<string, SecureContext>()
  for (const [name, identity] of Object.entries(tls.names ?? {}))
    names.set(name.toLowerCase(), makeContext(identity, `the identity of ${name}`))
  return { own: makeContext(tls, 'the TLS identity'), names, options: tls }
}

function makeContext(identity: TlsIdentity, what: string): SecureContext {
  try {
    return createSecureContext(given(identity, identityOptions))
  } catch (cause) {
    throw new UsageError(`${what} cannot be used: ${describe(cause)}`, { cause })
  }
}

/** The exact name, else the wildcard for its left-most label (RFC 9525 §6.3). */
function byName(names: ReadonlyMap<string, SecureContext>, name: string): SecureContext | undefined {
  if (names.size === 0) return undefined
  const lower = name.toLowerCase()
  const exact = names.get(lower)
  if (exact !== undefined) return exact
  const dot = lower.indexOf('.')
  return dot < 0 ? undefined : names.get(`*${lower.slice(dot)}`)
}
