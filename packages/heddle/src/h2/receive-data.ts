import { lengthFault, noLength, type Head, ProtocolError, responseHead } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode, Flag, frameHeaderSize, readUint31 } from './frame.ts'
import { Stage } from './lifetime.ts'
import { Phase } from './state.ts'
import type { Stream } from './stream.ts'

const none = new Uint8Array(0)
/** Less content than this in a frame is next to nothing; the smallest message of gRPC has 5 octets. */
const leastContent = 5

/** Reads DATA frames (RFC 9113 §6.1), which are handed on as they arrive: none is ever held. */
export class DataReceiver {
  readonly #owner: Connection
  /** A DATA frame is not complete. */
  isOpen: boolean
  /** Its stream, if that is in the table. */
  #stream: Stream | undefined
  /** Octets of payload still to come, padding included. */
  #left: number
  /** Of those, the padding at the end. */
  #padding: number
  /** The next octet is the padding's length. */
  #readsPadding: boolean
  #end: boolean

  constructor(owner: Connection) {
    this.#owner = owner
    this.isOpen = false
    this.#stream = undefined
    this.#left = 0
    this.#padding = 0
    this.#readsPadding = false
    this.#end = false
  }

  /** Reads the frame at `start`, all of whose `length` octets of payload are there. */
  receiveWhole(buffer: Uint8Array, start: number, length: number): void {
    const payload = start + frameHeaderSize
    const flags = buffer[start + 4] as number
    if ((flags & Flag.Padded) === 0) {
      const stream = this.#judge(buffer, start, length)
      if (this.#owner.lifetime.stage !== Stage.Open) return
      const end = (flags & Flag.EndStream) !== 0
      if (this.#admits(stream, length, end)) this.#deliver(stream, buffer, payload, payload + length, end)
      return
    }
    this.start(buffer, start, length)
    for (let at = payload; this.isOpen && this.#owner.lifetime.stage === Stage.Open;) at = this.receive(buffer, at, payload + length)
  }

  /** Reads the header at `start`; the payload goes to `receive`. */
  start(buffer: Uint8Array, start: number, length: number): void {
    const flags = buffer[start + 4] as number
    const padded = (flags & Flag.Padded) !== 0
    if (padded && length === 0) return this.#owner.lifetime.fail(ErrorCode.FrameSizeError, 'DATA without its padding length')
    const stream = this.#judge(buffer, start, length)
    if (this.#owner.lifetime.stage !== Stage.Open) return
    this.#stream = stream
    this.#left = length
    this.#padding = 0
    this.#readsPadding = padded
    this.#end = (flags & Flag.EndStream) !== 0
    this.isOpen = true
    if (!padded && !this.#admits(stream, length, this.#end)) return
    // Nothing more comes of an empty frame.
    if (length === 0) this.#finishContent(none, 0, 0)
  }

  /** What RFC 9113 §6.1 and RFC 9113 §6.9 say of a DATA frame, before a look at its payload. Undefined: its stream takes no content. */
  #judge(buffer: Uint8Array, start: number, length: number): Stream | undefined {
    const { lifetime, windows, exchanges, liveness } = this.#owner
    const streamId = readUint31(buffer, start + 5)
    const stream = exchanges.table.get(streamId)
    // RFC 9113 §6.9: padding counts, and so do frames of streams that are gone.
    if (!windows.takeReceived(length)) {
      lifetime.fail(ErrorCode.FlowControlError, 'more DATA than the connection allows')
      return undefined
    }
    liveness.contentArrived(length)
    liveness.heardMessage()
    if (stream === undefined) this.#receiveLate(streamId, ((buffer[start + 4] as number) & Flag.EndStream) !== 0)
    else if (stream.receiving === Phase.Ended) exchanges.fault(stream, ErrorCode.StreamClosed, 'DATA after END_STREAM')
    else if (stream.receiving === Phase.Head) exchanges.fault(stream, ErrorCode.ProtocolError, 'DATA before the head')
    else if (!stream.takeReceived(length)) exchanges.fault(stream, ErrorCode.FlowControlError, 'more DATA than the stream allows')
    return stream
  }

  /** DATA of a stream that is gone: under way when we reset it, or a fault of the peer. */
  #receiveLate(streamId: number, end: boolean): void {
    const { lifetime, exchanges } = this.#owner
    if (streamId === 0) return lifetime.fail(ErrorCode.ProtocolError, 'DATA on stream 0')
    if (exchanges.isIdle(streamId)) return lifetime.fail(ErrorCode.ProtocolError, 'DATA on an idle stream')
    if (exchanges.isRemembered(streamId, end) || lifetime.ignores(streamId)) return
    exchanges.receivedAfterEnd(streamId)
  }

  receive(buffer: Uint8Array, start: number, limit: number): number {
    let at = start
    if (this.#readsPadding) {
      this.#readsPadding = false
      this.#padding = buffer[at++] as number
      this.#left--
      // RFC 9113 §6.1
      if (this.#padding > this.#left) {
        this.#owner.lifetime.fail(ErrorCode.ProtocolError, 'more padding than frame')
        return limit
      }
      if (!this.#admits(this.#stream, this.#left - this.#padding, this.#end)) return limit
      // The engine consumes the padding and its length itself.
      this.#credit(1 + this.#padding)
      if (this.#left === this.#padding) this.#finishContent(none, 0, 0)
    }
    const content = Math.min(this.#left - this.#padding, limit - at)
    if (content > 0) {
      this.#left -= content
      if (this.#left === this.#padding) this.#finishContent(buffer, at, at + content)
      else this.#deliver(this.#stream, buffer, at, at + content, false)
      at += content
    }
    if (this.#left > 0 && this.#left === this.#padding) {
      const padding = Math.min(this.#padding, limit - at)
      this.#padding -= padding
      this.#left -= padding
      at += padding
    }
    if (this.#left === 0) this.isOpen = false
    return at
  }

  /** The frame's content is `byteCount` octets, as is known before any of it is handed on. False: the connection is over. */
  #admits(stream: Stream | undefined, byteCount: number, end: boolean): boolean {
    const { lifetime, limits, exchanges } = this.#owner
    if (byteCount < leastContent && !end && this.#isWaste(stream, byteCount) && !this.#owner.emptyFrames.take(this.#owner.now)) {
      lifetime.fail(ErrorCode.EnhanceYourCalm, 'too many frames that carry next to nothing')
      return false
    }
    if (stream === undefined || stream.closed) return true
    stream.receivedLength += byteCount
    const fault = lengthFault(stream.expectedLength, stream.receivedLength, end)
    if (fault !== '') exchanges.fault(stream, ErrorCode.ProtocolError, fault)
    else if (stream.abandonAt > 0) {
      if (stream.receivedLength > stream.abandonBeyond && !end) exchanges.unwanted.abandonUpload(stream)
    } else if (stream.receivedLength > limits.maxContentLength && !stream.discarding) this.#refuseContent(stream, end)
    return lifetime.stage === Stage.Open
  }

  /**
   * A frame with hardly any content is waste if it is empty, or if it could have been part of the one before:
   * that came in the same moment. One that comes alone is what its sender had to say, such as the next word of
   * a text while it is written; it costs no more than a larger one, and the windows bound it. Servers send such
   * on many streams at once, and a path that holds them up brings many together.
   */
  #isWaste(stream: Stream | undefined, byteCount: number): boolean {
    if (byteCount === 0 || stream === undefined) return true
    // A small body in a frame of its own, with the end behind it, is how many clients send one.
    return this.#owner.isServer && stream.receivedLength > 0 && stream.receivedAt === this.#owner.now
  }

  #credit(byteCount: number): void {
    const stream = this.#stream
    if (stream === undefined || stream.closed) this.#owner.credit.giveConnection(byteCount)
    else this.#owner.credit.give(stream, byteCount)
  }

  /** All content of the frame is here. */
  #finishContent(buffer: Uint8Array, start: number, limit: number): void {
    const stream = this.#stream
    this.#stream = undefined
    if (this.#left === 0) this.isOpen = false
    this.#deliver(stream, buffer, start, limit, this.#end)
  }

  #deliver(stream: Stream | undefined, buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const { exchanges, credit, now, isServer } = this.#owner
    const count = limit - start
    if (count === 0 && !end) return
    if (stream === undefined || stream.closed) return credit.giveConnection(count)
    stream.receivedAt = now
    if (stream.discarding) {
      // A client that uploads for nobody is stopped by the stream's window; where an answer may depend on
      // the peer's sending, it goes on.
      if (isServer && !stream.tunnel) credit.giveConnection(count)
      else credit.give(stream, count)
    } else {
      stream.unconsumed += count
      try {
        stream.handler.onData(buffer, start, limit, end)
      } catch (error) {
        exchanges.handlerFailed(stream, error)
      }
    }
    if (end && !stream.closed) exchanges.receivingEnded(stream)
  }

  #refuseContent(stream: Stream, end: boolean): void {
    const { exchanges, isServer, limits, sender } = this.#owner
    const error = new ProtocolError(`more than ${limits.maxContentLength} octets of content`, isServer ? 413 : 0, 'CONTENT_TOO_LARGE', {
      scope: 'stream',
    })
    if (isServer && stream.sending === Phase.Head) {
      sender.sendResponse(stream, contentTooLarge, true, false)
      exchanges.close(stream, error)
      // RFC 9113 §8.1: the answer is complete, and the content is not wanted.
      if (!end) exchanges.unwanted.drainUnanswered(stream.id, noLength)
    } else exchanges.reset(stream, ErrorCode.Cancel, error)
  }
}

export const contentTooLarge: Head = responseHead(413, ['content-length', '0'])
