import type { Codec, CodecSink } from './codec.ts'
import { CloseCode, isCloseCode } from './close-code.ts'
import { largestControl, Opcode } from './frame.ts'
import { FrameReader } from './frame-reader.ts'
import { Gathering } from './gathering.ts'
import type { WebSocketLimits } from './limits.ts'
import { applyMask, rotateKey } from './mask.ts'
import type { WebSocketOptions } from './options.ts'
import { Utf8Reader } from './utf8.ts'

/** What a {@link Receiver} tells its connection. Nothing of it throws. */
export interface ReceiverOwner extends CodecSink {
  receivedMessage(buffer: Uint8Array, start: number, limit: number, binary: boolean): void
  receivedControl(opcode: number, buffer: Uint8Array, start: number, limit: number): void
  receivedClose(code: number, reason: string): void
  /** The peer ended its direction of the tunnel, and all that came before was looked at. */
  receivedEnd(): void
  /** The peer broke a rule: `code` tells it which. */
  failed(code: number, message: string): void
  /** `byteCount` octets need not be held any more. */
  credit(byteCount: number): void
}

/**
 * What arrives: frames, put together to messages. A frame that is whole and needs nothing to be done is
 * handed on where it lies. While the handler pauses, and while the codec inflates, input waits and no
 * credit is given; octets that are not looked at any more are thrown away, up to a limit.
 */
export class Receiver {
  readonly #owner: ReceiverOwner
  readonly #reader: FrameReader
  readonly #codec: Codec | undefined
  readonly #limits: WebSocketLimits
  readonly #utf8: Utf8Reader
  /** The message that is not complete. */
  readonly #message: Gathering
  /** Input that waits. */
  readonly #backlog: Gathering
  /** A control frame that did not arrive in one piece. */
  #control: Uint8Array | undefined
  #controlLength: number

  paused: boolean
  /** Messages are thrown away. */
  discarding: boolean
  /** Nothing is looked at any more: a Close came, or a fault, or the exchange is over. */
  stopped: boolean
  /** The bytes of the message being told may be kept; it is, by whom it is told to. */
  keepable: boolean
  kept: boolean
  #inflating: boolean
  /** What was inflated came in a pause, and waits as `#message`. */
  #holding: boolean
  /** Within a call of the codec. */
  #inCodec: boolean
  /** Reading, perhaps within a call of the handler. */
  #running: boolean
  /** The peer's end came. */
  #ended: boolean
  #toldEnd: boolean
  /** Octets looked at, for which no credit was given yet. */
  #owed: number
  /** Octets thrown away. */
  #drained: number

  constructor(owner: ReceiverOwner, options: WebSocketOptions, limits: WebSocketLimits) {
    this.#owner = owner
    this.#reader = new FrameReader(options.role === 'server', options.deflate !== undefined, limits)
    this.#codec = options.deflate?.codec
    this.#limits = limits
    this.#utf8 = new Utf8Reader(options.isUtf8)
    this.#message = new Gathering()
    this.#backlog = new Gathering()
    this.#control = undefined
    this.#controlLength = 0
    this.paused = false
    this.discarding = false
    this.stopped = false
    this.keepable = false
    this.kept = false
    this.#inflating = false
    this.#holding = false
    this.#inCodec = false
    this.#running = false
    this.#ended = false
    this.#toldEnd = false
    this.#owed = 0
    this.#drained = 0
  }

  get #halted(): boolean {
    return this.paused || this.#inflating || this.stopped || this.#holding
  }

  receive(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    if (end) this.#ended = true
    if (this.stopped) this.#drain(limit - start)
    else if (this.#halted || this.#backlog.length > 0) this.#keep(buffer, start, limit)
    else {
      const at = this.#run(buffer, start, limit)
      if (this.stopped) this.#drain(limit - at)
      else if (at < limit) this.#keep(buffer, at, limit)
    }
    this.#settle()
  }

  /** Looks at what waits, if it need not any longer. */
  resume(): void {
    if (this.#running) return
    if (this.#holding && !this.paused) this.#tellHeld()
    const backlog = this.#backlog
    while (backlog.length > 0 && !this.#halted) {
      backlog.start = this.#run(backlog.buffer, backlog.start, backlog.limit)
    }
    if (this.stopped) this.#drain(backlog.length)
    if (this.stopped || backlog.length === 0) backlog.clear()
    this.#settle()
  }

  /** Nothing more is looked at, and nothing held. */
  stop(): void {
    this.stopped = true
    if (!this.#running) this.resume()
  }

  #keep(buffer: Uint8Array, start: number, limit: number): void {
    if (start < limit) this.#backlog.append(buffer, start, limit, Infinity)
  }

  #drain(byteCount: number): void {
    this.#drained += byteCount
    // Whoever still sends after this waits, until this side is done with closing.
    if (this.#drained <= this.#limits.drainSize) this.#owed += byteCount
  }

  /** Gives credit for what was looked at, unless its message is not accepted yet, and tells of the end. */
  #settle(): void {
    if (this.#running || (this.#inflating && !this.stopped)) return
    // What is being inflated is the codec's to read until it has a result.
    if (this.stopped && !this.#inflating) this.#message.clear()
    if (this.#owed > 0) {
      const owed = this.#owed
      this.#owed = 0
      this.#owner.credit(owed)
    }
    if (!this.#ended || this.#toldEnd || (this.#halted && !this.stopped) || this.#backlog.length > 0) return
    this.#toldEnd = true
    this.#owner.receivedEnd()
  }

  /** Reads `buffer[at, limit)`; returns where it had to stop. */
  #run(buffer: Uint8Array, start: number, limit: number): number {
    const reader = this.#reader
    let at = start
    this.#running = true
    while (at < limit && !this.#halted) {
      if (!reader.open) {
        at = reader.read(buffer, at, limit)
        if (reader.fault !== '') {
          this.#owner.failed(reader.faultCode, reader.fault)
          break
        }
        if (!reader.open) break
      }
      const count = reader.left < limit - at ? reader.left : limit - at
      // A frame is told when its payload begins, or is empty; its header alone is nothing.
      if (count === 0 && reader.left > 0) break
      const end = at + count
      if (reader.key !== 0) {
        applyMask(buffer, at, end, reader.key)
        reader.key = rotateKey(reader.key, count)
      }
      reader.left -= count
      const begin = at
      at = end
      if (reader.control !== 0) this.#receiveControl(buffer, begin, end)
      else this.#receiveContent(buffer, begin, end)
    }
    this.#running = false
    this.#owed += at - start
    return at
  }

  // ── Messages ────────────────────────────────────────────────────────────────────────────────────

  #receiveContent(buffer: Uint8Array, start: number, limit: number): void {
    const reader = this.#reader
    const message = this.#message
    const { compressed, opcode } = reader
    const isFirst = reader.fragments === 1 && message.length === 0
    const frameEnds = reader.left === 0
    const ends = frameEnds && reader.fin
    if (frameEnds) reader.finish()
    if (this.discarding) return
    if (isFirst && ends) {
      // All there is lies here, in one piece.
      if (compressed) this.#inflate(buffer, start, limit, false)
      else this.#accept(buffer, start, limit, opcode, false)
      return
    }
    if (!compressed && opcode === Opcode.Text) {
      if (isFirst) this.#utf8.reset()
      // RFC 6455 §8.1; what cannot become UTF-8 is not waited for.
      if (!this.#utf8.read(buffer, start, limit) || (ends && !this.#utf8.complete)) return this.#failText()
    }
    message.append(buffer, start, limit, reader.messageSize)
    if (!ends) return
    if (compressed) this.#inflate(message.buffer, 0, message.limit, true)
    else this.#tell(message.buffer, 0, message.limit, opcode === Opcode.Binary, message.length * 2 >= message.buffer.length)
    if (!this.#inflating) this.#dropMessage()
  }

  #dropMessage(): void {
    if (this.kept) this.#message.forget()
    else this.#message.clear()
    this.kept = false
  }

  /** The message is complete, but text may be none. */
  #accept(buffer: Uint8Array, start: number, limit: number, opcode: number, keepable: boolean): void {
    if (opcode === Opcode.Text && !this.#utf8.isText(buffer, start, limit)) this.#failText()
    else this.#tell(buffer, start, limit, opcode === Opcode.Binary, keepable)
  }

  #tell(buffer: Uint8Array, start: number, limit: number, binary: boolean, keepable: boolean): void {
    this.keepable = keepable
    this.#owner.receivedMessage(buffer, start, limit, binary)
    this.keepable = false
  }

  #failText(): void {
    this.#owner.failed(CloseCode.InvalidPayload, 'text that is not UTF-8')
  }

  // ── Compressed messages ─────────────────────────────────────────────────────────────────────────

  #inflate(buffer: Uint8Array, start: number, limit: number, kept: boolean): void {
    this.#inflating = true
    this.#inCodec = true
    ;(this.#codec as Codec).inflate(this.#owner, buffer, start, limit, kept, this.#limits.maxMessageSize)
    this.#inCodec = false
  }

  /** The codec's result. */
  inflated(buffer: Uint8Array, start: number, limit: number, owned: boolean): void {
    if (!this.#finishInflating()) return
    if (this.paused) {
      this.#message.clear()
      this.#message.append(buffer, start, limit, limit - start)
      this.#holding = true
      return
    }
    const wasRunning = this.#running
    this.#running = true
    if (!this.discarding) this.#accept(buffer, start, limit, this.#reader.opcode, owned)
    this.kept = false
    this.#running = wasRunning
    this.#goOn()
  }

  #tellHeld(): void {
    const { buffer, limit } = this.#message
    this.#holding = false
    this.#running = true
    if (!this.discarding && !this.stopped) this.#accept(buffer, 0, limit, this.#reader.opcode, true)
    this.#running = false
    this.#dropMessage()
  }

  inflateFailed(code: number, message: string): void {
    if (!this.#finishInflating()) return
    this.#owner.failed(code, message)
    this.#goOn()
  }

  /** False: nobody waits for the result any more. */
  #finishInflating(): boolean {
    if (!this.#inflating) return false
    this.#inflating = false
    if (!this.stopped) return true
    this.#goOn()
    return false
  }

  #goOn(): void {
    if (this.#inCodec) return
    this.#message.clear()
    this.resume()
  }

  // ── Control frames ──────────────────────────────────────────────────────────────────────────────

  #receiveControl(buffer: Uint8Array, start: number, limit: number): void {
    const reader = this.#reader
    if (reader.left === 0) reader.finish()
    if (reader.left === 0 && this.#controlLength === 0) {
      this.#acceptControl(reader.control, buffer, start, limit)
      return
    }
    const control = (this.#control ??= new Uint8Array(largestControl))
    while (start < limit) control[this.#controlLength++] = buffer[start++] as number
    if (reader.left > 0) return
    const length = this.#controlLength
    this.#controlLength = 0
    this.#control = undefined
    this.#acceptControl(reader.control, control, 0, length)
  }

  #acceptControl(opcode: number, buffer: Uint8Array, start: number, limit: number): void {
    if (opcode === Opcode.Close) this.#acceptClose(buffer, start, limit)
    else this.#owner.receivedControl(opcode, buffer, start, limit)
  }

  #acceptClose(buffer: Uint8Array, start: number, limit: number): void {
    if (start === limit) return this.#owner.receivedClose(CloseCode.NoStatus, '')
    // RFC 6455 §5.5.1
    if (limit - start === 1) return this.#owner.failed(CloseCode.ProtocolError, 'half a close code')
    const code = ((buffer[start] as number) << 8) | (buffer[start + 1] as number)
    // RFC 6455 §7.4
    if (!isCloseCode(code)) return this.#owner.failed(CloseCode.ProtocolError, `close code ${code}`)
    if (!this.#utf8.isText(buffer, start + 2, limit)) return this.#owner.failed(CloseCode.InvalidPayload, 'a reason that is not UTF-8')
    this.#owner.receivedClose(code, utf8Slice.call(buffer, start + 2, limit))
  }
}

const { utf8Slice } = Buffer.prototype as unknown as { utf8Slice(this: Uint8Array, start: number, limit: number): string }
