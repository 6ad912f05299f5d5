import { SectionRole } from '../fieldcode/index.ts'
import type { Instant } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode, Flag, readUint31, smallestMaxFrameSize } from './frame.ts'
import { refuseRequest, receiveRequest, receiveResponse, receiveTrailers } from './receive-message.ts'
import { Phase } from './state.ts'

const none = new Uint8Array(0)

/** Puts field blocks together from HEADERS and CONTINUATION frames (RFC 9113 §4.3), and decodes them. */
export class BlockReceiver {
  /** The stream whose block is not complete; 0: there is none. */
  streamId: number
  /** When it must be complete; Infinity: there is none. */
  deadline: Instant
  /** What PRIORITY_UPDATE said of requests that have not come yet. */
  readonly earlyPriorities: Map<number, string>
  readonly #owner: Connection
  #block: Uint8Array
  #length: number
  #end: boolean
  #dependsOnItself: boolean
  #continuations: number

  constructor(owner: Connection) {
    this.streamId = 0
    this.deadline = Infinity
    this.earlyPriorities = new Map()
    this.#owner = owner
    this.#block = none
    this.#length = 0
    this.#end = false
    this.#dependsOnItself = false
    this.#continuations = 0
  }

  get pinned(): number {
    return this.#block.length
  }

  receiveHeaders(buffer: Uint8Array, payload: number, end: number, flags: number, streamId: number): void {
    const { lifetime, limits, now } = this.#owner
    // RFC 9113 §6.2
    if (streamId === 0) return lifetime.fail(ErrorCode.ProtocolError, 'HEADERS on stream 0')
    let start = payload
    let limit = end
    if ((flags & Flag.Padded) !== 0) {
      if (start >= limit) return lifetime.fail(ErrorCode.FrameSizeError, 'HEADERS without their padding length')
      const padding = buffer[start++] as number
      if (padding > limit - start) return lifetime.fail(ErrorCode.ProtocolError, 'more padding than frame')
      limit -= padding
    }
    this.#dependsOnItself = false
    if ((flags & Flag.Priority) !== 0) {
      if (limit - start < 5) return lifetime.fail(ErrorCode.FrameSizeError, 'HEADERS too short for their priority')
      this.#dependsOnItself = readUint31(buffer, start) === streamId
      start += 5
    }
    this.#end = (flags & Flag.EndStream) !== 0
    if ((flags & Flag.EndHeaders) !== 0) return this.#receiveBlock(buffer, start, limit, streamId)
    this.streamId = streamId
    this.deadline = now + limits.headTimeout
    this.#length = 0
    this.#continuations = 0
    this.#append(buffer, start, limit)
  }

  receiveContinuation(buffer: Uint8Array, start: number, limit: number, flags: number, streamId: number): void {
    const { limits, lifetime } = this.#owner
    // RFC 9113 §6.10
    if (this.streamId === 0) return lifetime.fail(ErrorCode.ProtocolError, 'CONTINUATION without HEADERS')
    // CVE-2024-27316: a block of endless frames.
    if (++this.#continuations > limits.maxContinuations) return lifetime.fail(ErrorCode.EnhanceYourCalm, 'too many CONTINUATION frames')
    if (!this.#append(buffer, start, limit) || (flags & Flag.EndHeaders) === 0) return
    const block = this.#block
    this.#block = none
    this.streamId = 0
    this.deadline = Infinity
    this.#receiveBlock(block, 0, this.#length, streamId)
  }

  #append(buffer: Uint8Array, start: number, limit: number): boolean {
    const { limits, lifetime, emptyFrames, now } = this.#owner
    const count = limit - start
    if (count === 0 && !emptyFrames.take(now)) {
      lifetime.fail(ErrorCode.EnhanceYourCalm, 'too many frames that carry next to nothing')
      return false
    }
    const needed = this.#length + count
    // Coded, a section is seldom longer than decoded; what is, is not worth decoding.
    if (needed > limits.maxFieldSectionSize + smallestMaxFrameSize) {
      lifetime.fail(ErrorCode.EnhanceYourCalm, 'a field block too large to decode')
      return false
    }
    if (this.#block.length < needed) {
      const block = new Uint8Array(Math.max(needed, this.#block.length * 2))
      block.set(this.#block.subarray(0, this.#length))
      this.#block = block
    }
    this.#block.set(buffer.subarray(start, limit), this.#length)
    this.#length = needed
    return true
  }

  /** A whole field block: decoded in any case, or the tables of both ends would part. */
  #receiveBlock(buffer: Uint8Array, start: number, limit: number, streamId: number): void {
    const owner = this.#owner
    const { exchanges, lifetime, decoder } = owner
    const stream = exchanges.table.get(streamId)
    const isTail = stream !== undefined && stream.receiving !== Phase.Head
    const role = isTail ? SectionRole.Trailers : owner.isServer ? SectionRole.Request : SectionRole.Response
    const section = decoder.decode(buffer, start, limit, role)
    if (section === undefined) return lifetime.fail(ErrorCode.CompressionError, decoder.fault)
    owner.liveness.heardMessage()
    if (stream === undefined) {
      if (!owner.isServer || (streamId & 1) === 0 || streamId <= exchanges.lastPeerStreamId) return this.#receiveLate(streamId)
      // RFC 9113 §5.3.1: obsolete, and an error of the stream all the same.
      if (this.#dependsOnItself) return refuseRequest(owner, streamId, ErrorCode.ProtocolError)
      return receiveRequest(owner, streamId, section, this.#end, this.#earlyPriority(streamId))
    }
    if (this.#dependsOnItself) exchanges.fault(stream, ErrorCode.ProtocolError, 'a stream that depends on itself')
    else if (stream.receiving === Phase.Ended) exchanges.fault(stream, ErrorCode.StreamClosed, 'HEADERS after END_STREAM')
    else if (isTail) receiveTrailers(owner, stream, section, this.#end)
    else receiveResponse(owner, stream, section, this.#end)
  }

  #earlyPriority(streamId: number): string {
    if (this.earlyPriorities.size === 0) return ''
    const value = this.earlyPriorities.get(streamId) ?? ''
    this.earlyPriorities.delete(streamId)
    return value
  }

  #receiveLate(streamId: number): void {
    const { exchanges, lifetime, isServer } = this.#owner
    if (exchanges.isRemembered(streamId, this.#end) || lifetime.ignores(streamId)) return
    // RFC 9113 §5.1.1: streams are begun by clients, with odd and growing numbers.
    if ((streamId & 1) === 0 || exchanges.isIdle(streamId)) {
      return lifetime.fail(ErrorCode.ProtocolError, 'HEADERS on a stream that cannot be')
    }
    // RFC 9113 §5.1.1: a client's numbers do not go back.
    if (isServer) lifetime.fail(ErrorCode.StreamClosed, 'HEADERS on a closed stream')
    else exchanges.receivedAfterEnd(streamId)
  }
}
