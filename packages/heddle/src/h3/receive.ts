import { SectionRole, type FieldSection } from '../fieldcode/index.ts'
import { lengthFault, ProtocolError, type Head } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode, FrameType, isHttp2Frame } from './frame.ts'
import { Inbound } from './inbound.ts'
import { Stage } from './lifetime.ts'
import { answerRequest, contentTooLarge, fieldsTooLarge, receiveRequest, receiveResponse, receiveTrailers } from './receive-message.ts'
import { Phase } from './state.ts'
import type { Stream } from './stream.ts'

const none = new Uint8Array(0)
/** Less content than this in a frame is next to nothing; the smallest message of gRPC has 5 octets. */
const leastContent = 5
/** Coded, a section is seldom longer than decoded; one that is by more than this is not worth decoding. */
const codingSlack = 16_384

/**
 * Reads the frames of request streams (RFC 9114 §4.1), at any split. DATA goes to its handler as it arrives, a field
 * block is put together unless it stands complete in the caller's buffer, and everything else is skipped.
 */
export class Receiver {
  /** Octets allocated for field blocks that are not complete. */
  pinned: number
  readonly #owner: Connection
  /** Octets of this call that no handler has to consume. */
  #credit: number

  constructor(owner: Connection) {
    this.pinned = 0
    this.#owner = owner
    this.#credit = 0
  }

  receive(stream: Stream, buffer: Uint8Array, start: number, limit: number, fin: boolean): void {
    if (this.#owner.lifetime.stage !== Stage.Open) return
    if (stream.inbound?.blocked === true) return stream.inbound.keep(buffer, start, limit, fin)
    this.#credit = 0
    this.#read(stream, buffer, start, limit, fin)
    if (this.#credit > 0) stream.quic?.consume(this.#credit)
  }

  #read(stream: Stream, buffer: Uint8Array, start: number, limit: number, fin: boolean): void {
    const { header } = stream
    let at = start
    while (at < limit) {
      if (stream.closed) {
        this.#credit += limit - at
        if (fin) stream.receiveOver = true
        return
      }
      if (stream.inFrame) at = this.#readPayload(stream, buffer, at, limit, fin)
      else {
        const from = at
        at = header.read(buffer, at, limit)
        this.#credit += at - from
        if (!header.isComplete) break
        this.#startFrame(stream, header.type, header.length, fin && limit - at === header.length)
        // A block or content of no octets is complete already.
        if (stream.inFrame && stream.frameLeft === 0) at = this.#readPayload(stream, buffer, at, at, fin && at === limit)
      }
      if (this.#owner.lifetime.stage !== Stage.Open) return
      if (stream.inbound?.blocked === true) return stream.inbound.keep(buffer, at, limit, fin)
    }
    if (fin) this.#finish(stream)
  }

  // ── Frames ──────────────────────────────────────────────────────────────────────────────────────

  /** `ends`: the stream ends with this frame. */
  #startFrame(stream: Stream, type: number, length: number, ends: boolean): void {
    stream.inFrame = true
    stream.frameLeft = length
    const { receiving } = stream
    switch (type) {
      case FrameType.Data:
        // RFC 9114 §4.1: HEADERS, DATA, HEADERS, in this order.
        if (receiving !== Phase.Content) return this.#unexpected(receiving === Phase.Head ? 'DATA before the head' : 'DATA after trailers')
        return this.#admit(stream, length, ends)
      case FrameType.Headers:
        if (receiving === Phase.Ended) return this.#unexpected('HEADERS after trailers')
        // RFC 9114 §4.4
        if (stream.tunnel && receiving === Phase.Content) return this.#unexpected('HEADERS in a tunnel')
        if (length > this.#owner.limits.maxFieldSectionSize + codingSlack) this.#refuseBlock(stream)
        return
      case FrameType.PushPromise:
        // RFC 9114 §7.2.5: no push was ever allowed (we send no MAX_PUSH_ID), and clients never push.
        if (this.#owner.isServer) return this.#unexpected('PUSH_PROMISE from a client')
        return this.#owner.lifetime.fail(ErrorCode.IdError, 'PUSH_PROMISE without a MAX_PUSH_ID')
      case FrameType.CancelPush:
      case FrameType.Settings:
      case FrameType.Goaway:
      case FrameType.Origin:
      case FrameType.MaxPushId:
      case FrameType.PriorityUpdate:
      case FrameType.PushPriorityUpdate:
        // RFC 9114 §7.2, RFC 9218 §7.2, RFC 9412 §2
        return this.#unexpected('a frame of the control stream on a request stream')
      default:
        if (isHttp2Frame(type)) return this.#unexpected('a frame of HTTP/2')
        // RFC 9114 §9: frames of unknown types are ignored, however long they are.
        if (length < leastContent) this.#spendEmpty()
    }
  }

  #unexpected(message: string): void {
    this.#owner.lifetime.fail(ErrorCode.FrameUnexpected, message)
  }

  /** A frame that carries next to nothing; false: there were too many. */
  #spendEmpty(): boolean {
    const { emptyFrames, now, lifetime } = this.#owner
    if (emptyFrames.take(now)) return true
    lifetime.fail(ErrorCode.ExcessiveLoad, 'too many frames that carry next to nothing')
    return false
  }

  #readPayload(stream: Stream, buffer: Uint8Array, start: number, limit: number, fin: boolean): number {
    const end = stream.frameLeft < limit - start ? start + stream.frameLeft : limit
    stream.frameLeft -= end - start
    const completes = stream.frameLeft === 0
    if (completes) stream.inFrame = false
    const { type } = stream.header
    if (type === FrameType.Data) this.#deliver(stream, buffer, start, end, fin && completes && end === limit)
    else {
      this.#credit += end - start
      if (type === FrameType.Headers) this.#readBlock(stream, buffer, start, end, completes, fin && end === limit)
    }
    return end
  }

  // ── Content ─────────────────────────────────────────────────────────────────────────────────────

  /** The frame's content is `length` octets, as is known before any of it is handed on. */
  #admit(stream: Stream, length: number, ends: boolean): void {
    const { exchanges, limits } = this.#owner
    if (length < leastContent && !ends && this.#isWaste(stream, length) && !this.#spendEmpty()) return
    if (stream.closed) return
    stream.receivedLength += length
    const fault = lengthFault(stream.expectedLength, stream.receivedLength, false)
    if (fault !== '') exchanges.fault(stream, ErrorCode.MessageError, fault)
    else if (stream.receivedLength > limits.maxContentLength && !stream.discarding) this.#refuseContent(stream)
  }

  /**
   * A frame with hardly any content is waste if it is empty, or if it could have been part of the one before: that came
   * in the same moment. One that comes alone is what its sender had to say, such as the next word of a text while it is
   * written. Servers send such on many streams at once, and a path that holds them up brings many together.
   */
  #isWaste(stream: Stream, length: number): boolean {
    if (length === 0) return true
    return this.#owner.isServer && stream.receivedLength > 0 && stream.receivedAt === this.#owner.now
  }

  #deliver(stream: Stream, buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const { exchanges, now } = this.#owner
    const count = limit - start
    if (end) {
      stream.receiveOver = true
      const fault = stream.closed ? '' : lengthFault(stream.expectedLength, stream.receivedLength, true)
      if (fault !== '') exchanges.fault(stream, ErrorCode.MessageError, fault)
    }
    if (stream.closed || stream.discarding) this.#credit += count
    if (stream.closed) return
    stream.receivedAt = now
    if (!stream.discarding && (count > 0 || end)) {
      stream.unconsumed += count
      exchanges.unconsumed += count
      try {
        stream.handler.onData(buffer, start, limit, end)
      } catch (error) {
        exchanges.handlerFailed(stream, error)
      }
    }
    if (end && !stream.closed) exchanges.receivingEnded(stream)
  }

  #refuseContent(stream: Stream): void {
    const { exchanges, isServer, limits } = this.#owner
    const facts = { scope: 'stream' } as const
    const error = new ProtocolError(
      `more than ${limits.maxContentLength} octets of content`,
      isServer ? 413 : 0,
      'CONTENT_TOO_LARGE',
      facts,
    )
    if (isServer && stream.sending === Phase.Head) this.#answer(stream, contentTooLarge, error)
    else exchanges.reset(stream, ErrorCode.RequestCancelled, error)
  }

  /** Server: ends the exchange with an answer of ours. */
  #answer(stream: Stream, answer: Head, error: ProtocolError): void {
    const { exchanges } = this.#owner
    answerRequest(this.#owner, stream, answer)
    exchanges.close(stream, error)
  }

  // ── Field blocks ────────────────────────────────────────────────────────────────────────────────

  #readBlock(stream: Stream, buffer: Uint8Array, start: number, limit: number, completes: boolean, end: boolean): void {
    if (stream.closed) return
    const { inbound } = stream
    if (completes && inbound === undefined) return this.#decode(stream, buffer, start, limit, end)
    const pieces = inbound ?? (stream.inbound = new Inbound())
    this.pinned += pieces.append(buffer, start, limit)
    if (!completes) return
    const { block, length } = pieces
    this.forget(stream)
    this.#decode(stream, block, 0, length, end)
  }

  /** Drops what was kept of `stream`. */
  forget(stream: Stream): void {
    if (stream.inbound === undefined) return
    this.pinned -= stream.inbound.block.length
    stream.inbound = undefined
  }

  #decode(stream: Stream, buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const { isServer, qpack, lifetime } = this.#owner
    const role = stream.receiving === Phase.Content ? SectionRole.Trailers : isServer ? SectionRole.Request : SectionRole.Response
    const section = qpack.decode(stream, buffer, start, limit, role)
    if (section !== undefined) return this.#receiveSection(stream, section, end)
    if (lifetime.stage !== Stage.Open) return
    stream.inbound = new Inbound()
    stream.inbound.blocked = true
  }

  #receiveSection(stream: Stream, section: FieldSection, end: boolean): void {
    const owner = this.#owner
    if (end) stream.receiveOver = true
    if (stream.receiving === Phase.Content) receiveTrailers(owner, stream, section)
    else if (owner.isServer) receiveRequest(owner, stream, section, end)
    else receiveResponse(owner, stream, section, end)
  }

  /** QPACK has what the block of `stream` waited for: it is read now, and what came behind it. */
  unblocked(stream: Stream, section: FieldSection): void {
    const { inbound } = stream
    if (inbound === undefined || stream.closed) return
    this.forget(stream)
    const { backlog, fin } = inbound
    this.#receiveSection(stream, section, fin && backlog.length === 0)
    for (const [i, chunk] of backlog.entries()) this.receive(stream, chunk, 0, chunk.length, fin && i === backlog.length - 1)
    if (fin && backlog.length === 0) this.receive(stream, none, 0, 0, true)
  }

  #refuseBlock(stream: Stream): void {
    const { exchanges, isServer } = this.#owner
    const error = new ProtocolError('a field block too large to decode', isServer ? 431 : 0, 'FIELDS_TOO_LARGE', { scope: 'stream' })
    if (isServer && stream.receiving === Phase.Head) this.#answer(stream, fieldsTooLarge, error)
    else exchanges.reset(stream, ErrorCode.ExcessiveLoad, error)
  }

  // ── The end ─────────────────────────────────────────────────────────────────────────────────────

  #finish(stream: Stream): void {
    const { lifetime, exchanges, isServer } = this.#owner
    const ended = stream.receiveOver
    stream.receiveOver = true
    if (stream.closed) return
    // RFC 9114 §7.1
    if (stream.inFrame || stream.header.isOpen) return lifetime.fail(ErrorCode.FrameError, 'a stream that ends within a frame')
    if (stream.receiving === Phase.Head) {
      // RFC 9114 §4.1
      if (isServer) return exchanges.fault(stream, ErrorCode.RequestIncomplete, 'a request without a head')
      return exchanges.fault(stream, ErrorCode.MessageError, 'the stream ended without a response')
    }
    if (stream.receiving === Phase.Content && !ended) this.#deliver(stream, none, 0, 0, true)
  }
}
