import { isIP } from 'node:net'
import { UsageError } from '../http/index.ts'
import type { OpenSsl } from './openssl.ts'
import { TlsCallbacks } from './tls-callbacks.ts'
import { TlsIdentities, type ReadyIdentity } from './tls-identities.ts'
import { tlsSettings, updatedSettings, type TlsContextOptions, type TlsIdentity, type TlsSettings, type TlsUpdate } from './tls-options.ts'
import type { SessionOwner } from './tls-identity-choice.ts'
import { OpenSslSession } from './tls-session.ts'
import { anyEarlyData, decodeTicket, ticketBinding } from './tls-ticket.ts'
import type { TlsClientOptions, TlsContext, TlsServerOptions, TlsSession, TlsSessionHandler } from './types.ts'

const setHostName = 55 // SSL_CTRL_SET_TLSEXT_HOSTNAME
// X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, and X509_CHECK_FLAG_NEVER_CHECK_SUBJECT: RFC 9110 §4.3.4 forbids a common name for a host.
const hostFlags = 0x4 | 0x20

const callbacksOf = new WeakMap<OpenSsl, TlsCallbacks>()

/** TLS by OpenSSL for the sessions of one end. */
export class OpenSslContext implements TlsContext, SessionOwner {
  readonly openssl: OpenSsl
  readonly callbacks: TlsCallbacks
  #identities: TlsIdentities
  #closed: boolean

  /** Throws UsageError for options that cannot be used. */
  constructor(openssl: OpenSsl, options: TlsContextOptions) {
    this.openssl = openssl
    let callbacks = callbacksOf.get(openssl)
    if (callbacks === undefined) {
      callbacks = new TlsCallbacks(openssl)
      callbacksOf.set(openssl, callbacks)
    }
    this.callbacks = callbacks
    this.#identities = new TlsIdentities(openssl, callbacks, tlsSettings(options))
    this.#closed = false
  }

  get settings(): TlsSettings {
    return this.#identities.settings
  }

  client(options: TlsClientOptions, handler: TlsSessionHandler): TlsSession {
    this.#check('client')
    const { openssl, settings } = this
    const { f } = openssl
    const host = hostOf(options.host)
    const isAddress = isIP(host) !== 0
    const parameters = ownCopy(options.transportParameters)
    const scope = `${host}\0${settings.alpn.join('\0')}`
    const binding = ticketBinding(scope, this.#identities.own.trust, settings.rejectUnauthorized)
    const ssl = this.#makeSsl()
    try {
      f.SSL_set_connect_state(ssl)
      f.SSL_set_hostflags(ssl, hostFlags)
      // RFC 6066 §3: an address is no server name.
      const named = isAddress
        ? f.X509_VERIFY_PARAM_set1_ip_asc(f.SSL_get0_param(ssl), host) === 1
        : Number(f.SSL_ctrl(ssl, setHostName, openssl.long(0), host)) === 1 && f.SSL_set1_host(ssl, host) === 1
      if (!named) throw new UsageError(`tls: ${host} cannot be a server's name`)
      const protocols = Buffer.concat(settings.alpn.map((name) => Buffer.from(`${String.fromCharCode(name.length)}${name}`, 'latin1')))
      // 0 is success.
      if (f.SSL_set_alpn_protos(ssl, protocols, protocols.length) !== 0) throw new UsageError('tls: alpn cannot be used')
      this.#setUpQuic(ssl, parameters, this.#resume(ssl, options, binding))
    } catch (error) {
      f.SSL_free(ssl)
      throw error
    } finally {
      f.ERR_clear_error()
    }
    return new OpenSslSession(this, ssl, handler, { host, transportParameters: parameters, binding, resumptionContext: '' })
  }

  server(options: TlsServerOptions, handler: TlsSessionHandler): TlsSession {
    this.#check('server')
    const { f } = this.openssl
    const parameters = ownCopy(options.transportParameters)
    const ssl = this.#makeSsl()
    try {
      f.SSL_set_accept_state(ssl)
      this.#setUpQuic(ssl, parameters, this.settings.earlyData)
    } catch (error) {
      f.SSL_free(ssl)
      throw error
    } finally {
      f.ERR_clear_error()
    }
    const { resumptionContext = '' } = options
    return new OpenSslSession(this, ssl, handler, {
      host: '',
      transportParameters: parameters,
      binding: undefined,
      resumptionContext,
    })
  }

  update(change: TlsUpdate): void {
    this.#check(this.settings.side)
    const before = this.#identities
    this.#identities = new TlsIdentities(this.openssl, this.callbacks, updatedSettings(before.settings, change))
    before.close()
  }

  close(): void {
    this.#closed = true
    this.#identities.close()
  }

  identityOf(serverName: string | undefined): ReadyIdentity | undefined | Promise<ReadyIdentity | undefined> {
    const identities = this.#identities
    if (identities.closed) return undefined
    if (serverName === undefined) return identities.own
    const { sniCallback } = identities.settings
    const named = identities.named(serverName)
    if (named !== undefined || sniCallback === undefined) return named ?? identities.own
    const answer = sniCallback(serverName)
    // Promises of other realms and libraries, too.
    if (typeof (answer as PromiseLike<unknown> | undefined)?.then === 'function') {
      return Promise.resolve(answer).then((identity) => this.#given(identity, serverName))
    }
    return this.#given(answer as TlsIdentity | undefined, serverName)
  }

  callbackFailed(error: unknown): void {
    try {
      this.settings.onCallbackFailed?.(error)
    } catch {
      // The handshake fails anyway, and there is nobody else to tell.
    }
  }

  /** Of the identities as they are now: there may have been an update since the callback was asked. */
  #given(identity: TlsIdentity | null | undefined, serverName: string): ReadyIdentity | undefined {
    const identities = this.#identities
    if (identities.closed) return undefined
    return identity === undefined || identity === null ? identities.own : identities.given(identity, serverName)
  }

  #check(side: 'client' | 'server'): void {
    if (this.#closed) throw new UsageError('the TLS context is closed')
    if (this.settings.side !== side) throw new UsageError(`the TLS context is for a ${this.settings.side}`)
  }

  #makeSsl(): bigint {
    this.openssl.f.ERR_clear_error()
    const ssl = this.openssl.f.SSL_new(this.#identities.own.context)
    if (ssl === 0n) throw new Error(`OpenSSL cannot make a session: ${this.openssl.drainErrors().join(', ')}`)
    return ssl
  }

  #setUpQuic(ssl: bigint, parameters: Uint8Array, early: boolean): void {
    const { f } = this.openssl
    const done =
      f.SSL_set_quic_tls_cbs(ssl, this.callbacks.dispatch, null) === 1 &&
      f.SSL_set_quic_tls_transport_params(ssl, parameters, BigInt(parameters.length)) === 1 &&
      (!early || f.SSL_set_quic_tls_early_data_enabled(ssl, 1) === 1)
    if (!done) throw new Error(`OpenSSL refuses QUIC: ${this.openssl.drainErrors().join(', ')}`)
  }

  /** Resumes the ticket's session if it is one of this host and trust. True: with early data. */
  #resume(ssl: bigint, { ticket, earlyData = false }: TlsClientOptions, binding: Uint8Array): boolean {
    if (ticket === undefined) return false
    const { f } = this.openssl
    const session = decodeTicket(this.openssl, ticket, binding)
    if (session === 0n) return false
    const resumed = f.SSL_set_session(ssl, session) === 1
    const early = resumed && earlyData && f.SSL_SESSION_get_max_early_data(session) === anyEarlyData
    f.SSL_SESSION_free(session)
    return early
  }
}

/** In lower case, without brackets, zone and the dot of the root. Throws UsageError for what C would take for another name. */
function hostOf(given: string): string {
  const host = given
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/%.*$/, '')
    .replace(/\.$/, '')
    .toLowerCase()
  // To OpenSSL a name that begins with a dot is every name below it.
  if (!/^[\x21-\x7e]{1,255}$/.test(host) || /^\.|\.\./.test(host)) throw new UsageError(`tls: ${JSON.stringify(given)} is no host`)
  return host
}

/** Off the heap, and nobody else's. */
function ownCopy(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new ArrayBuffer(bytes.length))
  copy.set(bytes)
  return copy
}
