import { ProtocolError, TimeoutError, type Instant } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode, Flag, frameHeaderSize, FrameType, preface, readUint31, smallestMaxFrameSize } from './frame.ts'
import { Stage } from './lifetime.ts'
import { BlockReceiver } from './receive-block.ts'
import {
  receiveGoaway,
  receiveOrigin,
  receivePing,
  receivePriority,
  receivePriorityUpdate,
  receiveReset,
  receiveSettings,
  receiveWindowUpdate,
} from './receive-control.ts'
import { DataReceiver } from './receive-data.ts'

const none = new Uint8Array(0)
/** Room for a frame that is not complete, at least: most control frames fit. */
const smallCarry = 64
/** What an answer of HTTP/1.1 looks like as the length of a frame: `HTT`. */
const lettersHtt = 0x485454

/**
 * Cuts the byte stream into frames, at any split. DATA goes to its handler as it arrives; every other
 * frame is read whole, from the caller's buffer where it stands complete there, else from `carry`.
 */
export class Receiver {
  /** What the client must have sent before a certain time, or the connection ends. */
  headDeadline: Instant
  readonly #owner: Connection
  readonly #data: DataReceiver
  readonly #blocks: BlockReceiver
  /** Octets of the client's preface still to come. */
  #prefaceLeft: number
  /** The first frame must be SETTINGS (RFC 9113 §3.4). */
  #settingsSeen: boolean
  /** The beginning of a frame whose rest has not come. */
  #carry: Uint8Array
  #carried: number
  /** Octets still to come of a frame nobody wants. */
  #skip: number
  /** Frames begun, and how many there were when the one that is not complete was begun. */
  #frames: number
  #framesWhenLate: number

  constructor(owner: Connection) {
    this.#owner = owner
    this.headDeadline = owner.isServer ? owner.now + owner.limits.headTimeout : Infinity
    this.#data = new DataReceiver(owner)
    this.#blocks = new BlockReceiver(owner)
    this.#prefaceLeft = owner.isServer ? preface.length : 0
    this.#settingsSeen = false
    this.#carry = none
    this.#carried = 0
    this.#skip = 0
    this.#frames = 0
    this.#framesWhenLate = -1
  }

  receive(buffer: Uint8Array, start: number, limit: number): void {
    const { lifetime } = this.#owner
    const data = this.#data
    let at = start
    while (at < limit && lifetime.stage === Stage.Open) {
      if (data.isOpen) at = data.receive(buffer, at, limit)
      else if (this.#skip > 0) {
        const count = Math.min(this.#skip, limit - at)
        this.#skip -= count
        at += count
      } else if (this.#carried > 0) at = this.#readCarried(buffer, at, limit)
      else if (this.#prefaceLeft > 0) at = this.#readPreface(buffer, at, limit)
      else if (limit - at >= frameHeaderSize) at = this.#readFrame(buffer, at, limit)
      else at = this.#keep(buffer, at, limit, frameHeaderSize)
    }
    if (lifetime.stage === Stage.Open) this.#settle()
  }

  // RFC 9113 §3.4
  #readPreface(buffer: Uint8Array, start: number, limit: number): number {
    let at = start
    while (at < limit && this.#prefaceLeft > 0) {
      if (buffer[at++] !== preface[preface.length - this.#prefaceLeft]) {
        this.#owner.lifetime.fail(ErrorCode.ProtocolError, 'no HTTP/2 preface')
        return limit
      }
      this.#prefaceLeft--
    }
    return at
  }

  #keep(buffer: Uint8Array, start: number, limit: number, needed: number): number {
    const count = Math.min(limit - start, needed - this.#carried)
    if (this.#carry.length < needed) {
      const carry = new Uint8Array(needed < smallCarry ? smallCarry : needed)
      carry.set(this.#carry.subarray(0, this.#carried))
      this.#carry = carry
    }
    this.#carry.set(buffer.subarray(start, start + count), this.#carried)
    this.#carried += count
    return start + count
  }

  #readCarried(buffer: Uint8Array, start: number, limit: number): number {
    let at = start
    if (this.#carried < frameHeaderSize) {
      at = this.#keep(buffer, at, limit, frameHeaderSize)
      if (this.#carried < frameHeaderSize) return at
      if (!this.#judgeHeader(this.#carry, 0)) return limit
      const length = payloadLength(this.#carry, 0)
      if (this.#startStreamed(this.#carry, 0, length)) {
        this.#carried = 0
        return at
      }
    }
    const length = payloadLength(this.#carry, 0)
    const whole = frameHeaderSize + length
    if (this.#carried < whole) at = this.#keep(buffer, at, limit, whole)
    if (this.#carried < whole) return at
    const frame = this.#carry
    this.#carried = 0
    // A frame larger than usual does not pin its room.
    if (frame.length > smallCarry) this.#carry = none
    this.#handle(frame, 0, length)
    return at
  }

  #readFrame(buffer: Uint8Array, start: number, limit: number): number {
    if (!this.#judgeHeader(buffer, start)) return limit
    const length = payloadLength(buffer, start)
    const payload = start + frameHeaderSize
    if (buffer[start + 3] === FrameType.Data && payload + length <= limit) {
      this.#data.receiveWhole(buffer, start, length)
      return payload + length
    }
    if (this.#startStreamed(buffer, start, length)) return payload
    if (payload + length > limit) return this.#keep(buffer, start, limit, frameHeaderSize + length)
    this.#handle(buffer, start, length)
    return payload + length
  }

  /** What holds for every frame; false: the connection is over. */
  #judgeHeader(buffer: Uint8Array, start: number): boolean {
    const type = buffer[start + 3] as number
    const length = payloadLength(buffer, start)
    this.#frames++
    // RFC 9113 §4.2: we never raise SETTINGS_MAX_FRAME_SIZE.
    if (length > smallestMaxFrameSize) {
      if (!this.#settingsSeen && length === lettersHtt) return this.#fail(ErrorCode.ProtocolError, 'the peer speaks HTTP/1.1, not HTTP/2')
      return this.#fail(ErrorCode.FrameSizeError, `a frame of ${length} octets`)
    }
    if (!this.#settingsSeen) {
      if (type !== FrameType.Settings || ((buffer[start + 4] as number) & Flag.Ack) !== 0) {
        return this.#fail(ErrorCode.ProtocolError, 'the first frame is not SETTINGS')
      }
      this.#settingsSeen = true
    }
    // RFC 9113 §6.10: nothing stands inside a field block but its CONTINUATION frames.
    const { streamId } = this.#blocks
    if (streamId !== 0 && (type !== FrameType.Continuation || readUint31(buffer, start + 5) !== streamId)) {
      return this.#fail(ErrorCode.ProtocolError, 'a field block was interrupted')
    }
    return true
  }

  #fail(code: number, message: string): false {
    this.#owner.lifetime.fail(code, message)
    return false
  }

  /** Begins a frame that is not read whole; false: it is. */
  #startStreamed(buffer: Uint8Array, start: number, length: number): boolean {
    const type = buffer[start + 3] as number
    if (type === FrameType.Data) {
      this.#data.start(buffer, start, length)
      return true
    }
    // RFC 9113 §4.1, RFC 9113 §5.5: frames of unknown types are ignored.
    if (type <= FrameType.Continuation || type === FrameType.PriorityUpdate || type === FrameType.Origin) return false
    this.#skip = length
    return true
  }

  #handle(buffer: Uint8Array, start: number, length: number): void {
    const owner = this.#owner
    const flags = buffer[start + 4] as number
    const streamId = readUint31(buffer, start + 5)
    const payload = start + frameHeaderSize
    const limit = payload + length
    switch (buffer[start + 3]) {
      case FrameType.Headers:
        return this.#blocks.receiveHeaders(buffer, payload, limit, flags, streamId)
      case FrameType.Priority:
        return receivePriority(owner, buffer, payload, limit, streamId)
      case FrameType.RstStream:
        return receiveReset(owner, buffer, payload, limit, streamId)
      case FrameType.Settings:
        return receiveSettings(owner, buffer, payload, limit, flags, streamId)
      case FrameType.PushPromise:
        // RFC 9113 §8.4: clients never push, and servers do not where it is switched off.
        return owner.lifetime.fail(ErrorCode.ProtocolError, 'PUSH_PROMISE')
      case FrameType.Ping:
        return receivePing(owner, buffer, payload, limit, flags, streamId)
      case FrameType.Goaway:
        return receiveGoaway(owner, buffer, payload, limit, streamId)
      case FrameType.WindowUpdate:
        return receiveWindowUpdate(owner, buffer, payload, limit, streamId)
      case FrameType.Continuation:
        return this.#blocks.receiveContinuation(buffer, payload, limit, flags, streamId)
      case FrameType.Origin:
        return receiveOrigin(owner, buffer, payload, limit, streamId)
      default:
        return receivePriorityUpdate(owner, buffer, payload, limit, streamId, this.#blocks.earlyPriorities)
    }
  }

  /** After each piece of input: is the peer slow, does it cost too much? */
  #settle(): void {
    const owner = this.#owner
    const { sender, limits, lifetime } = owner
    this.headDeadline = this.#nextHeadDeadline()
    if (sender.staging.provoked > limits.maxQueuedControl) {
      // It provokes answers and does not read them.
      const message = 'too many answers are waiting to be read'
      if (sender.blockedSince === Infinity) lifetime.fail(ErrorCode.EnhanceYourCalm, message)
      else
        lifetime.reset(
          new ProtocolError(message, 400, 'PROTOCOL_ERROR', { wireCode: ErrorCode.EnhanceYourCalm, scope: 'connection' }),
          false,
        )
    } else if (sender.pinned + this.#blocks.pinned > limits.maxPinned) {
      lifetime.fail(ErrorCode.EnhanceYourCalm, 'too much is waiting to be read')
    }
  }

  #nextHeadDeadline(): Instant {
    const { now, limits, isServer } = this.#owner
    // From accept to the first SETTINGS counts as one wait.
    if (!this.#settingsSeen) return isServer ? this.headDeadline : Infinity
    if (this.#blocks.deadline !== Infinity) return this.#blocks.deadline
    if (this.#carried === 0 && this.#skip === 0) return Infinity
    if (this.headDeadline !== Infinity && this.#framesWhenLate === this.#frames) return this.headDeadline
    this.#framesWhenLate = this.#frames
    return now + limits.headTimeout
  }

  /** `headDeadline` has passed. */
  expireHead(): void {
    const error = new TimeoutError('head', 'the peer did not complete a frame or a head in time')
    this.#owner.lifetime.fail(this.#settingsSeen ? ErrorCode.EnhanceYourCalm : ErrorCode.ProtocolError, error.message, error)
  }
}

function payloadLength(buffer: Uint8Array, start: number): number {
  return ((buffer[start] as number) << 16) | ((buffer[start + 1] as number) << 8) | (buffer[start + 2] as number)
}
