import { ByteReader, latin1Slice } from '../bytes/index.ts'
import { parsePriority, readOrigins } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { isControlFrame, type ControlFrames } from './control-frames.ts'
import { ErrorCode, FrameType, isHttp2Frame } from './frame.ts'
import { Stage } from './lifetime.ts'
import { Phase } from './state.ts'

/** Requests that have not come whose PRIORITY_UPDATE is kept. Few are told of so early. */
const mostEarly = 32
/** Less than this in a frame that is skipped is nothing. */
const leastSkipped = 5

/** The peer's control stream (RFC 9114 §6.2.1): SETTINGS, GOAWAY, priorities, and what must not be there. */
export class ControlReceiver implements ControlFrames {
  /** What PRIORITY_UPDATE said of requests that have not come yet. */
  readonly earlyPriorities: Map<number, string>
  readonly #owner: Connection
  readonly #reader: ByteReader
  /** A client's MAX_PUSH_ID: what a push could be numbered. */
  #maxPushId: number

  constructor(owner: Connection) {
    this.earlyPriorities = new Map()
    this.#owner = owner
    this.#reader = new ByteReader()
    this.#maxPushId = -1
  }

  startFrame(type: number, length: number): 'read' | 'skip' | 'over' {
    const { peer, isServer } = this.#owner
    // RFC 9114 §6.2.1
    if (!peer.received && type !== FrameType.Settings) return this.#fail(ErrorCode.MissingSettings, 'the first frame is not SETTINGS')
    if (!isControlFrame(type)) {
      const isMessages = type === FrameType.Data || type === FrameType.Headers || type === FrameType.PushPromise
      if (isMessages || isHttp2Frame(type)) {
        return this.#fail(ErrorCode.FrameUnexpected, `a frame of type ${type} on the control stream`)
      }
      if (length >= leastSkipped || this.#spend()) return 'skip'
      return 'over'
    }
    // RFC 9114 §7.2.4
    if (type === FrameType.Settings && peer.received) return this.#fail(ErrorCode.FrameUnexpected, 'SETTINGS twice')
    // RFC 9114 §7.2.7, RFC 9218 §7.2: a client's words.
    const isClients = type === FrameType.MaxPushId || type === FrameType.PriorityUpdate || type === FrameType.PushPriorityUpdate
    if (isClients && !isServer) return this.#fail(ErrorCode.FrameUnexpected, 'a frame that only clients send')
    return 'read'
  }

  tooLong(type: number): void {
    const isNumber = type === FrameType.Goaway || type === FrameType.MaxPushId || type === FrameType.CancelPush
    if (isNumber) this.#fail(ErrorCode.FrameError, 'a frame longer than what is in it')
    else this.#fail(ErrorCode.ExcessiveLoad, 'a frame too long to be meant')
  }

  receiveFrame(type: number, buffer: Uint8Array, start: number, limit: number): boolean {
    switch (type) {
      case FrameType.Settings:
        this.#receiveSettings(buffer, start, limit)
        break
      case FrameType.PriorityUpdate:
      case FrameType.PushPriorityUpdate:
        this.#receivePriorityUpdate(type, buffer, start, limit)
        break
      case FrameType.Origin:
        this.#receiveOrigin(buffer, start, limit)
        break
      default:
        this.#receiveNumber(type, buffer, start, limit)
    }
    return this.#owner.lifetime.stage === Stage.Open
  }

  #fail(code: number, message: string): 'over' {
    this.#owner.lifetime.fail(code, message)
    return 'over'
  }

  /** Counts a frame that costs the peer next to nothing; false: there were too many. */
  #spend(): boolean {
    const { emptyFrames, now } = this.#owner
    if (emptyFrames.take(now)) return true
    this.#fail(ErrorCode.ExcessiveLoad, 'too many frames that carry next to nothing')
    return false
  }

  #receiveSettings(buffer: Uint8Array, start: number, limit: number): void {
    const owner = this.#owner
    const code = owner.peer.read(buffer, start, limit)
    if (code !== ErrorCode.NoError) this.#fail(code, 'a setting that must not be')
    else owner.settingsCame()
  }

  #receiveOrigin(buffer: Uint8Array, start: number, limit: number): void {
    const owner = this.#owner
    // RFC 9412 §2, RFC 8336 §2.1: servers ignore it.
    if (!this.#spend() || owner.isServer) return
    owner.originSet ??= new Set()
    readOrigins(buffer, start, limit, owner.originSet)
  }

  /** GOAWAY, MAX_PUSH_ID, CANCEL_PUSH: a number and nothing else. */
  #receiveNumber(type: number, buffer: Uint8Array, start: number, limit: number): void {
    const { lifetime } = this.#owner
    const reader = this.#reader.start(buffer, start, limit)
    const id = reader.varint()
    // RFC 9114 §7.1
    if (reader.failed || reader.remaining > 0) return void this.#fail(ErrorCode.FrameError, 'a frame that is not one number')
    if (!this.#spend()) return
    if (type === FrameType.Goaway) return lifetime.receiveGoaway(id)
    // RFC 9114 §7.2.3: no push was promised, and none was allowed to be.
    if (type === FrameType.CancelPush) return void this.#fail(ErrorCode.IdError, 'CANCEL_PUSH of a push there never was')
    // RFC 9114 §7.2.7: it never becomes smaller.
    if (id < this.#maxPushId) return void this.#fail(ErrorCode.IdError, 'a smaller MAX_PUSH_ID than before')
    this.#maxPushId = id
  }

  #receivePriorityUpdate(type: number, buffer: Uint8Array, start: number, limit: number): void {
    const { exchanges, sender } = this.#owner
    const reader = this.#reader.start(buffer, start, limit)
    const id = reader.varint()
    if (reader.failed) return void this.#fail(ErrorCode.FrameError, 'PRIORITY_UPDATE without its element')
    // RFC 9218 §7.2: a push that was never promised; what is no request stream of a client.
    if (type === FrameType.PushPriorityUpdate) return void this.#fail(ErrorCode.IdError, 'PRIORITY_UPDATE of a push there never was')
    if (id % 4 !== 0) return void this.#fail(ErrorCode.IdError, 'PRIORITY_UPDATE of what is no request')
    if (!this.#spend()) return
    const value = latin1Slice(buffer, reader.at, limit)
    const stream = exchanges.byId(id)
    if (stream === undefined) {
      // RFC 9218 §7.2: it may come before its request, if it is one that may still come.
      if (id >= exchanges.nextPeerStreamId) this.#keepEarly(id, value)
      return
    }
    if (stream.receiving === Phase.Head) return this.#keepEarly(id, value)
    const priority = parsePriority(value)
    sender.prioritize(stream, priority)
    try {
      stream.handler.onPriority(priority)
    } catch (error) {
      exchanges.handlerFailed(stream, error)
    }
  }

  #keepEarly(id: number, value: string): void {
    const { earlyPriorities } = this
    if (earlyPriorities.size < mostEarly || earlyPriorities.has(id)) earlyPriorities.set(id, value)
  }

  takeEarlyPriority(streamId: number): string | undefined {
    if (this.earlyPriorities.size === 0) return undefined
    const value = this.earlyPriorities.get(streamId)
    this.earlyPriorities.delete(streamId)
    return value
  }
}
