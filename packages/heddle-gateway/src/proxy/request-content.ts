import type { Exchange, Fields } from 'heddle/http'
import { HeldContent } from './held-content.ts'

/** Request content kept until the response begins, so that it can be sent again, bytes. */
const replayLimit = 65_536

/** What came of a request behind its head, and is kept: until there is a connection, and while it may have to be sent again. */
export class RequestContent {
  /** Content that came before there was a connection, and, while `replayable`, all after it. */
  held: HeldContent | undefined
  /** `held` is all the content that came so far. */
  replayable: boolean
  trailers: Fields | undefined
  /** Nothing more comes. */
  ended: boolean

  constructor() {
    this.held = undefined
    this.replayable = true
    this.trailers = undefined
    this.ended = false
  }

  /** Nothing came and nothing comes. */
  get isEmpty(): boolean {
    return this.ended && this.held === undefined && this.trailers === undefined
  }

  /** Keeps a copy and returns it. */
  hold(buffer: Uint8Array, start: number, limit: number): Uint8Array {
    this.held ??= new HeldContent()
    return this.held.add(buffer, start, limit)
  }

  /** As `hold`; undefined, and never again, if that would be too much. */
  keepForReplay(buffer: Uint8Array, start: number, limit: number): Uint8Array | undefined {
    const size = this.held === undefined ? 0 : this.held.size
    if (size + limit - start <= replayLimit) return this.hold(buffer, start, limit)
    this.drop()
    return undefined
  }

  /** It will not be sent again. */
  drop(): void {
    this.replayable = false
    this.held = undefined
  }

  /** Sends all that came so far, behind the head. */
  sendTo(upstream: Exchange): void {
    this.held?.sendTo(upstream, this.ended && this.trailers === undefined)
    if (this.trailers !== undefined) upstream.sendTrailers(this.trailers)
  }
}
