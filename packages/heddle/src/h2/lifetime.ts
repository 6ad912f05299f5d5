import { PeerError, ProtocolError, type HeddleError, type Instant } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode, errorName, largestWindow } from './frame.ts'

/**
 * How far the connection has come.
 *
 *            GOAWAY is our last word              the peer closed, or time is up
 *    Open ───────────────────────────▶ Lingering ────────────────────────────────▶ Closed
 *      └─────────────────────────────────────────────────────────────────────────────▲
 *                     a client's last word, the peer's FIN, or a reset
 */
export const Stage = {
  Open: 0,
  /** What arrives is thrown away until the peer closes, so that it can read our last words. */
  Lingering: 1,
  /** Nothing more is received; what is staged still goes out, unless it is a reset. */
  Closed: 2,
} as const
export type Stage = (typeof Stage)[keyof typeof Stage]

/** How long a server waits for the peer's FIN after its own, ms, and for how many octets. */
const lingerTime = 1_000
const lingerSize = 1_048_576
/** How long the first GOAWAY of a graceful shutdown waits for the answer to its PING, ms. */
const roundTripTime = 1_000
/** The most of an error's words that goes into a GOAWAY. */
const longestDebug = 128

/** The end of a connection: GOAWAY both ways, graceful shutdown, errors of the connection. */
export class Lifetime {
  stage: Stage
  /** The peer is cut off: nothing is sent any more. */
  resets: boolean
  /** The last stream we said we process; Infinity: no GOAWAY that says so was sent. */
  sentGoaway: number
  /** The last stream the peer processes; Infinity: no GOAWAY came. */
  receivedGoaway: number
  isShuttingDown: boolean
  /** What the owner's `onClose` will say. */
  error: HeddleError | undefined
  readonly #owner: Connection
  #peerEnded: boolean
  #lingerDeadline: Instant
  #lingered: number
  /** When the second GOAWAY goes out even without the answer to the PING. */
  #shutdownDeadline: Instant
  /** The first one was said, and the next run of the engine knows when that was. */
  #shutdownUntimed: boolean

  constructor(owner: Connection) {
    this.stage = Stage.Open
    this.resets = false
    this.sentGoaway = Infinity
    this.receivedGoaway = Infinity
    this.isShuttingDown = false
    this.error = undefined
    this.#owner = owner
    this.#peerEnded = false
    this.#lingerDeadline = Infinity
    this.#lingered = 0
    this.#shutdownDeadline = Infinity
    this.#shutdownUntimed = false
  }

  get deadline(): Instant {
    return this.#lingerDeadline < this.#shutdownDeadline ? this.#lingerDeadline : this.#shutdownDeadline
  }

  /** A run begins. */
  stamp(): void {
    if (!this.#shutdownUntimed) return
    this.#shutdownUntimed = false
    if (this.stage === Stage.Open) this.#shutdownDeadline = this.#owner.now + roundTripTime
  }

  expire(now: Instant): void {
    if (now >= this.#shutdownDeadline) this.#sayGoodbye()
    if (now >= this.#lingerDeadline) this.#close()
  }

  /** What arrives while the connection lingers. */
  swallow(byteCount: number): void {
    this.#lingered += byteCount
    if (this.#lingered > lingerSize) this.#close()
  }

  /** True: client or server, nothing new is begun here. */
  get isDraining(): boolean {
    return this.isShuttingDown || this.receivedGoaway !== Infinity
  }

  /** True: our GOAWAY said that nothing on this stream is processed (RFC 9113 §6.8). */
  ignores(streamId: number): boolean {
    return streamId > this.sentGoaway && (streamId & 1) === (this.#owner.isServer ? 1 : 0)
  }

  // ── Errors and ends ─────────────────────────────────────────────────────────────────────────────

  /** GOAWAY, and the connection is over. `error`: what open exchanges end with, if not what `code` and `message` say. */
  fail(code: number, message: string, error?: HeddleError): void {
    if (this.stage !== Stage.Open) return
    const owner = this.#owner
    // RFC 9113 §6.8: the number never grows. What came after the last GOAWAY was not processed.
    const last = Math.min(this.sentGoaway, owner.exchanges.lastPeerStreamId)
    owner.sender.staging.goaway(last, code, message.slice(0, longestDebug))
    this.#finish(
      error ?? new ProtocolError(`${errorName(code)}: ${message}`, 400, 'PROTOCOL_ERROR', { wireCode: code, scope: 'connection' }),
    )
  }

  /** The connection has nothing to do any more: GOAWAY unless it was said, then the end. There are no exchanges. */
  closeIdle(): void {
    if (this.stage !== Stage.Open) return
    if (this.sentGoaway === Infinity) this.#sayGoodbye()
    this.#finish(undefined)
  }

  #finish(error: HeddleError | undefined): void {
    const owner = this.#owner
    this.#shutdownDeadline = Infinity
    if (this.#peerEnded || !owner.isServer) this.#close()
    else {
      this.stage = Stage.Lingering
      this.#lingerDeadline = owner.now + lingerTime
    }
    if (error !== undefined) {
      this.error ??= error
      owner.exchanges.closeAll(error, false)
    }
    owner.markDirty()
  }

  #close(): void {
    this.stage = Stage.Closed
    this.#shutdownDeadline = Infinity
    this.#lingerDeadline = Infinity
  }

  /** At once, without a word. `isLocal`: this side wants it so. */
  reset(error: HeddleError | undefined, isLocal: boolean): void {
    const { exchanges, sender, notices } = this.#owner
    if (error !== undefined && this.stage === Stage.Open) this.error ??= error
    this.#close()
    this.resets = true
    if (error !== undefined) exchanges.closeAll(error, isLocal)
    sender.drop()
    notices.failReports(error)
    this.#owner.markDirty()
  }

  /** The peer's FIN. */
  receiveEnd(): void {
    this.#peerEnded = true
    if (this.stage !== Stage.Open) return this.#close()
    const { exchanges } = this.#owner
    this.#close()
    if (exchanges.open === 0) return
    const error = new PeerError('PEER_CLOSED', 'the peer closed the connection while requests were under way')
    this.error ??= error
    exchanges.closeAll(error, false)
  }

  // ── GOAWAY ──────────────────────────────────────────────────────────────────────────────────────

  /** No new exchanges here, and those beyond `last` were not processed. */
  receiveGoaway(last: number, code: number, debug: string): void {
    const owner = this.#owner
    const isFirst = this.receivedGoaway === Infinity
    // RFC 9113 §6.8: the number never grows.
    this.receivedGoaway = Math.min(this.receivedGoaway, last)
    const reason = `the peer is going away: ${errorName(code)}${debug === '' ? '' : ` (${debug})`}`
    const facts = { wireCode: code, scope: 'connection' } as const
    if (code !== ErrorCode.NoError) this.error ??= new PeerError('PEER_CLOSED', reason, facts)
    if (isFirst) owner.announcements.tellDraining()
    if (!owner.isServer) owner.exchanges.closeBeyond(last, new PeerError('PEER_CLOSED', reason, { ...facts, unprocessed: true }))
  }

  /** Graceful: no new exchanges, open ones finish, then the connection closes. */
  shutdown(): void {
    if (this.isShuttingDown || this.stage !== Stage.Open) return
    const owner = this.#owner
    this.isShuttingDown = true
    if (owner.isServer) {
      // RFC 9113 §6.8: first a GOAWAY that refuses nothing, and a round trip later the one that counts,
      // so that no request that was under way is lost.
      owner.sender.staging.goaway(largestWindow, ErrorCode.NoError, '')
      owner.liveness.pingShutdown()
      this.#shutdownUntimed = true
    } else this.#sayGoodbye()
    owner.markDirty()
  }

  /** The round trip after the first GOAWAY is over. */
  roundTripOver(): void {
    if (this.#shutdownDeadline !== Infinity) this.#sayGoodbye()
  }

  #sayGoodbye(): void {
    const { exchanges, sender } = this.#owner
    this.#shutdownDeadline = Infinity
    this.sentGoaway = exchanges.lastPeerStreamId
    sender.staging.goaway(this.sentGoaway, ErrorCode.NoError, '')
    this.#owner.markDirty()
  }

  /** True: nothing new is begun, and the last exchange is over. */
  get mayFinish(): boolean {
    if (this.stage !== Stage.Open || this.#owner.exchanges.open > 0) return false
    return this.receivedGoaway !== Infinity || (this.isShuttingDown && this.sentGoaway !== Infinity)
  }

  maybeFinish(): void {
    if (this.mayFinish) this.closeIdle()
  }
}
