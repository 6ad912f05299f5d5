import { WheelNode, type Linked } from '../bytes/index.ts'
import { ErrorCode } from '../h2/index.ts'
import { ErrorCode as Http3ErrorCode } from '../h3/index.ts'
import {
  CancelledError,
  CancelReason,
  TimeoutError,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type Instant,
  type Priority,
} from '../http/index.ts'
import { warnOfFault } from '../io/index.ts'
import type { PooledConnection } from './connection.ts'
import type { PooledOrigin } from './origin.ts'
import { isMultiplexed } from './protocols.ts'

/** What a request needs of its handler: to be told of its exchange, then of what happens on it. */
export interface ClientExchangeHandler extends ExchangeHandler {
  /**
   * Read when the server has certainly not acted on the request: a kept-alive connection turned out to
   * be dead before any byte of it was on the wire, or a server of HTTP/2 or HTTP/3 refused the stream, went away
   * before it (GOAWAY) or wants HTTP/1.1 for it. True: the request moves on to another connection (with these
   * three times at most from connections that were of no use to anybody), and `onOpen` is called again with another exchange, from which everything
   * is sent anew. Otherwise `onClose` brings the error, which is `unprocessed`. Keep it true while
   * whatever was sent so far can be sent again. Default false.
   */
  readonly replayable?: boolean
  /**
   * A connection is there: send the head on `exchange`. Possibly called before `exchange()` has
   * returned. If no connection is to be had, only `onClose` is called, with the error.
   */
  onOpen(exchange: Exchange): void
  /** The request moves on (see `replayable`): the exchange it had is gone, and it waits for another one. */
  onMove?(): void
  /**
   * The client was told to close, and waits for the end of this request like that of any other. What has
   * no end of its own, such as a tunnel, comes to one now. Not called from inside `client.close()`.
   */
  onShutdown?(): void
}

/** One request, from `exchange()` to `onClose`. */
export interface Ticket {
  /** Ends the request, whether it waits or runs; `onClose` follows in a later turn. O(1). Does nothing once it is over. */
  cancel(reason: CancelReason): void
  /** True when the request went to a connection on which another one had been answered before. */
  readonly reused: boolean
  /** True once the head of a response, an informational one included, has arrived. */
  readonly responded: boolean
  /** How often the request moved on to another connection (see `replayable`). */
  readonly moves: number
  /**
   * The exchange, which was given another handler (`exchange.handler`), is over: to be called in that
   * handler's `onClose`, since the pool hears nothing of it. Does nothing once the request is over.
   */
  handedBack(error: HeddleError | undefined): void
}

/** RFC 9110 §15.5.20 */
const misdirectedRequest = 421
/**
 * How often a request moves on from HTTP/2 connections that were of no use to anybody: enough for a server that
 * restarts, not enough to wear one down.
 */
export const mostMoves = 3

/**
 * True if `connection`, which a request leaves because of `error`, ended having answered some other, or has still to.
 * Servers end connections after so many requests, and of a burst each takes the oldest: it all gets done.
 */
function wasOfUse({ scope }: HeddleError, { proven, engine }: PooledConnection): boolean {
  return scope !== 'stream' && (proven || engine.openExchanges > 0)
}

/** How a server says that it does not want to go on with a request, by HTTP/2 and by HTTP/3. */
const cancels: readonly number[] = [ErrorCode.Cancel, Http3ErrorCode.RequestCancelled]

/** RFC 9113 §7, RFC 9114 §8.1. The codes of the two versions have no number in common. */
function wantsHttp1(wireCode: number | undefined): boolean {
  return wireCode === ErrorCode.Http11Required || wireCode === Http3ErrorCode.VersionFallback
}

/**
 * True if `error`, which ended a request without an answer, says something of its connection. CANCEL is
 * about the one request, and HTTP_1_1_REQUIRED is an answer.
 */
function isServersDoing({ code, wireCode }: HeddleError): boolean {
  if (code === 'PEER_RESET') return !cancels.includes(wireCode as number) && !wantsHttp1(wireCode)
  return code === 'PROTOCOL_ERROR' || code === 'HEAD_TIMEOUT' || code === 'SEND_TIMEOUT'
}

/**
 * Where a request stands:
 *
 *     Waiting ──connection──▶ Open ──▶ Over
 *        │  ▲                  │
 *        │  └─ not acted on ───┘
 *        └──cancel, limit, dial failed──▶ Ending ──next turn──▶ Over
 */
export const TicketState = { Waiting: 0, Open: 1, Ending: 2, Over: 3 } as const
export type TicketState = (typeof TicketState)[keyof typeof TicketState]

/**
 * A request in the pool. While it waits it is a node of its origin's queue; while it is open it
 * stands between the engine and the program's handler, so that the pool learns how it ends.
 */
export class ClientTicket implements Ticket, ExchangeHandler, Linked {
  previous: Linked | undefined
  next: Linked | undefined
  /** Where it stands. A tunnel goes to another one if no HTTP/2 connection is good for it. */
  origin: PooledOrigin
  readonly handler: ClientExchangeHandler
  /** See `ExchangeOptions.tunnel`. */
  readonly tunnel: boolean
  state: TicketState
  reused: boolean
  responded: boolean
  /** Set by `cancel` while open: it is not moved to another connection any more. */
  withdrawn: boolean
  /** It was cancelled at a connection of another origin or by an alternative, which does not answer for its own. */
  misdirected: boolean
  moves: number
  /** Moves from connections that were of no use. */
  fruitlessMoves: number
  /** Which of its connection's requests it is, from 1. */
  order: number
  exchange: Exchange | undefined
  connection: PooledConnection | undefined
  /** Why this side ended it; told in place of what the engine makes of it. */
  failure: HeddleError | undefined
  /** When it began to wait. */
  since: Instant
  /** True: it waits for as long as the queue moves; false: to its own limit, if it has one. */
  patient: boolean
  queueDeadline: Instant
  totalDeadline: Instant
  /** Only made when one of the two deadlines is finite. */
  alarm: WheelNode | undefined

  constructor(origin: PooledOrigin, handler: ClientExchangeHandler, tunnel: boolean) {
    this.previous = undefined
    this.next = undefined
    this.origin = origin
    this.handler = handler
    this.tunnel = tunnel
    this.state = TicketState.Waiting
    this.reused = false
    this.responded = false
    this.withdrawn = false
    this.misdirected = false
    this.moves = 0
    this.fruitlessMoves = 0
    this.order = 0
    this.exchange = undefined
    this.connection = undefined
    this.failure = undefined
    this.since = 0
    this.patient = true
    this.queueDeadline = Infinity
    this.totalDeadline = Infinity
    this.alarm = undefined
  }

  /** Sets the limits of waiting and of the whole. At least one is finite. */
  limit(queueDeadline: Instant, totalDeadline: Instant): void {
    this.queueDeadline = queueDeadline
    this.totalDeadline = totalDeadline
    this.alarm = new WheelNode(() => this.#expire())
    this.origin.pool.arm(this.alarm, Math.min(queueDeadline, totalDeadline))
  }

  cancel(reason: CancelReason): void {
    if (this.state === TicketState.Open) {
      this.withdrawn = true
      this.exchange?.cancel(reason)
    } else if (this.state === TicketState.Waiting) {
      this.origin.leave(this, new CancelledError(reason, 'cancelled while waiting for a connection', { unprocessed: true }))
    }
  }

  /** `connection` opened `exchange` for it. */
  start(connection: PooledConnection, exchange: Exchange): void {
    this.state = TicketState.Open
    this.connection = connection
    this.exchange = exchange
    if (this.alarm !== undefined) this.origin.pool.arm(this.alarm, this.totalDeadline)
    try {
      this.handler.onOpen(exchange)
    } catch (cause) {
      // A handler that throws has its exchange cancelled, nothing else.
      this.fail(new CancelledError(CancelReason.InternalError, 'onOpen failed', { cause }), CancelReason.InternalError)
    }
  }

  /** Cancels the open exchange; the program is told `error`. */
  fail(error: HeddleError, reason: CancelReason): void {
    this.withdrawn = true
    this.failure = error
    this.exchange?.cancel(reason)
  }

  /** The client was told to close. */
  announceShutdown(): void {
    try {
      this.handler.onShutdown?.()
    } catch (cause) {
      // What it has not ended goes on to its end.
      warnOfFault(cause)
    }
  }

  /** Over: nothing of the pool holds it any more, and it holds nothing of the pool. */
  finish(): void {
    const { pool } = this.origin
    this.state = TicketState.Over
    this.exchange = undefined
    this.connection = undefined
    if (this.alarm !== undefined) pool.disarm(this.alarm)
    pool.settings.loopHold?.leave()
  }

  /** Tells the program of the end of a request that has no exchange (any more). Not called by engines. */
  conclude(): void {
    const error = this.failure
    this.finish()
    if (error !== undefined) this.origin.counters.countError(error.code)
    try {
      this.handler.onClose(error)
    } catch (cause) {
      // It was the last call: there is nothing left to end.
      warnOfFault(cause)
    }
  }

  onHead(head: Head, end: boolean): void {
    const { connection } = this
    if (connection !== undefined) {
      connection.answered()
      const isElsewhere = connection.origin !== this.origin || connection.protocol === 'h3'
      if (isElsewhere && head.status === misdirectedRequest && this.#leaves(connection)) return
      const { pool } = this.origin
      // RFC 7838 §6: what a 421 says of it is ignored.
      if (pool.alternatives !== undefined && head.status >= 200 && head.status !== misdirectedRequest) {
        pool.alternatives.learn(this.origin, head.fields, connection, pool.clock.now())
      }
    }
    this.responded = true
    if (this.tunnel && head.status >= 200 && head.status < 300 && this.exchange?.upgradeIgnored !== true) connection?.becameTunnel()
    this.handler.onHead(head, end)
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.handler.onData(buffer, start, limit, end)
  }

  onTrailers(fields: Fields): void {
    this.handler.onTrailers(fields)
  }

  onSent(byteCount: number, writable: boolean): void {
    this.handler.onSent(byteCount, writable)
  }

  onPriority(priority: Priority): void {
    this.handler.onPriority(priority)
  }

  onClose(error: HeddleError | undefined): void {
    if (this.state !== TicketState.Open) return
    const connection = this.connection as PooledConnection
    connection.release(this)
    let told = error
    if (error !== undefined) {
      if (!this.responded && isServersDoing(error)) connection.failed(this.order)
      if (this.#mayMove(error, connection)) {
        if (!wasOfUse(error, connection)) this.fruitlessMoves++
        this.#moveOn()
        // What it leaves behind may be good for another request.
        connection.offer()
        return
      }
      told = this.failure ?? this.origin.errorAbout(error)
      this.origin.counters.countError(told.code)
    }
    this.finish()
    // Whoever waits comes first; then the program, whose next request may find the connection idle.
    connection.offer()
    this.handler.onClose(told)
  }

  handedBack(error: HeddleError | undefined): void {
    if (this.state !== TicketState.Open) return
    const connection = this.connection as PooledConnection
    connection.release(this)
    if (error !== undefined) this.origin.counters.countError(error.code)
    this.finish()
    connection.offer()
  }

  /** A connection of another origin, or by an alternative, will not do. True: the request goes to one of its own. */
  #leaves(connection: PooledConnection): boolean {
    const { origin } = this
    if (connection.origin !== origin) origin.misdirect()
    else if (connection.protocol !== 'h3' || !origin.loseAlternative(connection)) return false
    if (this.withdrawn || this.handler.replayable !== true) return false
    this.misdirected = true
    this.exchange?.cancel(CancelReason.Cancelled)
    return true
  }

  #mayMove(error: HeddleError, connection: PooledConnection): boolean {
    if (this.misdirected && !this.withdrawn) return true
    const { protocol } = connection
    const http1 = isMultiplexed(protocol) && wantsHttp1(error.wireCode) && this.#turnsToHttp1()
    if (this.withdrawn || this.responded || error instanceof CancelledError || this.handler.replayable !== true) return false
    if (http1) return true
    if (!error.unprocessed) return false
    // With HTTP/1.1 only from a connection that had served before: each such move uses one up, so moving ends.
    if (!this.tunnel && protocol === 'h1') return this.reused
    return this.fruitlessMoves < mostMoves || wasOfUse(error, connection)
  }

  /** What a server wants of a tunnel says nothing of other requests. */
  #turnsToHttp1(): boolean {
    return this.tunnel ? this.origin.route.protocols.includes('h1') : this.origin.requireHttp1()
  }

  #moveOn(): void {
    const { origin } = this
    const { pool } = origin
    origin.counters.retries++
    this.moves++
    this.misdirected = false
    this.exchange = undefined
    this.connection = undefined
    this.reused = false
    let failure: HeddleError | undefined
    try {
      this.handler.onMove?.()
      // Cancelled in there.
      if (this.withdrawn) failure = new CancelledError(CancelReason.Cancelled, 'cancelled while it moved on', { unprocessed: true })
    } catch (cause) {
      failure = new CancelledError(CancelReason.InternalError, 'onMove failed', { cause })
    }
    if (failure !== undefined) return pool.end(this, failure)
    this.state = TicketState.Waiting
    if (this.alarm !== undefined) pool.arm(this.alarm, Math.min(this.queueDeadline, this.totalDeadline))
    if (this.tunnel) this.origin = pool.directory.forTunnels(origin)
    this.origin.enterAgain(this)
  }

  #expire(): void {
    const { pool, key } = this.origin
    pool.timers--
    const isTotal = this.state === TicketState.Open || pool.clock.now() >= this.totalDeadline
    const error = new TimeoutError(
      isTotal ? 'total' : 'queue',
      isTotal ? `the request to ${key} took too long` : `no connection to ${key} became free in time`,
      {
        unprocessed: this.state === TicketState.Waiting,
      },
    )
    if (this.state === TicketState.Open) this.fail(error, CancelReason.Timeout)
    else if (this.state === TicketState.Waiting) this.origin.leave(this, error)
  }
}
