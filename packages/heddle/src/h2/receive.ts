import { SectionRole, type FieldSection } from '../fieldcode/index.ts'
import { latin1Slice } from '../bytes/index.ts'
import { isBodiless, noLength, PeerError, ProtocolError, responseHead, type Head } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode, errorName, Flag, frameHeaderSize, FrameType, preface, readUint31, readUint32, smallestMaxFrameSize } from './frame.ts'
import { parsePriority } from './priority.ts'
import { Phase, Stream } from './stream.ts'

const none = new Uint8Array(0)
/** A window update below this carries next to nothing. */
const smallUpdate = 64

/**
 * Reads frames at any split. DATA goes to its handler as it arrives; every other frame is read whole,
 * from the caller's buffer where it stands complete there, else from `carry`.
 */
export class Receiver {
  /** When the head that is under way must be complete; Infinity: none is. */
  headDeadline: number
  readonly #owner: Connection
  /** Octets of the client's preface still to come. */
  #prefaceLeft: number
  /** The first frame must be SETTINGS (RFC 9113 §3.4). */
  #settingsSeen: boolean
  #carry: Uint8Array
  #carried: number
  // The DATA frame being read.
  #dataLeft: number
  #dataPadding: number
  #dataFlags: number
  #dataStreamId: number
  #readsPadding: boolean
  /** Octets of a frame nobody wants. */
  #skip: number
  // The field block being read, if its HEADERS frame did not end it.
  #block: Uint8Array
  #blockLength: number
  #blockStreamId: number
  #blockFlags: number
  #continuations: number

  constructor(owner: Connection) {
    this.#owner = owner
    this.headDeadline = owner.isServer ? owner.now + owner.limits.headTimeout : Infinity
    this.#prefaceLeft = owner.isServer ? preface.length : 0
    this.#settingsSeen = false
    this.#carry = none
    this.#carried = 0
    this.#dataLeft = 0
    this.#dataPadding = 0
    this.#dataFlags = 0
    this.#dataStreamId = 0
    this.#readsPadding = false
    this.#skip = 0
    this.#block = none
    this.#blockLength = 0
    this.#blockStreamId = 0
    this.#blockFlags = 0
    this.#continuations = 0
  }

  receive(buffer: Uint8Array, start: number, limit: number): void {
    let at = start
    const owner = this.#owner
    while (at < limit && !owner.dead) {
      if (this.#prefaceLeft > 0) at = this.#readPreface(buffer, at, limit)
      else if (this.#dataStreamId !== 0) at = this.#readData(buffer, at, limit)
      else if (this.#skip > 0) {
        const count = Math.min(this.#skip, limit - at)
        this.#skip -= count
        at += count
      } else if (this.#carried > 0) at = this.#readCarried(buffer, at, limit)
      else if (limit - at >= frameHeaderSize) at = this.#readFrame(buffer, at, limit)
      else at = this.#keep(buffer, at, limit, frameHeaderSize)
    }
    if (owner.sender.provoked > owner.limits.maxQueuedControl) {
      // The peer provokes answers and does not read them.
      owner.finish(
        new ProtocolError('the peer does not read the answers it provokes', 400, 'PROTOCOL_ERROR', { scope: 'connection' }),
        'reset',
      )
    } else if (owner.sender.pinned > owner.limits.maxPinned) {
      owner.fail(ErrorCode.EnhanceYourCalm, 'too much is waiting to be read')
    }
  }

  // RFC 9113 §3.4
  #readPreface(buffer: Uint8Array, start: number, limit: number): number {
    let at = start
    while (at < limit && this.#prefaceLeft > 0) {
      if (buffer[at++] !== preface[preface.length - this.#prefaceLeft]) {
        this.#owner.fail(ErrorCode.ProtocolError, 'no HTTP/2 preface')
        return limit
      }
      this.#prefaceLeft--
    }
    return at
  }

  #keep(buffer: Uint8Array, start: number, limit: number, needed: number): number {
    const count = Math.min(limit - start, needed - this.#carried)
    if (this.#carry.length < needed) {
      const carry = new Uint8Array(needed <= 64 ? 64 : needed)
      carry.set(this.#carry.subarray(0, this.#carried))
      this.#carry = carry
    }
    for (let i = 0; i < count; i++) this.#carry[this.#carried + i] = buffer[start + i] as number
    this.#carried += count
    return start + count
  }

  #readCarried(buffer: Uint8Array, start: number, limit: number): number {
    let at = start
    if (this.#carried < frameHeaderSize) {
      at = this.#keep(buffer, at, limit, frameHeaderSize)
      if (this.#carried < frameHeaderSize) return at
    }
    const carry = this.#carry
    const length = payloadLength(carry, 0)
    if (!this.#judgeHeader(carry, 0, length)) return limit
    if (carry[3] === FrameType.Data) {
      this.#carried = 0
      this.#startData(carry, 0, length)
      return at
    }
    if (this.#skips(carry[3] as number)) {
      this.#carried = 0
      this.#skip = length
      return at
    }
    const whole = frameHeaderSize + length
    if (this.#carried < whole) at = this.#keep(buffer, at, limit, whole)
    if (this.#carried < whole) return at
    this.#carried = 0
    const frame = this.#carry
    // A frame larger than usual does not pin its buffer.
    if (frame.length > 64) this.#carry = none
    this.#handle(frame, 0, length)
    return at
  }

  #readFrame(buffer: Uint8Array, start: number, limit: number): number {
    const length = payloadLength(buffer, start)
    if (!this.#judgeHeader(buffer, start, length)) return limit
    const type = buffer[start + 3] as number
    if (type === FrameType.Data) {
      this.#startData(buffer, start, length)
      return start + frameHeaderSize
    }
    if (this.#skips(type)) {
      this.#skip = length
      return start + frameHeaderSize
    }
    const whole = frameHeaderSize + length
    if (limit - start < whole) return this.#keep(buffer, start, limit, whole)
    this.#handle(buffer, start, length)
    return start + whole
  }

  /** What holds for every frame; false: the connection is over. */
  #judgeHeader(buffer: Uint8Array, start: number, length: number): boolean {
    const owner = this.#owner
    const type = buffer[start + 3] as number
    // RFC 9113 §4.2: we never raise SETTINGS_MAX_FRAME_SIZE.
    if (length > smallestMaxFrameSize) return this.#fail(ErrorCode.FrameSizeError, `a frame of ${length} octets`)
    if (!this.#settingsSeen) {
      if (type !== FrameType.Settings || ((buffer[start + 4] as number) & Flag.Ack) !== 0) {
        return this.#fail(ErrorCode.ProtocolError, 'the first frame is not SETTINGS')
      }
      this.#settingsSeen = true
      this.headDeadline = Infinity
    }
    // RFC 9113 §6.10: nothing stands inside a field block but its CONTINUATION frames.
    if (this.#blockStreamId !== 0 && (type !== FrameType.Continuation || readUint31(buffer, start + 5) !== this.#blockStreamId)) {
      return this.#fail(ErrorCode.ProtocolError, 'a field block was interrupted')
    }
    return !owner.dead
  }

  // RFC 9113 §4.1: frames of unknown types are ignored.
  #skips(type: number): boolean {
    return type > FrameType.Continuation && type !== FrameType.PriorityUpdate && type !== FrameType.Origin
  }

  #fail(code: number, message: string): false {
    this.#owner.fail(code, message)
    return false
  }

  #handle(buffer: Uint8Array, start: number, length: number): void {
    const flags = buffer[start + 4] as number
    const streamId = readUint31(buffer, start + 5)
    const payload = start + frameHeaderSize
    const limit = payload + length
    switch (buffer[start + 3]) {
      case FrameType.Headers:
        return this.#receiveHeaders(buffer, payload, limit, flags, streamId)
      case FrameType.Priority:
        return this.#receivePriority(buffer, payload, length, streamId)
      case FrameType.RstStream:
        return this.#receiveReset(buffer, payload, length, streamId)
      case FrameType.Settings:
        return this.#receiveSettings(buffer, payload, limit, flags, streamId)
      case FrameType.PushPromise:
        // RFC 9113 §8.4: only servers push, and we tell them not to.
        this.#fail(ErrorCode.ProtocolError, 'PUSH_PROMISE')
        return
      case FrameType.Ping:
        return this.#receivePing(buffer, payload, length, flags, streamId)
      case FrameType.Goaway:
        return this.#receiveGoaway(buffer, payload, length, streamId)
      case FrameType.WindowUpdate:
        return this.#receiveWindowUpdate(buffer, payload, length, streamId)
      case FrameType.Continuation:
        return this.#receiveContinuation(buffer, payload, limit, flags, streamId)
      case FrameType.PriorityUpdate:
        return this.#receivePriorityUpdate(buffer, payload, limit, streamId)
      default:
    }
  }

  /** True: no stream of this id was ever begun. */
  #isIdle(streamId: number): boolean {
    const owner = this.#owner
    return (streamId & 1) === (owner.isServer ? 1 : 0) ? streamId > owner.lastPeerStreamId : streamId >= owner.nextStreamId
  }

  // ---- DATA

  #startData(buffer: Uint8Array, start: number, length: number): void {
    const owner = this.#owner
    const flags = buffer[start + 4] as number
    const streamId = readUint31(buffer, start + 5)
    if (streamId === 0) return void this.#fail(ErrorCode.ProtocolError, 'DATA on stream 0')
    if (this.#isIdle(streamId)) return void this.#fail(ErrorCode.ProtocolError, 'DATA on an idle stream')
    // RFC 9113 §6.9: padding counts, and so do frames of streams that are gone.
    if (!owner.receiveWindow.take(length)) return void this.#fail(ErrorCode.FlowControlError, 'more DATA than the connection allows')
    const padded = (flags & Flag.Padded) !== 0
    if (padded && length === 0) return void this.#fail(ErrorCode.FrameSizeError, 'DATA without its padding length')
    const stream = owner.streams.get(streamId)
    if (stream === undefined) this.#receiveLateData(streamId, flags)
    else if (stream.receiving === Phase.Ended) owner.faultStream(stream, ErrorCode.StreamClosed, 'DATA after END_STREAM')
    else if (stream.receiving === Phase.Head) owner.faultStream(stream, ErrorCode.ProtocolError, 'DATA before the head')
    else if (!stream.receiveWindow.take(length)) owner.faultStream(stream, ErrorCode.FlowControlError, 'more DATA than the stream allows')
    if (length === 0 && (flags & Flag.EndStream) === 0 && !owner.emptyFrames.take(owner.now)) {
      return void this.#fail(ErrorCode.EnhanceYourCalm, 'too many empty frames')
    }
    if (owner.dead) return
    owner.liveness.contentArrived(length)
    this.#dataLeft = length
    this.#dataPadding = 0
    this.#dataFlags = flags
    this.#dataStreamId = streamId
    this.#readsPadding = padded
    if (length === 0) this.#finishData(none, 0, 0)
  }

  /** DATA of a stream that is gone: under way when we reset it, or a fault of the peer. */
  #receiveLateData(streamId: number, flags: number): void {
    const owner = this.#owner
    if (owner.remembered.has(streamId)) {
      if ((flags & Flag.EndStream) !== 0) owner.remembered.delete(streamId)
      return
    }
    // RFC 9113 §5.1: STREAM_CLOSED.
    owner.sender.stageReset(streamId, ErrorCode.StreamClosed)
    owner.provoked()
  }

  #readData(buffer: Uint8Array, start: number, limit: number): number {
    let at = start
    if (this.#readsPadding) {
      this.#readsPadding = false
      this.#dataPadding = buffer[at++] as number
      this.#dataLeft--
      // RFC 9113 §6.1
      if (this.#dataPadding > this.#dataLeft) {
        this.#fail(ErrorCode.ProtocolError, 'more padding than frame')
        return limit
      }
      this.#creditPadding(1)
    }
    const content = Math.min(this.#dataLeft - this.#dataPadding, limit - at)
    if (content > 0) {
      this.#dataLeft -= content
      if (this.#dataLeft === this.#dataPadding) this.#finishData(buffer, at, at + content)
      else this.#deliver(buffer, at, at + content, false)
      at += content
    } else if (this.#dataLeft === this.#dataPadding && this.#dataStreamId > 0) this.#finishData(none, 0, 0)
    if (this.#dataPadding > 0 && at < limit && this.#dataLeft === this.#dataPadding) {
      const padding = Math.min(this.#dataPadding, limit - at)
      this.#dataPadding -= padding
      this.#dataLeft -= padding
      at += padding
    }
    if (this.#dataLeft === 0) this.#dataStreamId = 0
    return at
  }

  /** Padding, with its length octet, is consumed by the engine (contract rule 5). */
  #creditPadding(byteCount: number): void {
    const owner = this.#owner
    const stream = owner.streams.get(this.#dataStreamId)
    const total = byteCount + this.#dataPadding
    if (stream === undefined) owner.creditConnection(total)
    else owner.credit(stream, total)
  }

  /** The frame's content is complete. */
  #finishData(buffer: Uint8Array, start: number, limit: number): void {
    const end = (this.#dataFlags & Flag.EndStream) !== 0
    this.#dataFlags = 0
    this.#deliver(buffer, start, limit, end)
    if (this.#dataLeft === 0) this.#dataStreamId = 0
  }

  #deliver(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const owner = this.#owner
    const count = limit - start
    if (count === 0 && !end) return
    const stream = owner.streams.get(this.#dataStreamId)
    if (stream === undefined) return owner.creditConnection(count)
    stream.receivedAt = owner.now
    stream.receivedLength += count
    const fault = lengthFault(stream, end)
    if (fault !== '') {
      owner.creditConnection(count)
      return owner.faultStream(stream, ErrorCode.ProtocolError, fault)
    }
    if (stream.receivedLength > owner.limits.maxContentLength && owner.isServer) {
      owner.creditConnection(count)
      return this.#refuseContent(stream)
    }
    if (stream.discarding) owner.credit(stream, count)
    else {
      stream.unconsumed += count
      try {
        stream.handler.onData(buffer, start, limit, end)
      } catch (error) {
        owner.handlerFailed(stream, error)
      }
    }
    if (end && !stream.closed) owner.receivingEnded(stream)
  }

  #refuseContent(stream: Stream): void {
    const owner = this.#owner
    if (stream.sending === Phase.Head) owner.sender.stageResponse(stream, contentTooLarge, true)
    owner.resetStream(
      stream,
      ErrorCode.NoError,
      new ProtocolError(`more than ${owner.limits.maxContentLength} octets of content`, 413, 'CONTENT_TOO_LARGE', { scope: 'stream' }),
    )
  }

  // ---- HEADERS and CONTINUATION

  #receiveHeaders(buffer: Uint8Array, payload: number, end: number, flags: number, streamId: number): void {
    if (streamId === 0) return void this.#fail(ErrorCode.ProtocolError, 'HEADERS on stream 0')
    let start = payload
    let limit = end
    if ((flags & Flag.Padded) !== 0) {
      if (start >= limit) return void this.#fail(ErrorCode.FrameSizeError, 'HEADERS without their padding length')
      const padding = buffer[start++] as number
      // RFC 9113 §6.2
      if (padding > limit - start) return void this.#fail(ErrorCode.ProtocolError, 'more padding than frame')
      limit -= padding
    }
    let dependsOnItself = false
    if ((flags & Flag.Priority) !== 0) {
      if (limit - start < 5) return void this.#fail(ErrorCode.FrameSizeError, 'HEADERS too short for their priority')
      dependsOnItself = readUint31(buffer, start) === streamId
      start += 5
    }
    if (dependsOnItself) flags |= selfDependency
    if ((flags & Flag.EndHeaders) !== 0) return this.#receiveBlock(buffer, start, limit, flags, streamId)
    this.#blockStreamId = streamId
    this.#blockFlags = flags
    this.#blockLength = 0
    this.#continuations = 0
    this.headDeadline = this.#owner.now + this.#owner.limits.headTimeout
    this.#append(buffer, start, limit)
  }

  #receiveContinuation(buffer: Uint8Array, start: number, limit: number, flags: number, streamId: number): void {
    const { limits } = this.#owner
    if (this.#blockStreamId === 0) return void this.#fail(ErrorCode.ProtocolError, 'CONTINUATION without HEADERS')
    // CVE-2024-27316: a block of endless frames.
    if (++this.#continuations > limits.maxContinuations) return void this.#fail(ErrorCode.EnhanceYourCalm, 'too many CONTINUATION frames')
    if (!this.#append(buffer, start, limit)) return
    if ((flags & Flag.EndHeaders) === 0) return
    const block = this.#block
    const length = this.#blockLength
    this.#block = none
    this.#blockStreamId = 0
    this.headDeadline = Infinity
    this.#receiveBlock(block, 0, length, this.#blockFlags, streamId)
  }

  #append(buffer: Uint8Array, start: number, limit: number): boolean {
    const owner = this.#owner
    const count = limit - start
    if (count === 0 && !owner.emptyFrames.take(owner.now)) return this.#fail(ErrorCode.EnhanceYourCalm, 'too many empty frames')
    const needed = this.#blockLength + count
    // Coded, a section is seldom longer than decoded; what is, is not worth decoding.
    if (needed > owner.limits.maxFieldSectionSize + smallestMaxFrameSize)
      return this.#fail(ErrorCode.EnhanceYourCalm, 'a field block too large to decode')
    if (this.#block.length < needed) {
      const block = new Uint8Array(Math.max(needed, this.#block.length * 2))
      block.set(this.#block.subarray(0, this.#blockLength))
      this.#block = block
    }
    this.#block.set(buffer.subarray(start, limit), this.#blockLength)
    this.#blockLength = needed
    return true
  }

  /** A whole field block: decoded in any case, or the tables of both ends would part. */
  #receiveBlock(buffer: Uint8Array, start: number, limit: number, flags: number, streamId: number): void {
    const owner = this.#owner
    const stream = owner.streams.get(streamId)
    const isTail = stream !== undefined && stream.receiving !== Phase.Head
    const role = isTail ? SectionRole.Trailers : owner.isServer ? SectionRole.Request : SectionRole.Response
    const section = owner.decoder.decode(buffer, start, limit, role)
    if (section === undefined) return void this.#fail(ErrorCode.CompressionError, owner.decoder.fault)
    const end = (flags & Flag.EndStream) !== 0
    if (stream !== undefined) {
      if ((flags & selfDependency) !== 0) return owner.faultStream(stream, ErrorCode.ProtocolError, 'a stream that depends on itself')
      if (stream.receiving === Phase.Ended) return owner.faultStream(stream, ErrorCode.StreamClosed, 'HEADERS after END_STREAM')
      if (isTail) return this.#receiveTrailers(stream, section, end)
      return this.#receiveResponse(stream, section, end)
    }
    if (owner.isServer && (streamId & 1) === 1 && streamId > owner.lastPeerStreamId)
      return this.#receiveRequest(streamId, section, end, flags)
    this.#receiveLateHeaders(streamId, end)
  }

  #receiveLateHeaders(streamId: number, end: boolean): void {
    const owner = this.#owner
    if (owner.remembered.has(streamId)) {
      if (end) owner.remembered.delete(streamId)
      return
    }
    // RFC 9113 §5.1.1: streams are begun by clients, with odd and growing numbers.
    if (this.#isIdle(streamId) || (streamId & 1) === 0)
      return void this.#fail(ErrorCode.ProtocolError, 'HEADERS on a stream that cannot be')
    this.#fail(ErrorCode.StreamClosed, 'HEADERS on a closed stream')
  }

  #receiveRequest(streamId: number, section: FieldSection, end: boolean, flags: number): void {
    const owner = this.#owner
    // RFC 9113 §6.8: what came after our last GOAWAY is not processed.
    if (streamId > owner.sentGoaway) return
    owner.lastPeerStreamId = streamId
    const { limits, sender } = owner
    let refusal = -1
    if ((flags & selfDependency) !== 0) refusal = ErrorCode.ProtocolError
    // RFC 9113 §5.1.2
    else if (owner.streams.size >= limits.maxConcurrentStreams) refusal = ErrorCode.RefusedStream
    else if (section.fault !== '' || (end && section.contentLength > 0)) refusal = ErrorCode.ProtocolError
    if (refusal >= 0) {
      sender.stageReset(streamId, refusal)
      owner.remember(streamId)
      return owner.provoked()
    }
    const stream = new Stream(owner, streamId, noHandler, owner.peer.initialWindowSize, limits.streamWindow, owner.now)
    const tooLarge = section.tooLarge ? fieldsTooLarge : section.contentLength > limits.maxContentLength ? contentTooLarge : undefined
    if (tooLarge !== undefined) {
      sender.stageResponse(stream, tooLarge, true)
      if (!end) {
        sender.stageReset(streamId, ErrorCode.NoError)
        owner.remember(streamId)
      }
      return owner.provoked()
    }
    const head = section.head as Head
    stream.receiving = end ? Phase.Ended : Phase.Content
    stream.headRequest = head.method === 'HEAD'
    stream.tunnel = head.method === 'CONNECT'
    stream.expectedLength = stream.tunnel ? noLength : section.contentLength
    // RFC 8441 §3: only where it was offered.
    if (head.protocol !== '' && !owner.extendedConnect) {
      sender.stageReset(streamId, ErrorCode.ProtocolError)
      owner.remember(streamId)
      return owner.provoked()
    }
    owner.addStream(stream)
    if (section.priority !== '') this.#prioritize(stream, section.priority)
    try {
      stream.handler = owner.handler.onExchange(stream)
      stream.handler.onHead(head, end)
    } catch (error) {
      owner.handlerFailed(stream, error)
    }
  }

  #prioritize(stream: Stream, value: string): void {
    const priority = parsePriority(value)
    this.#owner.sender.prioritize(stream, priority.urgency, priority.incremental)
  }

  #receiveResponse(stream: Stream, section: FieldSection, end: boolean): void {
    const owner = this.#owner
    const { head } = section
    if (section.tooLarge) {
      return owner.resetStream(
        stream,
        ErrorCode.Cancel,
        new ProtocolError('the response has too many or too large fields', 0, 'FIELDS_TOO_LARGE', { scope: 'stream' }),
      )
    }
    if (head === undefined) return owner.faultStream(stream, ErrorCode.ProtocolError, section.fault)
    stream.receivedAt = owner.now
    if (head.status < 200) {
      // RFC 9113 §8.1: an interim response does not end the stream.
      if (end) return owner.faultStream(stream, ErrorCode.ProtocolError, 'an interim response with END_STREAM')
      if (head.status === 100) owner.releaseContent(stream)
      if (++stream.informational > owner.limits.maxInformational)
        return owner.faultStream(stream, ErrorCode.EnhanceYourCalm, 'too many interim responses')
    } else {
      stream.receiving = Phase.Content
      if (stream.tunnel && head.status > 299) stream.tunnel = false
      if (!stream.tunnel) stream.expectedLength = stream.headRequest || isBodiless(head.status) ? 0 : section.contentLength
      if (end) {
        const fault = stream.headRequest || isBodiless(head.status) ? '' : lengthFault(stream, true)
        if (fault !== '') return owner.faultStream(stream, ErrorCode.ProtocolError, fault)
      }
    }
    if (!stream.discarding) {
      try {
        stream.handler.onHead(head, end)
      } catch (error) {
        owner.handlerFailed(stream, error)
      }
    }
    if (end && !stream.closed) owner.receivingEnded(stream)
  }

  #receiveTrailers(stream: Stream, section: FieldSection, end: boolean): void {
    const owner = this.#owner
    // RFC 9113 §8.1: trailers end the stream.
    const fault = section.fault !== '' ? section.fault : end ? lengthFault(stream, true) : 'a second head'
    if (fault !== '') return owner.faultStream(stream, ErrorCode.ProtocolError, fault)
    if (section.tooLarge) return owner.faultStream(stream, ErrorCode.EnhanceYourCalm, 'trailers too large')
    stream.receivedAt = owner.now
    if (!stream.discarding) {
      try {
        stream.handler.onTrailers(section.fields)
      } catch (error) {
        owner.handlerFailed(stream, error)
      }
    }
    if (!stream.closed) owner.receivingEnded(stream)
  }

  // ---- the other frames

  #receivePriority(buffer: Uint8Array, payload: number, length: number, streamId: number): void {
    const owner = this.#owner
    if (streamId === 0) return void this.#fail(ErrorCode.ProtocolError, 'PRIORITY on stream 0')
    // RFC 9113 §6.3: a stream error; the priorities themselves are obsolete.
    const fault = length !== 5 ? ErrorCode.FrameSizeError : readUint31(buffer, payload) === streamId ? ErrorCode.ProtocolError : 0
    if (fault === 0) return
    const stream = owner.streams.get(streamId)
    if (stream !== undefined) return owner.faultStream(stream, fault, 'a malformed PRIORITY')
    owner.sender.stageReset(streamId, fault)
    owner.provoked()
  }

  #receivePriorityUpdate(buffer: Uint8Array, start: number, limit: number, streamId: number): void {
    const owner = this.#owner
    // RFC 9218 §7.1
    if (streamId !== 0 || limit - start < 4 || !owner.isServer)
      return void this.#fail(ErrorCode.ProtocolError, 'a malformed PRIORITY_UPDATE')
    const prioritized = readUint31(buffer, start)
    if (prioritized === 0) return void this.#fail(ErrorCode.ProtocolError, 'PRIORITY_UPDATE for stream 0')
    const stream = owner.streams.get(prioritized)
    if (stream === undefined) return
    const priority = parsePriority(latin1Slice(buffer, start + 4, limit))
    owner.sender.prioritize(stream, priority.urgency, priority.incremental)
    try {
      stream.handler.onPriority(priority)
    } catch (error) {
      owner.handlerFailed(stream, error)
    }
  }

  #receiveReset(buffer: Uint8Array, payload: number, length: number, streamId: number): void {
    const owner = this.#owner
    if (length !== 4) return void this.#fail(ErrorCode.FrameSizeError, `RST_STREAM of ${length} octets`)
    if (streamId === 0 || this.#isIdle(streamId)) return void this.#fail(ErrorCode.ProtocolError, 'RST_STREAM on an idle stream')
    const code = readUint32(buffer, payload)
    owner.remembered.delete(streamId)
    const stream = owner.streams.get(streamId)
    if (stream !== undefined) {
      // RFC 9113 §8.1: a server that needs no more of the request says NO_ERROR behind its response.
      const complete = code === ErrorCode.NoError && stream.receiving === Phase.Ended
      const error = complete
        ? undefined
        : new PeerError('PEER_RESET', `the peer reset the stream: ${errorName(code)}`, {
            wireCode: code,
            scope: 'stream',
            unprocessed: code === ErrorCode.RefusedStream,
          })
      owner.closeStream(stream, error)
    }
    // CVE-2023-44487: requests that are reset at once cost the client nothing.
    if (owner.isServer && !owner.peerResets.take(owner.now)) this.#fail(ErrorCode.EnhanceYourCalm, 'too many resets')
  }

  #receiveSettings(buffer: Uint8Array, start: number, limit: number, flags: number, streamId: number): void {
    const owner = this.#owner
    const length = limit - start
    if (streamId !== 0) return void this.#fail(ErrorCode.ProtocolError, 'SETTINGS on a stream')
    if ((flags & Flag.Ack) !== 0) {
      if (length !== 0) return void this.#fail(ErrorCode.FrameSizeError, 'an acknowledgement with settings')
      return owner.settingsAcknowledged()
    }
    if (length % 6 !== 0) return void this.#fail(ErrorCode.FrameSizeError, `SETTINGS of ${length} octets`)
    const { peer } = owner
    const windowBefore = peer.initialWindowSize
    const code = peer.read(buffer, start, limit, !owner.isServer)
    if (code !== ErrorCode.NoError) return void this.#fail(code, 'a setting that must not be')
    // RFC 9113 §6.9.2: a change of the initial window counts for the streams there are.
    const change = peer.initialWindowSize - windowBefore
    if (change !== 0) {
      for (const stream of owner.streams.values()) {
        if (!stream.sendWindow.grow(change)) return void this.#fail(ErrorCode.FlowControlError, 'a window above 2^31 - 1')
        owner.sender.maybeReady(stream)
      }
    }
    owner.encoder.allowTableSize(peer.headerTableSize)
    owner.sender.stageFrame(0, FrameType.Settings, Flag.Ack, 0)
    owner.sender.provoked++
    owner.settingsChanged()
  }

  #receivePing(buffer: Uint8Array, payload: number, length: number, flags: number, streamId: number): void {
    const owner = this.#owner
    if (length !== 8) return void this.#fail(ErrorCode.FrameSizeError, `PING of ${length} octets`)
    if (streamId !== 0) return void this.#fail(ErrorCode.ProtocolError, 'PING on a stream')
    const first = readUint32(buffer, payload)
    const second = readUint32(buffer, payload + 4)
    if ((flags & Flag.Ack) !== 0) owner.liveness.answered(first, second)
    else owner.liveness.answer(first, second)
  }

  #receiveGoaway(buffer: Uint8Array, payload: number, length: number, streamId: number): void {
    const owner = this.#owner
    if (streamId !== 0) return void this.#fail(ErrorCode.ProtocolError, 'GOAWAY on a stream')
    if (length < 8) return void this.#fail(ErrorCode.FrameSizeError, `GOAWAY of ${length} octets`)
    const last = readUint31(buffer, payload)
    const code = readUint32(buffer, payload + 4)
    owner.receiveGoaway(last, code, latin1Slice(buffer, payload + 8, payload + Math.min(length, 136)))
  }

  #receiveWindowUpdate(buffer: Uint8Array, payload: number, length: number, streamId: number): void {
    const owner = this.#owner
    if (length !== 4) return void this.#fail(ErrorCode.FrameSizeError, `WINDOW_UPDATE of ${length} octets`)
    const increment = readUint31(buffer, payload)
    // A window given by the spoonful makes us send tiny frames.
    if (increment < smallUpdate && !owner.emptyFrames.take(owner.now))
      return void this.#fail(ErrorCode.EnhanceYourCalm, 'too many small window updates')
    if (streamId === 0) {
      if (increment === 0) return void this.#fail(ErrorCode.ProtocolError, 'WINDOW_UPDATE by 0')
      if (!owner.sendWindow.grow(increment)) this.#fail(ErrorCode.FlowControlError, 'a window above 2^31 - 1')
      return
    }
    const stream = owner.streams.get(streamId)
    if (stream === undefined) {
      if (this.#isIdle(streamId)) this.#fail(ErrorCode.ProtocolError, 'WINDOW_UPDATE on an idle stream')
      return
    }
    if (increment === 0) return owner.faultStream(stream, ErrorCode.ProtocolError, 'WINDOW_UPDATE by 0')
    if (!stream.sendWindow.grow(increment)) return owner.faultStream(stream, ErrorCode.FlowControlError, 'a window above 2^31 - 1')
    owner.sender.maybeReady(stream)
  }
}

/** Kept with a frame's flags: an octet leaves room. */
const selfDependency = 0x100
const contentTooLarge = responseHead(413, ['content-length', '0'])
const fieldsTooLarge = responseHead(431, ['content-length', '0'])

const noHandler = {
  onHead(): void {},
  onData(): void {},
  onTrailers(): void {},
  onSent(): void {},
  onPriority(): void {},
  onClose(): void {},
}

function payloadLength(buffer: Uint8Array, start: number): number {
  return ((buffer[start] as number) << 16) | ((buffer[start + 1] as number) << 8) | (buffer[start + 2] as number)
}

/** RFC 9113 §8.1.1: content-length and the content agree. */
function lengthFault(stream: Stream, end: boolean): string {
  const { expectedLength, receivedLength } = stream
  if (expectedLength === noLength) return ''
  if (receivedLength > expectedLength) return `content-length is ${expectedLength}, and more came`
  return end && receivedLength < expectedLength ? `content-length is ${expectedLength}, and ${receivedLength} octets came` : ''
}
