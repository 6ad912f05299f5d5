import { FrameHeader, FrameType } from './frame.ts'

const none = new Uint8Array(0)
/** The longest payload of a frame of the control stream that is read: SETTINGS, ORIGIN and PRIORITY_UPDATE have no need for more. */
const longestPayload = 16_384

/** Who is told of the frames of a control stream. Each returns false when the connection is over. */
export interface ControlFrames {
  /** A frame's header has come. 'read': its payload is wanted; 'skip': nobody knows the frame. */
  startFrame(type: number, length: number): 'read' | 'skip' | 'over'
  /** The payload `buffer[start, limit)` of a frame is complete. */
  receiveFrame(type: number, buffer: Uint8Array, start: number, limit: number): boolean
  /** A frame that is too long to be meant. */
  tooLong(type: number): void
}

/** Cuts a control stream into frames, at any split; what nobody knows is skipped, however long it is. */
export class ControlReader {
  readonly #header: FrameHeader
  readonly #frames: ControlFrames
  /** Octets of the payload still to come; -1: a header is read. */
  #left: number
  #skips: boolean
  /** The beginning of a payload whose rest has not come. */
  #carry: Uint8Array
  #carried: number

  constructor(frames: ControlFrames) {
    this.#header = new FrameHeader()
    this.#frames = frames
    this.#left = -1
    this.#skips = false
    this.#carry = none
    this.#carried = 0
  }

  /** False: the connection is over. */
  receive(buffer: Uint8Array, start: number, limit: number): boolean {
    let at = start
    for (;;) {
      if (this.#left < 0) {
        if (at >= limit) return true
        at = this.#header.read(buffer, at, limit)
        if (!this.#header.isComplete) return true
        if (!this.#start()) return false
      }
      const available = limit - at
      const count = this.#left < available ? this.#left : available
      if (this.#skips) {
        this.#left -= count
        at += count
        if (this.#left > 0) return true
        this.#left = -1
        continue
      }
      if (this.#carried === 0 && count === this.#left) {
        this.#left = -1
        if (!this.#frames.receiveFrame(this.#header.type, buffer, at, at + count)) return false
        at += count
        continue
      }
      this.#keep(buffer, at, at + count)
      at += count
      if (this.#left > 0) return true
      const frame = this.#carry
      const length = this.#carried
      this.#left = -1
      this.#carry = none
      this.#carried = 0
      if (!this.#frames.receiveFrame(this.#header.type, frame, 0, length)) return false
    }
  }

  #start(): boolean {
    const { type, length } = this.#header
    const verdict = this.#frames.startFrame(type, length)
    if (verdict === 'over') return false
    this.#skips = verdict === 'skip'
    this.#left = length
    if (this.#skips || length <= longestPayload) return true
    this.#frames.tooLong(type)
    return false
  }

  #keep(buffer: Uint8Array, start: number, limit: number): void {
    const needed = this.#carried + limit - start
    if (this.#carry.length < needed) {
      const carry = new Uint8Array(Math.max(needed, this.#carry.length * 2, 64))
      carry.set(this.#carry.subarray(0, this.#carried))
      this.#carry = carry
    }
    this.#carry.set(buffer.subarray(start, limit), this.#carried)
    this.#carried = needed
    this.#left -= limit - start
  }
}

/** True: a frame that has its place on the control stream. */
export function isControlFrame(type: number): boolean {
  return (
    type === FrameType.CancelPush ||
    type === FrameType.Settings ||
    type === FrameType.Goaway ||
    type === FrameType.Origin ||
    type === FrameType.MaxPushId ||
    type === FrameType.PriorityUpdate ||
    type === FrameType.PushPriorityUpdate
  )
}
