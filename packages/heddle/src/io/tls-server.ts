import { constants, createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import { createServer, type SecureContext, type Server, type TLSSocket, type TlsOptions } from 'node:tls'
import { checkOptionNames, NetworkError, UsageError, type OptionNames } from '../http/index.ts'
import { serverProtocols } from './alpn.ts'
import { byName, ClientTrust } from './client-trust.ts'
import { describe } from './errors.ts'
import { keylogWanted, writeKeylog } from './keylog.ts'
import {
  checkIdentityNames,
  checkShared,
  completed,
  given,
  hasCredentials,
  identityNames,
  identityOf,
  makeContext,
  pems,
  replaced,
  type TlsIdentity,
} from './tls-identity.ts'

/** TLS of a server: its own identity, others by name, and client certificates. */
export interface TlsServerOptions extends TlsIdentity {
  /** ALPN protocols, best first; a client that offers only others gets the alert (RFC 7301 §3.2). Default `['http/1.1']`. */
  readonly alpn?: readonly string[] | undefined
  /** Chooses the protocol instead; undefined refuses the handshake, and so does a throw. */
  readonly alpnCallback?: ((serverName: string, protocols: readonly string[]) => string | undefined) | undefined
  /**
   * Identities by server name: `example.org` or `*.example.org`. The options' own is for all other
   * names, and completes these (see {@link TlsIdentity}): `ca` above all.
   */
  readonly names?: Readonly<Record<string, TlsIdentity>> | undefined
  /**
   * Asked for names that `names` lacks; undefined means the options' own. A throw or rejection, and an
   * identity that cannot be used, fail that handshake only. With `requestCert` no session is resumed,
   * since nobody knows whom the callback trusts by then.
   */
  readonly sniCallback?: ((serverName: string) => TlsIdentity | undefined | Promise<TlsIdentity | undefined>) | undefined
  /** Asks clients for a certificate, and checks it against `ca`, without which this is a UsageError. Default false. */
  readonly requestCert?: boolean | undefined
  /** With `requestCert`: refuses clients without a valid one. Default true. */
  readonly rejectUnauthorized?: boolean | undefined
  /** 48 bytes, the same in every worker, so that sessions resume across them. */
  readonly ticketKeys?: Buffer | undefined
}

const optionNames: OptionNames<TlsServerOptions> = {
  ...identityNames,
  alpn: true,
  alpnCallback: true,
  names: true,
  sniCallback: true,
  requestCert: true,
  rejectUnauthorized: true,
  ticketKeys: true,
}

/**
 * ms that a handshake has at least. It takes two or three round trips; whoever has not ended it by then makes room
 * for others if there is none left, so that a few who never end theirs keep nobody out.
 */
const patience = 1_000

interface Unfinished {
  readonly socket: Socket
  readonly since: number
}

/** The other end of a connection over IP, else empty. It tells a socket that is secured from others. */
function endOf({ remoteAddress, remotePort }: Socket): string {
  return remoteAddress === undefined || remotePort === undefined ? '' : `${remoteAddress} ${remotePort}`
}

/** What handshakes to come are done with: all of one `updateTls`. */
interface Contexts {
  readonly own: SecureContext
  readonly names: ReadonlyMap<string, SecureContext>
  readonly options: TlsServerOptions
  readonly trust: ClientTrust
  /** Those of identities the SNI callback gave. */
  readonly given: WeakMap<TlsIdentity, SecureContext>
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
  /** Those that may be dropped, the oldest first, by the address at the other end. */
  readonly #unfinished: Map<string, Unfinished>
  readonly #server: Server
  #contexts: Contexts
  readonly #owner: TlsOwner
  /** What node:tls lets nobody change later. */
  readonly #requestCert: boolean
  readonly #rejectUnauthorized: boolean

  /** Throws UsageError for an identity that cannot be used. `handshakeTimeout` in ms. */
  constructor(tls: TlsServerOptions, handshakeTimeout: number, owner: TlsOwner) {
    this.inFlight = 0
    this.#unfinished = new Map()
    this.#contexts = makeContexts(tls)
    this.#owner = owner
    this.#requestCert = tls.requestCert ?? false
    this.#rejectUnauthorized = tls.rejectUnauthorized ?? true
    const options: TlsOptions = {
      ...serverContext(tls),
      handshakeTimeout,
      requestCert: this.#requestCert,
      rejectUnauthorized: this.#rejectUnauthorized,
      SNICallback: (name, done) => this.#chooseContext(name, done),
      ALPNCallback: ({ servername, protocols }) => this.#chooseProtocol(servername, protocols),
    }
    try {
      this.#server = createServer(options)
    } catch (cause) {
      throw new UsageError(`the TLS options cannot be used: ${describe(cause)}`, { cause })
    }
    this.#server.on('secureConnection', (socket) => {
      this.inFlight--
      this.#unfinished.delete(endOf(socket))
      // Not before: a client that leaves within the handshake would only be noticed by its time limit.
      socket.allowHalfOpen = true
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

  /** Clients are asked for a certificate. */
  get verifies(): boolean {
    return this.#requestCert
  }

  accept(socket: Socket): void {
    this.inFlight++
    const end = endOf(socket)
    if (end !== '') {
      const unfinished = { socket, since: performance.now() }
      this.#unfinished.set(end, unfinished)
      socket.once('close', () => {
        if (this.#unfinished.get(end) === unfinished) this.#unfinished.delete(end)
      })
    }
    this.#server.emit('connection', socket)
  }

  /** Makes room for another handshake: drops the one that takes longest, if it has had time enough. False: none has. */
  dropOldest(): boolean {
    for (const [end, { socket, since }] of this.#unfinished) {
      if (performance.now() - since < patience) return false
      this.#unfinished.delete(end)
      socket.destroy()
      return true
    }
    return false
  }

  /**
   * For handshakes to come, what `tls` gives replaces what was given before, and what it does not give
   * stays. Throws UsageError and changes nothing for what cannot be used.
   */
  update(tls: TlsServerOptions): void {
    const next = updatedTls(this.#contexts.options, tls)
    const contexts = makeContexts(next)
    try {
      this.#server.setSecureContext(serverContext(next))
    } catch (cause) {
      throw new UsageError(`the TLS options cannot be used: ${describe(cause)}`, { cause })
    }
    this.#contexts = contexts
  }

  /** See {@link ClientTrust.covers}. */
  covers(serverName: string | undefined, host: string): boolean {
    return this.#contexts.trust.covers(serverName, host)
  }

  #chooseContext(name: string, done: (error: Error | null, context?: SecureContext) => void): void {
    const { own, names, options } = this.#contexts
    const known = byName(names, name)
    const { sniCallback } = options
    if (known !== undefined || sniCallback === undefined) return done(null, known ?? own)
    const answer = (identity: TlsIdentity | null | undefined): void =>
      done(null, identity === undefined || identity === null ? own : this.#contextOf(identity, name))
    const fail = (error: unknown): void => {
      this.#owner.onCallbackFailed(error)
      done(error instanceof Error ? error : new Error(String(error)))
    }
    try {
      const identity = sniCallback(name)
      // Promises of other realms and libraries, too.
      if (!isPromise(identity)) return answer(identity)
      Promise.resolve(identity).then(answer).catch(fail)
    } catch (error) {
      fail(error)
    }
  }

  #contextOf(identity: TlsIdentity, name: string): SecureContext {
    const { options, given } = this.#contexts
    let context = given.get(identity)
    if (context === undefined) {
      checkGivenIdentity(identity, options, name)
      context = makeContext(completed(identity, options), `the identity of ${name}`, this.#requestCert)
      given.set(identity, context)
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

/** Throws UsageError for options and identities that cannot be used. */
export function checkTlsServerOptions(tls: TlsServerOptions): void {
  makeContexts(tls)
}

/** `before` after an update by `change`. Throws UsageError for what no update can change. */
export function updatedTls(before: TlsServerOptions, change: TlsServerOptions): TlsServerOptions {
  checkOptionNames('updateTls', '', change, optionNames)
  const { requestCert = false, rejectUnauthorized = true } = before
  if ((change.requestCert ?? requestCert) !== requestCert || (change.rejectUnauthorized ?? rejectUnauthorized) !== rejectUnauthorized) {
    throw new UsageError('requestCert and rejectUnauthorized cannot be changed while listening')
  }
  return replaced(before, change)
}

/** Throws UsageError for members of the identity that an SNI callback gave that are none, or cannot differ from those of `outer`. */
export function checkGivenIdentity(identity: TlsIdentity, outer: TlsServerOptions, name: string): void {
  checkIdentityNames('tls', 'sniCallback()', identity)
  checkShared(identity, outer, `the identity of ${name}`)
}

export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function'
}

/** Throws UsageError for options and identities that cannot be used. */
function makeContexts(tls: TlsServerOptions): Contexts {
  checkOptionNames('tls', '', tls, optionNames)
  const verifies = tls.requestCert ?? false
  const names = new Map<string, SecureContext>()
  for (const [name, identity] of Object.entries(tls.names ?? {})) {
    checkIdentityNames('tls', `names.${name}`, identity)
    checkShared(identity, tls, `the identity of ${name}`)
    const whole = completed(identity, tls)
    if (!hasCredentials(whole)) throw new UsageError(`tls: the identity of ${name} has no certificate`)
    names.set(name.toLowerCase(), makeContext(whole, `the identity of ${name}`, verifies))
  }
  // Without one of its own, a server whose identities have names refuses clients that ask for another, or for none.
  if (!hasCredentials(tls) && names.size === 0 && (tls.sniCallback ?? undefined) === undefined) {
    throw new UsageError('tls needs a certificate: cert and key, or pfx')
  }
  return {
    own: makeContext(identityOf(tls), 'the TLS identity', verifies),
    names,
    options: tls,
    trust: new ClientTrust(tls),
    given: new WeakMap(),
  }
}

/**
 * TLS 1.2 renegotiation has no use here (RFC 9113 §9.2.1 forbids it) and costs the server more than the client. OpenSSL
 * refuses it: `disableRenegotiation` of node:tls tells only that it is under way.
 */
const noRenegotiation = constants.SSL_OP_NO_RENEGOTIATION

/** What the context is made of that every handshake begins with, and that knows the sessions to resume. */
function serverContext(tls: TlsServerOptions): TlsOptions {
  // A resumed session is not verified again. It is of no use once others are trusted than when it was made;
  // OpenSSL itself sees to it that a session made for one server name is not resumed for another.
  const trust = createHash('sha256')
  for (const [name, { ca }] of [['', tls] as const, ...Object.entries(tls.names ?? {})]) {
    trust.update(`\0${name}\0`)
    for (const pem of pems(ca)) trust.update(pem)
  }
  return {
    ...identityOf(tls),
    ...given(tls, ['ticketKeys']),
    sessionIdContext: trust.digest('hex').slice(0, 32),
    secureOptions: noRenegotiation | (tls.requestCert === true && tls.sniCallback !== undefined ? constants.SSL_OP_NO_TICKET : 0),
  } as TlsOptions
}
