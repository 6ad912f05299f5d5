import { PeerError, ProtocolError, type HeddleError, type Instant } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode, errorName } from './frame.ts'

/**
 * How far the connection has come. CONNECTION_CLOSE takes everything with it that has not arrived, so a connection
 * that ends in peace is closed when QUIC has brought the last of its streams to its end.
 */
export const Stage = { Open: 0, Closed: 1 } as const
export type Stage = (typeof Stage)[keyof typeof Stage]

/** A GOAWAY that refuses nothing (RFC 9114 §5.2): the largest id of a request that a double holds. */
const noRequest = 2 ** 62 - 512
/** How long the first GOAWAY of a graceful shutdown waits for the requests that were under way, ms at most. */
const longestWait = 1_000
/** How long the last streams may take to arrive, and the peer to close after our last word, ms. */
const lingerTime = 3_000
/** The most of an error's words that goes into a CONNECTION_CLOSE. */
const longestReason = 128

/** The end of a connection: GOAWAY both ways, graceful shutdown, errors of the connection. */
export class Lifetime {
  stage: Stage
  /** Server: the requests from this one on are refused; Infinity: no GOAWAY that says so was sent. */
  sentGoaway: number
  /** What the peer's GOAWAY said last; Infinity: none came. */
  receivedGoaway: number
  isShuttingDown: boolean
  /** What the owner's `onClose` will say. */
  error: HeddleError | undefined
  readonly #owner: Connection
  /** The last GOAWAY was said, so the connection ends with its exchanges. */
  #saidGoodbye: boolean
  /** When the second GOAWAY goes out. */
  #shutdownDeadline: Instant
  /** The first one was said, and the next run of the engine knows when that was. */
  #shutdownUntimed: boolean
  /** Nothing is left to be done but to wait for what is under way, so long. */
  #lingerDeadline: Instant
  /** … and a server for its client to close, so long. */
  #courtesyDeadline: Instant

  constructor(owner: Connection) {
    this.stage = Stage.Open
    this.sentGoaway = Infinity
    this.receivedGoaway = Infinity
    this.isShuttingDown = false
    this.error = undefined
    this.#owner = owner
    this.#saidGoodbye = false
    this.#shutdownDeadline = Infinity
    this.#shutdownUntimed = false
    this.#lingerDeadline = Infinity
    this.#courtesyDeadline = Infinity
  }

  get deadline(): Instant {
    return Math.min(this.#shutdownDeadline, this.#lingerDeadline, this.#courtesyDeadline)
  }

  /** A run begins. */
  stamp(): void {
    if (!this.#shutdownUntimed) return
    this.#shutdownUntimed = false
    if (this.stage === Stage.Open) this.#shutdownDeadline = this.#owner.now + this.#roundTrips(1)
  }

  expire(now: Instant): void {
    if (this.stage !== Stage.Open) return
    if (now >= this.#shutdownDeadline) this.#sayGoodbye()
    if (now >= this.#lingerDeadline || now >= this.#courtesyDeadline) this.#closeInPeace()
  }

  #roundTrips(count: number): number {
    return Math.min(longestWait, Math.ceil(count * this.#owner.transport.roundTripTime) + 1)
  }

  /** True: client or server, nothing new is begun here. */
  get isDraining(): boolean {
    return this.isShuttingDown || this.receivedGoaway !== Infinity
  }

  // ── Errors and ends ─────────────────────────────────────────────────────────────────────────────

  /** CONNECTION_CLOSE, and the connection is over. `error`: what open exchanges end with, if not what `code` and `message` say. */
  fail(code: number, message: string, error?: HeddleError): void {
    if (this.stage !== Stage.Open) return
    this.#owner.transport.close(code, message.slice(0, longestReason))
    const facts = { wireCode: code, scope: 'connection' } as const
    this.#end(error ?? new ProtocolError(`${errorName(code)}: ${message}`, 400, 'PROTOCOL_ERROR', facts), false)
  }

  /** At once, without a word. `isLocal`: this side wants it so. */
  abort(error: HeddleError, isLocal: boolean): void {
    if (this.stage !== Stage.Open) return
    this.#owner.transport.close(isLocal ? ErrorCode.NoError : ErrorCode.InternalError, '')
    this.#end(error, isLocal)
  }

  /** QUIC says that it is over. */
  receiveClose(error: HeddleError): void {
    if (this.stage !== Stage.Open) return
    const { exchanges } = this.#owner
    // RFC 9114 §5.3: H3_NO_ERROR, with nothing under way.
    if (error.code === 'PEER_CLOSED' && error.wireCode === ErrorCode.NoError) {
      if (exchanges.open === 0) return this.#end(undefined, false)
      const facts = { wireCode: ErrorCode.NoError, scope: 'connection', cause: error } as const
      return this.#end(new PeerError('PEER_CLOSED', 'the peer closed the connection while requests were under way', facts), false)
    }
    this.#end(error, false)
  }

  #end(error: HeddleError | undefined, isLocal: boolean): void {
    const owner = this.#owner
    this.stage = Stage.Closed
    this.#shutdownDeadline = Infinity
    this.#lingerDeadline = Infinity
    this.#courtesyDeadline = Infinity
    if (error !== undefined) {
      this.error ??= error
      owner.exchanges.closeAll(error, isLocal)
    }
    owner.wake()
  }

  // ── GOAWAY ──────────────────────────────────────────────────────────────────────────────────────

  /** A server's GOAWAY names a request, a client's a push. */
  receiveGoaway(id: number): void {
    const owner = this.#owner
    const { isServer, exchanges } = owner
    // RFC 9114 §7.2.6: a request is named by the id of a stream that a client began.
    if (!isServer && id % 4 !== 0) return this.fail(ErrorCode.IdError, 'GOAWAY names no request')
    // RFC 9114 §5.2: the number never grows.
    if (id > this.receivedGoaway) return this.fail(ErrorCode.IdError, 'GOAWAY takes back what another said')
    const isFirst = this.receivedGoaway === Infinity
    this.receivedGoaway = id
    if (isFirst) owner.announcements.tellDraining()
    if (isServer) return
    const facts = { scope: 'connection', unprocessed: true, wireCode: ErrorCode.NoError } as const
    exchanges.closeFrom(id, new PeerError('PEER_CLOSED', 'the peer is going away', facts))
  }

  /** Graceful: no new exchanges, open ones finish, then the connection closes. */
  shutdown(): void {
    if (this.isShuttingDown || this.stage !== Stage.Open) return
    const owner = this.#owner
    this.isShuttingDown = true
    if (owner.isServer) {
      // RFC 9114 §5.2: first a GOAWAY that refuses nothing, and a round trip later the one that counts, so that no
      // request that was under way is lost.
      owner.streams.sendGoaway(noRequest)
      this.#shutdownUntimed = true
    } else this.#sayGoodbye()
    owner.wake()
  }

  /** The connection has nothing to do any more. */
  closeIdle(): void {
    if (this.stage !== Stage.Open) return
    this.isShuttingDown = true
    if (!this.#saidGoodbye) this.#sayGoodbye()
  }

  #sayGoodbye(): void {
    const owner = this.#owner
    this.#shutdownDeadline = Infinity
    this.#saidGoodbye = true
    // RFC 9114 §5.2: a client names a push, and takes none.
    if (owner.isServer) this.sentGoaway = owner.exchanges.nextPeerStreamId
    owner.streams.sendGoaway(owner.isServer ? this.sentGoaway : 0)
    owner.wake()
  }

  /** A run of the engine ends: closes when nothing new is begun, and the last exchange is over and has arrived. */
  maybeFinish(): void {
    const owner = this.#owner
    if (this.stage !== Stage.Open || owner.exchanges.open > 0) return
    // A client's GOAWAY is about pushes: it closes the connection itself when it is done.
    if (!this.#saidGoodbye && (owner.isServer || this.receivedGoaway === Infinity)) return
    if (this.#lingerDeadline === Infinity) this.#lingerDeadline = owner.now + lingerTime
    if (owner.exchanges.streams > 0) return
    // A client that has read the GOAWAY closes; until then it may have sent a request that must be known as refused.
    if (!owner.isServer) this.#closeInPeace()
    else if (this.#courtesyDeadline === Infinity) this.#courtesyDeadline = owner.now + this.#roundTrips(3)
  }

  #closeInPeace(): void {
    this.#owner.transport.close(ErrorCode.NoError, '')
    this.#end(undefined, false)
  }
}
