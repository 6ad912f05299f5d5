import { UsageError, type Exchange } from '../http/index.ts'
import type { Codec, CodecSink } from './codec.ts'
import { codecSettings } from './deflate.ts'
import { Flag, Opcode } from './frame.ts'
import { encodeText, FrameWriter, payloadAt, scratch, scratchText } from './frame-writer.ts'
import { Ledger } from './ledger.ts'
import type { WebSocketLimits } from './limits.ts'
import type { PreparedMessage } from './message-handler.ts'
import type { WebSocketOptions } from './options.ts'

const none = new Uint8Array(0)
const defaultThreshold = { takeover: 128, noTakeover: 1_024 }

/** A message, or a part of one, that waits for its turn: the codec is busy with one before it. */
class Waiting {
  /** Opcode and flags. */
  readonly first: number
  readonly bytes: Uint8Array
  readonly compress: boolean
  /** A message that is encoded already, instead of `bytes`. */
  readonly prepared: PreparedMessage | undefined
  next: Waiting | undefined

  constructor(first: number, bytes: Uint8Array, compress: boolean, prepared: PreparedMessage | undefined) {
    this.first = first
    this.bytes = bytes
    this.compress = compress
    this.prepared = prepared
    this.next = undefined
  }
}

/**
 * What leaves: messages in order, compressed or not, whole or in parts. While the codec is at work what
 * comes behind waits; control frames do not. A message that needs to wait for nothing is on the exchange
 * when the call returns.
 */
export class Sender {
  readonly ledger: Ledger
  readonly writer: FrameWriter
  messagesAccepted: number
  /** A message in parts is open. */
  inParts: boolean
  /** The last sender was told to wait. */
  waits: boolean
  /** Octets of what waits for the codec, what it works on included. */
  queuedBytes: number

  readonly #sink: CodecSink
  readonly #codec: Codec | undefined
  /** Of this side's compressor; 0: it cannot compress as agreed. */
  readonly #windowBits: number
  readonly #takeover: boolean
  readonly #threshold: number
  readonly #fragmentSize: number
  readonly #masks: boolean
  readonly #maxQueuedBytes: number
  #firstWaiting: Waiting | undefined
  #lastWaiting: Waiting | undefined

  // The message in parts: what its next part's first octet is, and whether it is compressed.
  #partFirst: number
  #partBinary: boolean
  #partCompress: boolean
  /** Text in parts: half of a surrogate pair. */
  #half: string

  /** The codec has a message, or a part: its first octet, its size uncompressed. */
  #deflating: boolean
  #deflateFirst: number
  #deflateSize: number
  /** Within a call of the codec. */
  #inCodec: boolean
  /** Something was dropped. */
  #lost: boolean

  constructor(exchange: Exchange, sink: CodecSink, options: WebSocketOptions, limits: WebSocketLimits) {
    const { role, deflate, fragmentSize = Infinity, maskKey } = options
    if (!(fragmentSize >= 1)) throw new UsageError(`fragmentSize is 1 or more, and this is ${fragmentSize}`)
    if (role === 'client' && maskKey === undefined) throw new UsageError('a client needs the option maskKey')
    const settings = deflate === undefined ? undefined : codecSettings(role, deflate.parameters)
    const takeover = settings?.deflateTakeover === true
    this.ledger = new Ledger()
    this.#masks = role === 'client'
    this.writer = new FrameWriter(exchange, this.#masks ? maskKey : undefined)
    this.messagesAccepted = 0
    this.inParts = false
    this.waits = false
    this.queuedBytes = 0
    this.#sink = sink
    this.#codec = settings !== undefined && settings.deflateWindowBits > 0 ? deflate?.codec : undefined
    this.#windowBits = settings?.deflateWindowBits ?? 0
    this.#takeover = takeover
    this.#threshold = deflate?.threshold ?? (takeover ? defaultThreshold.takeover : defaultThreshold.noTakeover)
    this.#fragmentSize = Math.floor(fragmentSize)
    this.#maxQueuedBytes = limits.maxQueuedBytes
    this.#firstWaiting = undefined
    this.#lastWaiting = undefined
    this.#partFirst = 0
    this.#partBinary = false
    this.#partCompress = false
    this.#half = ''
    this.#deflating = false
    this.#deflateFirst = 0
    this.#deflateSize = 0
    this.#inCodec = false
    this.#lost = false
  }

  /** Nothing waits for the codec. */
  get idle(): boolean {
    return !this.#deflating && this.#firstWaiting === undefined
  }

  get writable(): boolean {
    return this.writer.writable && this.queuedBytes < this.#maxQueuedBytes
  }

  /** Everything that was accepted has left. */
  get lostNothing(): boolean {
    return this.idle && !this.#lost && this.ledger.waitingMessages === 0
  }

  get bufferedAmount(): number {
    return this.ledger.payload + this.queuedBytes
  }

  // ── Whole messages ──────────────────────────────────────────────────────────────────────────────

  sendText(text: string, compress: boolean): boolean {
    this.#checkWhole()
    const first = Flag.Fin | Opcode.Text
    if (text.length > scratchText) {
      const bytes = Buffer.from(text, 'utf8')
      return this.#send(first, bytes, 0, bytes.length, this.#isWorthIt(compress, bytes.length), true)
    }
    const limit = encodeText(text)
    return this.#send(first, scratch, payloadAt, limit, this.#isWorthIt(compress, limit - payloadAt), false)
  }

  sendBytes(bytes: Uint8Array, binary: boolean, compress: boolean, owned: boolean): boolean {
    this.#checkWhole()
    const first = Flag.Fin | (binary ? Opcode.Binary : Opcode.Text)
    return this.#send(first, bytes, 0, bytes.length, this.#isWorthIt(compress, bytes.length), owned)
  }

  sendPrepared(message: PreparedMessage, compress: boolean): boolean {
    this.#checkWhole()
    this.messagesAccepted++
    const worthIt = this.#isWorthIt(compress, message.payload.length)
    if (this.idle) this.#writePrepared(message, worthIt)
    else this.#wait(new Waiting(0, message.payload, worthIt, message))
    return this.#answer()
  }

  #checkWhole(): void {
    // RFC 6455 §5.4: the frames of one message are not mixed with those of another.
    if (this.inParts) throw new UsageError('a message that was begun with startMessage is not complete')
  }

  #isWorthIt(compress: boolean, length: number): boolean {
    return compress && this.#codec !== undefined && length >= this.#threshold
  }

  // ── Messages in parts ───────────────────────────────────────────────────────────────────────────

  startMessage(binary: boolean, compress: boolean): void {
    this.#checkWhole()
    this.inParts = true
    this.#partFirst = binary ? Opcode.Binary : Opcode.Text
    this.#partBinary = binary
    this.#partCompress = compress && this.#codec !== undefined
    this.#half = ''
  }

  sendPart(part: string | Uint8Array, end: boolean): boolean {
    if (!this.inParts) throw new UsageError('a part of no message: startMessage comes first')
    const bytes = typeof part === 'string' ? this.#encodePart(part, end) : part
    const first = this.#partFirst | (end ? Flag.Fin : 0)
    this.#partFirst = Opcode.Continuation
    this.inParts = !end
    return this.#send(first, bytes, 0, bytes.length, this.#partCompress, typeof part === 'string')
  }

  #encodePart(part: string, end: boolean): Uint8Array {
    if (this.#partBinary) throw new UsageError('a string in a binary message')
    let text = this.#half + part
    this.#half = ''
    const last = text.charCodeAt(text.length - 1)
    if (!end && last >= 0xd800 && last < 0xdc00) {
      this.#half = text.slice(-1)
      text = text.slice(0, -1)
    }
    return text === '' ? none : Buffer.from(text, 'utf8')
  }

  // ── In order ────────────────────────────────────────────────────────────────────────────────────

  #send(first: number, buffer: Uint8Array, start: number, limit: number, compress: boolean, owned: boolean): boolean {
    this.messagesAccepted++
    if (!this.idle) this.#wait(new Waiting(first, owned ? buffer : copyOf(buffer, start, limit), compress, undefined))
    else if (compress) this.#deflate(first, buffer, start, limit)
    else this.#writeMessage(first, buffer, start, limit, owned, limit - start)
    return this.#answer()
  }

  #answer(): boolean {
    if (this.writable) return true
    this.waits = true
    return false
  }

  #wait(waiting: Waiting): void {
    this.queuedBytes += waiting.bytes.length
    if (this.#lastWaiting === undefined) this.#firstWaiting = waiting
    else this.#lastWaiting.next = waiting
    this.#lastWaiting = waiting
  }

  /** Sends what waits, until the codec is at work again. */
  #pump(): void {
    while (!this.#deflating && this.#firstWaiting !== undefined) {
      const { first, bytes, compress, prepared, next } = this.#firstWaiting
      this.#firstWaiting = next
      if (next === undefined) this.#lastWaiting = undefined
      this.queuedBytes -= bytes.length
      if (prepared !== undefined) this.#writePrepared(prepared, compress)
      else if (compress) this.#deflate(first, bytes, 0, bytes.length)
      else this.#writeMessage(first, bytes, 0, bytes.length, true, bytes.length)
    }
  }

  #deflate(first: number, buffer: Uint8Array, start: number, limit: number): void {
    const size = limit - start
    this.#deflating = true
    this.#deflateFirst = first
    this.#deflateSize = size
    this.queuedBytes += size
    this.#inCodec = true
    ;(this.#codec as Codec).deflate(this.#sink, buffer, start, limit, (first & Flag.Fin) !== 0)
    this.#inCodec = false
  }

  /** The codec's result. True: it came by itself, and the connection may go on. */
  deflated(buffer: Uint8Array, start: number, limit: number, owned: boolean): boolean {
    if (!this.#deflating) return false
    this.#deflating = false
    this.queuedBytes -= this.#deflateSize
    const opcode = this.#deflateFirst & 0x0f
    // RFC 7692 §6.1: in the first frame only.
    const first = opcode === Opcode.Continuation ? this.#deflateFirst : this.#deflateFirst | Flag.Rsv1
    this.#writeMessage(first, buffer, start, limit, owned, this.#deflateSize)
    if (this.#inCodec) return false
    this.#pump()
    return true
  }

  // ── Onto the exchange ───────────────────────────────────────────────────────────────────────────

  #writeMessage(first: number, buffer: Uint8Array, start: number, limit: number, owned: boolean, size: number): void {
    const { writer } = this
    if (limit - start > this.#fragmentSize) this.#writeFragments(first, buffer, start, limit, owned)
    else writer.write(first, buffer, start, limit, owned, false)
    this.ledger.enterMessage(writer.wire, size)
    writer.wire = 0
  }

  #writeFragments(first: number, buffer: Uint8Array, start: number, limit: number, owned: boolean): void {
    // The scratch is needed for the fragments themselves.
    const source = buffer === scratch ? copyOf(buffer, start, limit) : buffer
    const end = buffer === scratch ? source.length : limit
    let at = buffer === scratch ? 0 : start
    let flags = first & ~Flag.Fin
    while (end - at > this.#fragmentSize) {
      this.writer.write(flags, source, at, at + this.#fragmentSize, owned, false)
      at += this.#fragmentSize
      flags = Opcode.Continuation
    }
    this.writer.write(flags | (first & Flag.Fin), source, at, end, owned, false)
  }

  #writePrepared(message: PreparedMessage, compress: boolean): void {
    const { binary, payload } = message
    const compressed = compress ? message.compressedPayload(this.#windowBits) : undefined
    // What it was compressed with is not what this side's compressor and the peer have in common.
    if (compressed !== undefined && this.#takeover) (this.#codec as Codec).resetDeflate(this.#sink)
    const carried = compressed ?? payload
    if (!this.#masks && carried.length <= this.#fragmentSize) {
      this.writer.writeWhole((compressed === undefined ? undefined : message.compressedFrame(this.#windowBits)) ?? message.frame)
      this.ledger.enterMessage(this.writer.wire, payload.length)
      this.writer.wire = 0
      return
    }
    const first = Flag.Fin | (compressed === undefined ? 0 : Flag.Rsv1) | (binary ? Opcode.Binary : Opcode.Text)
    this.#writeMessage(first, carried, 0, carried.length, true, payload.length)
  }

  /** Writes a control frame, past whatever waits. */
  writeControl(opcode: number, payload: Uint8Array, end: boolean): void {
    const { writer, ledger } = this
    writer.write(Flag.Fin | opcode, payload, 0, payload.length, false, end)
    if (opcode === Opcode.Pong) ledger.enterPong(writer.wire)
    else ledger.enterOther(writer.wire)
    writer.wire = 0
  }

  /** Forgets what waits: it is not going to leave. It is still counted by `bufferedAmount`. */
  drop(): void {
    if (this.idle) return
    this.#lost = true
    this.#firstWaiting = undefined
    this.#lastWaiting = undefined
    this.#deflating = false
  }
}

/** A copy, also of a Buffer, whose own `slice` makes none. */
function copyOf(buffer: Uint8Array, start: number, limit: number): Uint8Array {
  return Uint8Array.prototype.slice.call(buffer, start, limit)
}
