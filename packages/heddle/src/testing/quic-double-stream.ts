import type { QuicStream, QuicStreamHandler } from '../quic/index.ts'
import type { QuicDouble } from './quic-double.ts'

/** A stream of a {@link QuicDouble}: as QUIC's, over a path that only delays. */
export class QuicDoubleStream implements QuicStream {
  readonly id: number
  handler: QuicStreamHandler
  readonly #connection: QuicDouble
  /** The stream's other end, as soon as it exists. */
  other: QuicDoubleStream | undefined

  // ── Sending ──
  readonly canSend: boolean
  readonly #queue: Buffer[]
  queued: number
  sent: number
  /** How far the peer lets us send. */
  sendLimit: number
  #finQueued: boolean
  finSent: boolean
  #resetSent: boolean
  #senderWaits: boolean
  /** What was sent has arrived, to its end. */
  #sendOver: boolean

  // ── Receiving ──
  readonly canReceive: boolean
  /** Octets given to the handler. */
  received: number
  #consumed: number
  /** How far the peer was told that it may send. */
  #receiveLimit: number
  #window: number
  #stopped: boolean
  #receiveOver: boolean
  /** RESET_STREAM came: all of it is credited. */
  #lost: boolean
  #closed: boolean
  /** When the last piece of this stream arrives at the other end: pieces stay in order. */
  lastArrival: number
  windowGrowth: number

  constructor(connection: QuicDouble, id: number, handler: QuicStreamHandler, isLocal: boolean) {
    const { streamWindow } = connection.options
    const isUnidirectional = (id & 2) !== 0
    this.id = id
    this.handler = handler
    this.#connection = connection
    this.other = undefined
    this.canSend = isLocal || !isUnidirectional
    this.#queue = []
    this.queued = 0
    this.sent = 0
    this.sendLimit = streamWindow
    this.#finQueued = false
    this.finSent = false
    this.#resetSent = false
    this.#senderWaits = false
    this.#sendOver = !this.canSend
    this.canReceive = !isLocal || !isUnidirectional
    this.received = 0
    this.#consumed = 0
    this.#receiveLimit = streamWindow
    this.#window = streamWindow
    this.#stopped = false
    this.#receiveOver = !this.canReceive
    this.#lost = false
    this.#closed = false
    this.lastArrival = 0
    this.windowGrowth = Infinity
  }

  // ── QuicStream ──────────────────────────────────────────────────────────────────────────────────

  send(buffer: Uint8Array, start: number, limit: number, fin: boolean): boolean {
    return this.#take(Buffer.from(buffer.subarray(start, limit)), fin)
  }

  sendOwned(chunk: Uint8Array, fin: boolean): boolean {
    return this.#take(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength), fin)
  }

  #take(bytes: Buffer, fin: boolean): boolean {
    const connection = this.#connection
    if (!this.canSend) connection.faults.push(`send on stream ${this.id}, which the peer sends on`)
    if (this.#resetSent || this.#closed || connection.isOver) return false
    if (this.#finQueued) connection.faults.push(`send after FIN on stream ${this.id}`)
    if (bytes.length > 0) this.#queue.push(bytes)
    this.queued += bytes.length
    this.#finQueued = fin
    connection.dirty(this)
    if (this.queued < connection.options.sendBuffer) return true
    this.#senderWaits = true
    return false
  }

  consume(byteCount: number): void {
    if (this.#closed || this.#stopped || this.#lost || this.#connection.isOver) return
    this.#consumed += byteCount
    if (this.#consumed > this.received) this.#connection.faults.push(`more consumed than came on stream ${this.id}`)
    this.#connection.credit(byteCount)
    const window = this.#window
    const allowed = this.#consumed + window
    if (this.#receiveOver || allowed < this.#receiveLimit + window / 2) return
    this.#receiveLimit = allowed
    this.#connection.toPeer(() => {
      const { other } = this
      if (other === undefined) return
      other.sendLimit = Math.max(other.sendLimit, allowed)
      other.#connection.dirty(other)
    })
  }

  reset(errorCode: number): void {
    if (!this.canSend || this.#resetSent || this.#sendOver || this.#closed || this.#connection.isOver) return
    this.#resetSent = true
    this.#queue.length = 0
    this.queued = 0
    this.#connection.announce(this, (other) => {
      other.#receiveReset(errorCode)
      other.#connection.toPeer(() => this.#sendArrived())
    })
  }

  stopSending(errorCode: number): void {
    if (!this.canReceive || this.#stopped || this.#receiveOver || this.#closed || this.#connection.isOver) return
    this.#stopped = true
    // What was not consumed is nobody's any more.
    this.#connection.credit(this.received - this.#consumed)
    this.#consumed = this.received
    this.#connection.announce(this, (other) => other.#receiveStopSending(errorCode))
  }

  limitWindow(byteCount: number): void {
    this.#window = byteCount
  }

  /** Its windows never grow: what they may is taken note of. */
  limitWindowGrowth(byteCount: number): void {
    this.windowGrowth = byteCount
  }

  setPriority(urgency: number, incremental: boolean): void {
    if (!(urgency >= 0 && urgency <= 7 && typeof incremental === 'boolean')) this.#connection.faults.push('a priority there is none of')
  }

  // ── The run ─────────────────────────────────────────────────────────────────────────────────────

  /** Something may leave now. */
  get isReady(): boolean {
    if (this.#resetSent || !this.canSend) return false
    if (this.queued > 0) return this.sent < this.sendLimit && this.#connection.sendWindow > 0
    return this.#finQueued && !this.finSent
  }

  /** Sends a piece of at most `most` octets. */
  sendPiece(most: number): void {
    const connection = this.#connection
    const count = Math.min(most, this.queued, this.sendLimit - this.sent, connection.sendWindow)
    const piece = this.#cut(count)
    const fin = this.#finQueued && this.queued === 0
    this.sent += count
    connection.sendWindow -= count
    this.finSent = fin
    const writable = this.#senderWaits && this.queued * 2 <= connection.options.sendBuffer
    if (writable) this.#senderWaits = false
    connection.announce(this, (other) => {
      other.#receivePiece(piece, fin)
      if (fin) other.#connection.toPeer(() => this.#sendArrived())
    })
    this.handler.onSent(count, writable)
  }

  #cut(count: number): Buffer {
    const pieces: Buffer[] = []
    let left = count
    while (left > 0) {
      const first = this.#queue[0] as Buffer
      if (first.length <= left) this.#queue.shift()
      else this.#queue[0] = first.subarray(left)
      pieces.push(first.subarray(0, left))
      left -= Math.min(left, first.length)
    }
    this.queued -= count
    return Buffer.concat(pieces)
  }

  #sendArrived(): void {
    this.#sendOver = true
    this.#maybeClose()
  }

  // ── Arrivals, in a run ──────────────────────────────────────────────────────────────────────────

  #receivePiece(piece: Buffer, fin: boolean): void {
    const connection = this.#connection
    if (this.#receiveOver) return connection.credit(piece.length)
    if (fin) this.#receiveOver = true
    if (this.#stopped) connection.credit(piece.length)
    else {
      this.received += piece.length
      // Octets around the piece and a buffer that is overwritten: an engine must keep neither.
      const before = connection.world.random.integer(0, 3)
      const buffer = Buffer.alloc(before + piece.length + 3, 0x58)
      piece.copy(buffer, before)
      this.handler.onData(buffer, before, before + piece.length, fin)
      buffer.fill(0xdb)
    }
    this.#maybeClose()
  }

  #receiveReset(errorCode: number): void {
    if (this.#receiveOver) return
    this.#receiveOver = true
    const connection = this.#connection
    // What did not come, or was not consumed, is the connection's window all the same.
    const { other } = this
    connection.credit(Math.max(0, (other?.sent ?? 0) - this.#consumed))
    this.#lost = true
    if (!this.#stopped) this.handler.onReset(errorCode)
    this.#maybeClose()
  }

  #receiveStopSending(errorCode: number): void {
    if (this.#sendOver || this.#resetSent) return
    this.reset(errorCode)
    this.handler.onStopSending(errorCode)
  }

  #maybeClose(): void {
    if (this.#closed || !this.#sendOver || !this.#receiveOver) return
    this.#closed = true
    if (!this.#stopped && !this.#lost) this.#connection.credit(this.received - this.#consumed)
    this.#connection.forget(this)
    this.handler.onClose()
  }
}
