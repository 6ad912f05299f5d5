import { HeddleError, NetworkError, PeerError } from '../http/index.ts'
import { faultReason, type CloseReason } from './closing.ts'
import type { QuicConnection } from './connection.ts'
import { Deadline, type Deadlines } from './deadlines.ts'
import { errorOfFault } from './handshake.ts'
import { Space } from './space.ts'
import type { QuicStart } from './start.ts'
import { TransportError, transportErrorName, type TransportFault } from './transport-error.ts'

const spaces = [Space.initial, Space.handshake, Space.application] as const

/** How a connection ends, whoever ends it: who hears of it, and what is let go. */
export class Ending {
  readonly #connection: QuicConnection
  readonly #start: QuicStart
  readonly #deadlines: Deadlines
  /** The application hears nothing more: it was told, or closed. */
  isOver: boolean
  /** Nothing of the connection is needed any more. */
  isGone: boolean
  #isShaking: boolean

  constructor(connection: QuicConnection, start: QuicStart, deadlines: Deadlines) {
    this.#connection = connection
    this.#start = start
    this.#deadlines = deadlines
    this.isOver = false
    this.isGone = false
    this.#isShaking = true
  }

  /** The peer broke the rules, or nothing goes any more. */
  fail(fault: TransportFault): void {
    this.endWith(errorOfFault(fault), faultReason(fault))
  }

  /** The application threw: the connection ends, and nothing else. */
  failOf(thrown: unknown): void {
    const error = new HeddleError('HANDLER_FAILED', 'what runs on the QUIC connection failed', { cause: thrown, scope: 'connection' })
    this.endWith(error, { code: TransportError.internalError, application: false, frameType: 0, reason: '' })
  }

  /** The peer is told `reason`, and the application `error`. */
  endWith(error: HeddleError, reason: CloseReason): void {
    if (this.#connection.closing.state !== 'open') return
    this.startClosing(reason)
    this.#tell(error)
  }

  /** The peer is told `reason`. */
  startClosing(reason: CloseReason): void {
    const connection = this.#connection
    if (!connection.closing.close(reason)) return
    connection.streams.close()
    this.#deadlines.clearAll()
    connection.wake()
  }

  /** CONNECTION_CLOSE came. */
  receiveClose(code: number, isApplication: boolean, reason: string): void {
    if (!this.#connection.closing.receiveClose()) return
    this.#deadlines.clearAll()
    const what = isApplication ? `error 0x${code.toString(16)}` : transportErrorName(code)
    const message = `the peer closed the QUIC connection: ${what}${reason === '' ? '' : `, ${reason}`}`
    const isTls = !isApplication && code >= TransportError.cryptoError && code < TransportError.cryptoError + 256
    // RFC 9000 §20.1: a server that refuses a connection looks at nothing that comes by it.
    const unprocessed = !isApplication && code === TransportError.connectionRefused
    const facts = { wireCode: code, scope: 'connection', unprocessed } as const
    this.#tell(isTls ? new NetworkError('TLS_FAILED', message, facts) : new PeerError('PEER_CLOSED', message, facts))
  }

  /** Over at once, without a word to the peer (RFC 9000 §10.1). */
  giveUp(error: HeddleError): void {
    this.#tell(error)
    this.finish()
  }

  /** Closing and draining last three probe timeouts, from the run on in which they begin (RFC 9000 §10.2). */
  arm(): void {
    const { closing, probeTimeout, now } = this.#connection
    if (!this.isGone && this.#deadlines.at(Deadline.closed) === Infinity) {
      this.#deadlines.set(Deadline.closed, closing.deadline(probeTimeout, now))
    }
  }

  /** The application hears nothing more, and the connection stands no longer. */
  end(): void {
    if (this.isOver) return
    this.isOver = true
    this.endHandshake()
    this.#start.onOver?.()
  }

  /** The handshake is complete, or will not be. */
  endHandshake(): void {
    if (!this.#isShaking) return
    this.#isShaking = false
    this.#start.onHandshakeOver?.()
  }

  /** Everything is let go. */
  finish(): void {
    if (this.isGone) return
    this.isGone = true
    this.end()
    const connection = this.#connection
    connection.closing.finish()
    connection.streams.close()
    this.#deadlines.clearAll()
    connection.localIds.close()
    connection.remoteIds.close()
    connection.receiver.discardEarly()
    for (const space of spaces) connection.discard(space)
    connection.handshake.close()
    this.#start.onGone(connection)
  }

  #tell(error: HeddleError): void {
    if (this.isOver) return
    this.end()
    const connection = this.#connection
    connection.streams.close()
    try {
      connection.application.onClose(error)
    } catch {
      // It is over already, and there is nobody left to tell.
    }
  }
}
