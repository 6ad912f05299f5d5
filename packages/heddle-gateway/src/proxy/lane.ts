import { randomBytes } from 'node:crypto'
import type { Exchange } from 'heddle/http'
import { FrameTracker } from './frame-tracker.ts'

const noBytes = new Uint8Array(0)

/** RFC 6455 §7.4.1: an endpoint goes away. */
const goingAway = 1001

/**
 * What passes in a lane:
 *
 *     Open ──close()──▶ Closing ──the frame under way ends──▶ Closed
 *      │                                                        ▲
 *      └───────────────close() between two frames──────────────┘
 */
const Passage = { Open: 0, Closing: 1, Closed: 2 } as const
type Passage = (typeof Passage)[keyof typeof Passage]

/**
 * One direction of a tunnel: bytes go from `source` to `sink` as they come, and the source gets credit for
 * what the sink's connection has taken. In a WebSocket a Close can be put behind the last whole frame.
 */
export class Lane {
  readonly source: Exchange
  readonly sink: Exchange
  /** Undefined: it is no WebSocket. */
  readonly frames: FrameTracker | undefined
  /** What goes to a server is masked (RFC 6455 §5.1). */
  private readonly masked: boolean
  private passage: Passage
  /** Bytes on their way, for which the source waits to get credit. */
  private owed: number
  /** Nothing more comes … */
  sourceEnded: boolean
  /** … and nothing more goes. */
  sinkEnded: boolean

  constructor(source: Exchange, sink: Exchange, websocket: boolean, masked: boolean) {
    this.source = source
    this.sink = sink
    this.frames = websocket ? new FrameTracker() : undefined
    this.masked = masked
    this.passage = Passage.Open
    this.owed = 0
    this.sourceEnded = false
    this.sinkEnded = false
  }

  /** True: our Close was the last that the sink got. */
  get closed(): boolean {
    return this.passage === Passage.Closed
  }

  /** `buffer[start, limit)` came from the source. */
  pass(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    if (end) this.sourceEnded = true
    const { frames } = this
    if (this.passage === Passage.Open) {
      frames?.advance(buffer, start, limit, false)
      this.send(buffer, start, limit, end)
      return
    }
    let at = start
    if (this.passage === Passage.Closing) {
      at = (frames as FrameTracker).advance(buffer, start, limit, true)
      const complete = (frames as FrameTracker).atBoundary
      this.send(buffer, start, at, end && !complete)
      if (complete) this.sendClose()
    }
    if (at === limit) return
    // For nobody: the sink was told that nothing follows.
    frames?.advance(buffer, at, limit, false)
    this.source.consume(limit - at)
  }

  /** As `pass`, for bytes that stay as they are. Before `close` only. */
  sendOwned(chunk: Uint8Array, end: boolean): boolean {
    if (end) this.sourceEnded = this.sinkEnded = true
    this.frames?.advance(chunk, 0, chunk.length, false)
    this.owed += chunk.length
    return this.sink.sendOwned(chunk, end)
  }

  /** The sink's connection has taken so many bytes. A Close of ours is among them, the last, and nobody's to be credited. */
  taken(byteCount: number): void {
    const credit = Math.min(byteCount, this.owed)
    this.owed -= credit
    if (credit > 0) this.source.consume(credit)
  }

  /** Puts a Close where the frame ends that is under way, and lets nothing pass behind it. False: it cannot be, since these are no frames. */
  close(): boolean {
    const { frames } = this
    if (frames === undefined || frames.lost) return false
    if (this.passage !== Passage.Open || this.sinkEnded) return true
    if (frames.atBoundary) this.sendClose()
    else this.passage = Passage.Closing
    return true
  }

  /** Ends what goes to the sink, if that has not ended. */
  end(): void {
    if (!this.sinkEnded) this.send(noBytes, 0, 0, true)
  }

  private send(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    if (this.sinkEnded) return
    if (end) this.sinkEnded = true
    this.owed += limit - start
    this.sink.sendData(buffer, start, limit, end)
  }

  private sendClose(): void {
    this.passage = Passage.Closed
    const frame = closeFrame(this.masked)
    this.sink.sendData(frame, 0, frame.length, false)
  }
}

/** RFC 6455 §5.5.1: a Close with its code. RFC 6455 §5.3: the key is not to be foreseen. */
function closeFrame(masked: boolean): Uint8Array {
  const code = [goingAway >> 8, goingAway & 0xff] as const
  if (!masked) return Uint8Array.of(0x88, 0x02, ...code)
  const key = randomBytes(4)
  return Uint8Array.of(0x88, 0x82, ...key, code[0] ^ (key[0] as number), code[1] ^ (key[1] as number))
}
