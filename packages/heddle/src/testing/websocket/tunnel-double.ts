import {
  CancelledError,
  UsageError,
  type CancelReason,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type HeddleError,
} from '../../http/index.ts'
import { connectionInfo } from '../network.ts'

const noHandler: ExchangeHandler = { onHead() {}, onData() {}, onTrailers() {}, onSent() {}, onPriority() {}, onClose() {} }
const none = Buffer.alloc(0)

/**
 * An open tunnel whose other end is the test: it sees what is sent, and says what arrives and what has left.
 * Checks the contract of {@link Exchange} from the sender's side.
 */
export class TunnelDouble implements Exchange {
  readonly protocol: 'h1'
  readonly connection: ConnectionInfo
  handler: ExchangeHandler
  /** Sent and not taken by the test. */
  readonly sent: Buffer[]
  /** The tunnel was ended by this side. */
  ended: boolean
  /** Octets given to `onData`, and consumed. */
  delivered: number
  consumed: number
  cancelled: CancelReason | undefined
  closed: boolean
  /** Octets that wait, at which a sender is told false. */
  mark: number
  /** Calls of `sendData` and `sendOwned` that carried something. */
  sends: number
  /** Breaches of the contract. Assert that it is empty. */
  readonly faults: string[]
  #waiting: number
  #peerEnded: boolean

  constructor(mark = 65_536) {
    this.protocol = 'h1'
    this.connection = connectionInfo('client')
    this.handler = noHandler
    this.sent = []
    this.ended = false
    this.delivered = 0
    this.consumed = 0
    this.cancelled = undefined
    this.closed = false
    this.mark = mark
    this.sends = 0
    this.faults = []
    this.#waiting = 0
    this.#peerEnded = false
  }

  // ── What the engine does ────────────────────────────────────────────────────────────────────────

  sendHead(): void {
    throw new UsageError('a second head')
  }

  sendData(buffer: Uint8Array, start: number, limit: number, end: boolean): boolean {
    return this.#send(Buffer.from(buffer.subarray(start, limit)), end)
  }

  sendOwned(chunk: Uint8Array, end: boolean): boolean {
    return this.#send(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length), end)
  }

  #send(bytes: Buffer, end: boolean): boolean {
    if (this.cancelled !== undefined || this.closed) return false
    if (this.ended) this.faults.push('sent after the end')
    if (end) this.ended = true
    if (bytes.length > 0) {
      this.sends++
      this.sent.push(bytes)
      this.#waiting += bytes.length
    }
    return this.#waiting < this.mark
  }

  sendTrailers(): void {
    this.faults.push('trailers in a tunnel')
  }

  consume(byteCount: number): void {
    if (this.closed) return
    this.consumed += byteCount
    if (byteCount <= 0 || this.consumed > this.delivered) this.faults.push(`consumed ${this.consumed} of ${this.delivered}`)
  }

  discard(): void {
    this.faults.push('discarded')
  }

  setPriority(): void {}

  cancel(reason: CancelReason): void {
    this.cancelled ??= reason
  }

  // ── What the test does ──────────────────────────────────────────────────────────────────────────

  /** Octets that wait. */
  get waiting(): number {
    return this.#waiting
  }

  /** All that was sent, off the list. */
  take(): Buffer {
    return this.sent.length === 1 ? (this.sent.pop() as Buffer) : Buffer.concat(this.sent.splice(0))
  }

  /** `bytes` arrive, in a buffer that is overwritten afterwards. */
  receive(bytes: Uint8Array, end = false): void {
    if (this.cancelled !== undefined || this.closed) return
    const buffer = Buffer.alloc(bytes.length + 5, 0x58)
    buffer.set(bytes, 3)
    this.delivered += bytes.length
    if (end) this.#peerEnded = true
    this.handler.onData(buffer, 3, 3 + bytes.length, end)
    buffer.fill(0xdb)
  }

  receiveEnd(): void {
    this.receive(none, true)
  }

  /** `byteCount` octets leave, by default all; then what ended is told. */
  transmit(byteCount: number = this.#waiting): void {
    if (this.closed) return
    if (this.cancelled !== undefined) return this.close(new CancelledError(this.cancelled))
    if (byteCount > 0) {
      this.#waiting -= byteCount
      this.handler.onSent(byteCount, this.#waiting < this.mark)
    }
    if (this.ended && this.#peerEnded && this.#waiting === 0) this.close(undefined)
  }

  close(error: HeddleError | undefined): void {
    if (this.closed) return
    this.closed = true
    this.handler.onClose(error)
  }
}
