import { isIP } from 'node:net'
import type { TlsFacts } from '../http/index.ts'
import { needStack } from './stack.ts'
import { Alert, protocolViolation } from './tls-alert.ts'
import type { CallbackTarget } from './tls-callbacks.ts'
import { alpnOf, cipherOf, SessionFacts, verifyResult } from './tls-facts.ts'
import { opensslFault, tlsFault } from './tls-fault.ts'
import { IdentityChoice, type ChoosingSession, type SessionOwner } from './tls-identity-choice.ts'
import { TlsInput } from './tls-input.ts'
import { RetryWatch } from './tls-retry-watch.ts'
import { encodeTicket } from './tls-ticket.ts'
import { Level, type TlsFault, type TlsSession, type TlsSessionHandler } from './types.ts'

// SSL_get_error
const wantRead = 2
const wantClientHello = 11

const bothWays = 3 // SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN
// SSL_get_early_data_status
const earlyRejected = 1
const earlyAccepted = 2

/** What differs between the sessions of one context. */
export interface SessionStart {
  /** Client: whom the certificate must be for. Server: ''. */
  readonly host: string
  /** OpenSSL may read them later. */
  readonly transportParameters: Uint8Array
  /** Client: what its tickets are bound to. */
  readonly binding: Uint8Array | undefined
  /** Server. */
  readonly resumptionContext: string
}

/**
 * One handshake of TLS 1.3 by OpenSSL. OpenSSL is called from `start`, `receive` and `resume`, and calls back from
 * within. In there a session may be given more input, which waits, and may be closed, which happens afterwards.
 */
export class OpenSslSession implements TlsSession, CallbackTarget, ChoosingSession {
  complete: boolean
  earlyData: 'none' | 'offered' | 'accepted' | 'rejected'
  failure: { readonly error: unknown } | undefined
  readonly #owner: SessionOwner
  readonly #ssl: bigint
  readonly #handler: TlsSessionHandler
  readonly #start: SessionStart
  readonly #isServer: boolean
  readonly #input: TlsInput
  /** Where CRYPTO octets come from and go to: never `early`, which has none (RFC 9001 §4.1.3). */
  #readLevel: Level
  #writeLevel: Level
  #parameters: Uint8Array | undefined
  /** Client. */
  readonly #retry: RetryWatch
  /** Client: whom it asked for. */
  readonly #name: string | undefined
  /** Server. */
  readonly #choice: IdentityChoice
  #alert: number
  /** Found here and not by OpenSSL. */
  #found: TlsFault | undefined
  #fault: TlsFault | undefined
  #facts: TlsFacts | undefined
  #running: boolean
  /** Input came while running. */
  #again: boolean
  #closing: boolean
  #closed: boolean

  /** Takes `ssl` over, which is set up and is not known to the callbacks yet. */
  constructor(owner: SessionOwner, ssl: bigint, handler: TlsSessionHandler, start: SessionStart) {
    this.complete = false
    this.earlyData = 'none'
    this.failure = undefined
    this.#owner = owner
    this.#ssl = ssl
    this.#handler = handler
    this.#start = start
    this.#isServer = owner.settings.side === 'server'
    this.#input = new TlsInput(owner.openssl)
    this.#readLevel = Level.initial
    this.#writeLevel = Level.initial
    this.#parameters = undefined
    this.#retry = new RetryWatch()
    // RFC 6066 §3: an address is no server name.
    this.#name = this.#isServer || isIP(start.host) !== 0 ? undefined : start.host
    this.#choice = new IdentityChoice(owner, ssl, start.resumptionContext, this)
    this.#alert = -1
    this.#found = undefined
    this.#fault = undefined
    this.#facts = undefined
    this.#running = false
    this.#again = false
    this.#closing = false
    this.#closed = false
    owner.callbacks.targets.set(ssl, this)
  }

  get over(): boolean {
    return this.#closing || this.#closed
  }

  get refusal(): number {
    return this.#choice.refusal
  }

  start(): TlsFault | undefined {
    return this.#isServer ? undefined : this.#run()
  }

  receive(level: Level, bytes: Uint8Array): TlsFault | undefined {
    if (this.over || this.#fault !== undefined || bytes.length === 0) return undefined
    // RFC 9001 §4.1.3: a level that is over gets nothing new, and 0-RTT has no CRYPTO frames.
    if (level === Level.early || level < this.#readLevel) {
      this.find(Alert.unexpectedMessage, 'handshake data came at a level of encryption that is over', protocolViolation)
    } else {
      if (this.earlyData === 'offered' && level === Level.initial && this.#retry.sees(bytes)) this.#giveUpEarlyData()
      this.#input.push(level, bytes)
    }
    return this.#run()
  }

  resume(): TlsFault | undefined {
    return this.#run()
  }

  facts(): TlsFacts {
    if (this.#facts !== undefined) return this.#facts
    // OpenSSL must not be asked before: it looks into the session without looking whether there is one.
    return {
      version: 'TLSv1.3',
      cipher: '',
      alpn: undefined,
      serverName: this.#name ?? this.#choice.serverName,
      authorized: false,
      peerCertificate: undefined,
    }
  }

  close(): void {
    if (this.over) return
    this.#closing = true
    if (!this.#running) this.#free()
  }

  #run(): TlsFault | undefined {
    if (this.over || this.#fault !== undefined) return undefined
    this.#again = true
    if (this.#running) return undefined
    needStack()
    this.#running = true
    try {
      while (this.#again && !this.over && this.#fault === undefined) {
        this.#again = false
        this.#step()
      }
    } finally {
      this.#running = false
      if (this.#closing) this.#free()
    }
    const { failure } = this
    if (failure !== undefined) {
      this.failure = undefined
      this.close()
      throw failure.error
    }
    return this.#fault
  }

  /** One call of OpenSSL. Node's own TLS has its errors in the same queue, so it is empty before and after. */
  #step(): void {
    const { f } = this.#owner.openssl
    const ssl = this.#ssl
    if (this.#found === undefined) {
      f.ERR_clear_error()
      const result = this.complete ? f.SSL_read(ssl, null, 0) : f.SSL_do_handshake(ssl)
      const done = result > 0 && !this.complete
      const error = result > 0 ? 0 : f.SSL_get_error(ssl, result)
      // Closed within: what OpenSSL says of it is of no interest.
      if (this.over) return f.ERR_clear_error()
      if (error !== 0 && error !== wantRead && error !== wantClientHello) return this.#fail()
      // With early data a server's call is done before the client's Finished has come.
      if (done && f.SSL_is_init_finished(ssl) === 1) this.#finish()
      f.ERR_clear_error()
    }
    if (this.#found !== undefined && this.#fault === undefined) this.#fault = this.#found
  }

  #fail(): void {
    const { openssl } = this.#owner
    const reasons = openssl.drainErrors()
    const alert = this.#alert < 0 ? Alert.internalError : this.#alert
    const whose = this.#isServer ? "the client's certificate" : `the certificate of ${this.#start.host}`
    this.#fault = this.#found ?? opensslFault(openssl, alert, reasons, verifyResult(openssl, this.#ssl), whose)
  }

  #finish(): void {
    const { openssl } = this.#owner
    const ssl = this.#ssl
    // RFC 9001 §8.1 and §8.2; OpenSSL asks for neither.
    if (alpnOf(openssl, ssl) === undefined) return this.find(Alert.noApplicationProtocol, 'the server chose no application protocol')
    if (this.#parameters === undefined) return this.find(Alert.missingExtension, 'the server sent no transport parameters')
    this.complete = true
    this.#facts = new SessionFacts(openssl, ssl, this.#name ?? this.#choice.serverName)
    const status = openssl.f.SSL_get_early_data_status(ssl)
    if (status === earlyAccepted) this.earlyData = 'accepted'
    else if (status === earlyRejected || this.earlyData === 'offered') this.earlyData = 'rejected'
    // Tickets may have come with it.
    this.#again = true
  }

  /**
   * RFC 8446 §4.1.2: the ClientHello that answers a HelloRetryRequest has no early_data. OpenSSL 3.5 would send it
   * again, and servers refuse that, so the session it resumes allows none any more before it reads the message.
   */
  #giveUpEarlyData(): void {
    const { f } = this.#owner.openssl
    f.SSL_SESSION_set_max_early_data(f.SSL_get_session(this.#ssl), 0)
    this.earlyData = 'rejected'
  }

  /** Notes a fault that ends the handshake as soon as OpenSSL returns. The first one counts. */
  find(alert: number, message: string, code?: number): void {
    this.#found ??= tlsFault(alert, message, code)
  }

  /** The identity of a server is settled later than its ClientHello. */
  wake(): void {
    this.#handler.onWake?.()
  }

  #free(): void {
    if (this.#closed) return
    this.#closed = true
    const { openssl, callbacks } = this.#owner
    // Otherwise freeing would take the session from the server's cache, and no ticket for it were good any more.
    openssl.f.SSL_set_shutdown(this.#ssl, bothWays)
    openssl.f.SSL_free(this.#ssl)
    openssl.f.ERR_clear_error()
    callbacks.targets.delete(this.#ssl)
  }

  // What OpenSSL calls.

  send(pointer: bigint, length: number): void {
    this.#handler.onCrypto(this.#writeLevel, this.#owner.openssl.bytes(pointer, length))
  }

  available(): { readonly pointer: bigint; readonly length: number } | undefined {
    return this.#input.next(this.#readLevel)
  }

  release(byteCount: number): void {
    this.#input.release(byteCount)
  }

  secret(level: number, direction: number, pointer: bigint, length: number): void {
    const { openssl } = this.#owner
    const { f } = openssl
    const ssl = this.#ssl
    const early = level === Level.early
    const session = early ? f.SSL_get_session(ssl) : 0n
    const pending = session === 0n ? f.SSL_get_pending_cipher(ssl) : f.SSL_SESSION_get0_cipher(session)
    const suite = cipherOf(openssl, pending === 0n ? f.SSL_get_current_cipher(ssl) : pending)
    if (suite === undefined) throw new Error('OpenSSL chose a cipher suite that was not offered')
    if (!early && direction === 0) {
      // RFC 9001 §4.1.3
      if (!this.#input.isEmpty(this.#readLevel)) {
        this.find(Alert.unexpectedMessage, 'handshake data is left at a level of encryption that is over', protocolViolation)
      }
      this.#readLevel = level as Level
    } else if (!early) {
      this.#writeLevel = level as Level
    } else {
      // A client offers it with this secret, a server that has this secret takes it.
      this.earlyData = this.#isServer ? 'accepted' : 'offered'
    }
    this.#handler.onSecret(level as Level, direction === 0 ? 'read' : 'write', suite, openssl.bytes(pointer, length))
  }

  transportParameters(pointer: bigint, length: number): boolean {
    const bytes = this.#owner.openssl.bytes(pointer, length)
    // After a HelloRetryRequest they come again, and are the same (RFC 8446 §4.1.2).
    if (this.#parameters !== undefined) {
      if (Buffer.compare(this.#parameters, bytes) === 0) return true
      this.find(Alert.illegalParameter, 'the second ClientHello has other transport parameters')
      return false
    }
    this.#parameters = bytes
    this.#handler.onTransportParameters(bytes)
    return true
  }

  alert(alert: number): void {
    this.#alert = alert
  }

  clientHello(): boolean | undefined {
    return this.#choice.clientHello()
  }

  chooseProtocol(offered: Uint8Array): number {
    for (const protocol of this.#owner.settings.alpn) {
      const wanted = Buffer.from(protocol, 'latin1')
      for (let at = 0; at < offered.length; at += 1 + (offered[at] as number)) {
        const limit = at + 1 + (offered[at] as number)
        if (limit <= offered.length && wanted.equals(offered.subarray(at + 1, limit))) return at + 1
      }
    }
    return -1
  }

  ticket(session: bigint): void {
    const { binding } = this.#start
    if (binding === undefined) return
    const ticket = encodeTicket(this.#owner.openssl, session, binding)
    if (ticket !== undefined) this.#handler.onTicket(ticket)
  }

  keylog(line: string): void {
    try {
      this.#owner.settings.keylog?.(line)
    } catch (error) {
      this.#owner.callbackFailed(error)
      this.find(Alert.internalError, 'the keylog callback failed')
    }
  }
}
