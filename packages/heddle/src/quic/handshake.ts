import { NetworkError, ProtocolError, type HeddleError } from '../http/index.ts'
import { Level, type CipherSuite, type TlsFault, type TlsSession, type TlsSessionHandler } from '../native/index.ts'
import type { QuicConnection } from './connection.ts'
import { FrameType } from './frame-type.ts'
import { applyPeerParameters } from './peer-parameters.ts'
import { spaceOf } from './space.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'
import { decodeTransportParameters, TransportParameters } from './transport-parameters.ts'

/**
 * What stands between TLS and the connection (RFC 9001 §4): CRYPTO data goes to TLS in order, and what
 * TLS says becomes CRYPTO data, keys and the peer's transport parameters.
 *
 * The states of both ends, and what they are for:
 *
 *     handshaking ──► complete ──► confirmed
 *                     1-RTT data    Handshake keys are gone, keys may be updated, the path may change
 *
 * A server confirms with completion and says HANDSHAKE_DONE; a client is told (RFC 9001 §4.1.2).
 */
export class Handshake implements TlsSessionHandler {
  readonly #connection: QuicConnection
  readonly #open: (handler: TlsSessionHandler) => TlsSession
  #session: TlsSession | undefined
  #isClosed: boolean
  isComplete: boolean
  isConfirmed: boolean
  /** What the peer said; undefined until it did. */
  peer: TransportParameters | undefined
  /** What TLS or the transport parameters ended the handshake for. */
  #fault: TransportFault | undefined
  #peerBytes: Uint8Array | undefined
  readonly #tickets: Uint8Array[]

  constructor(connection: QuicConnection, open: (handler: TlsSessionHandler) => TlsSession) {
    this.#connection = connection
    this.isComplete = false
    this.isConfirmed = false
    this.peer = undefined
    this.#fault = undefined
    this.#peerBytes = undefined
    this.#tickets = []
    this.#open = open
    this.#isClosed = false
    // A server's begins when something of the client's came for it: who sends rubbish costs no more than that.
    this.#session = connection.isServer ? undefined : open(this)
  }

  get session(): TlsSession {
    this.#session ??= this.#open(this)
    return this.#session
  }

  /** Client: makes the first flight. */
  start(): TransportFault | undefined {
    return this.#faultOf(this.session.start())
  }

  /** CRYPTO octets of a level that are next in order. */
  receive(level: Level, bytes: Uint8Array): TransportFault | undefined {
    // What it was told before may have ended the connection.
    return this.#isClosed ? undefined : this.#proceed(this.session.receive(level, bytes))
  }

  /** What TLS had to wait for is there. */
  resume(): TransportFault | undefined {
    return this.isComplete || this.#isClosed ? undefined : this.#proceed(this.session.resume())
  }

  #proceed(result: TlsFault | undefined): TransportFault | undefined {
    const fault = this.#faultOf(result)
    if (fault !== undefined) return fault
    if (!this.isComplete && this.session.complete) {
      // RFC 9001 §8.2: without them there is no connection.
      if (this.peer === undefined) return transportFault(TransportError.cryptoError + 109, 0, 'TLS brought no transport parameters')
      this.isComplete = true
      this.#connection.onHandshakeComplete()
    }
    return this.#fault
  }

  close(): void {
    this.#isClosed = true
    this.#session?.close()
  }

  // ── what TLS says ───────────────────────────────────────────────────────────────────────────────

  onCrypto(level: Level, bytes: Uint8Array): void {
    this.#connection.spaces[spaceOf(level)].crypto.write(bytes)
  }

  onSecret(level: Level, direction: 'read' | 'write', suite: CipherSuite, secret: Uint8Array): void {
    // 0-RTT is neither offered nor taken here.
    if (level !== Level.handshake && level !== Level.application) return
    const { spaces } = this.#connection
    const space = spaceOf(level)
    spaces[space].keys.install(direction, suite, secret)
    // RFC 9001 §4.1.3: TLS has no use for what comes later at the level before.
    if (direction === 'read' && space > 0 && spaces[space - 1]?.crypto.hasGap === true) {
      this.#fault ??= transportFault(TransportError.protocolViolation, FrameType.crypto, 'CRYPTO data behind the end of its level')
    }
    if (level === Level.handshake) this.#connection.onHandshakeKeys()
  }

  onTransportParameters(bytes: Uint8Array): void {
    // OpenSSL is in the middle of something: they are read when it is done.
    this.#peerBytes = bytes
  }

  #readParameters(bytes: Uint8Array): void {
    const { isServer } = this.#connection
    const parameters = new TransportParameters()
    const fault = decodeTransportParameters(bytes, !isServer, parameters)
    if (fault === undefined) this.peer = parameters
    this.#fault ??= fault ?? applyPeerParameters(this.#connection, parameters)
  }

  onTicket(ticket: Uint8Array): void {
    this.#tickets.push(ticket)
  }

  onWake(): void {
    this.#connection.tlsWaits = true
    this.#connection.wake()
  }

  #faultOf(fault: TlsFault | undefined): TransportFault | undefined {
    if (fault !== undefined) return transportFault(fault.code, 0, fault.message)
    const bytes = this.#peerBytes
    this.#peerBytes = undefined
    if (bytes !== undefined) this.#readParameters(bytes)
    for (let ticket = this.#tickets.shift(); ticket !== undefined; ticket = this.#tickets.shift())
      this.#connection.application.onTicket?.(ticket)
    return this.#fault
  }
}

/** The error that a fault of this end's making is to those who use the connection. */
export function errorOfFault({ code, reason }: TransportFault): HeddleError {
  const facts = { wireCode: code, scope: 'connection' } as const
  // RFC 9001 §4.8.
  if (code >= TransportError.cryptoError && code < TransportError.cryptoError + 256) return new NetworkError('TLS_FAILED', reason, facts)
  return new ProtocolError(`QUIC: ${reason}`, 0, 'PROTOCOL_ERROR', facts)
}
