import {
  CancelReason,
  isIdempotent,
  ProtocolError,
  responseHead,
  TimeoutError,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type Instant,
  type Priority,
} from 'heddle/http'
import type { RequestRecord } from '../record.ts'
import type { Endpoint } from '../upstream/index.ts'
import { Attempt } from './attempt.ts'
import type { DeadlineQueue, Waiting } from './deadlines.ts'
import { HeldContent } from './held-content.ts'
import { planRequest, Refusal, type Plan } from './plan.ts'
import type { ListenerState, Proxy } from './proxy.ts'
import { answerFor, upstreamReason, type Answer, type Reason } from './reason.ts'
import { TunnelWatch } from './tunnel-watch.ts'

/** Request content kept until the response begins, so that it can be sent again, bytes. */
const replayLimit = 65_536
const noContent = new Uint8Array(0)

/**
 * How far a request has come.
 *
 * ```
 *            admitted          response head             both ended
 * Reading ───────────▶ Trying ──────────────▶ Responding ──────────▶ Closed
 *    │                 │ │ ▲ └ 2xx to CONNECT ▶ Tunnel ─────────────────▲
 *    │         refused │ └─┘ another endpoint                           │
 *    └─────────────────┴──────▶ Answered (by the gateway itself) ───────┘
 * ```
 */
const Phase = { Reading: 0, Trying: 1, Responding: 2, Tunnel: 3, Answered: 4, Closed: 5 } as const
type Phase = (typeof Phase)[keyof typeof Phase]

/**
 * One request on its way through: the handler of the client's exchange, and what holds it together
 * with its {@link Attempt}. Content flows straight from one exchange to the other; the side it comes
 * from gets credit for what the other side's connection has taken, so a slow reader slows its writer
 * and nothing piles up here.
 */
export class Forward implements ExchangeHandler, Waiting {
  readonly proxy: Proxy
  readonly listener: ListenerState
  readonly exchange: Exchange
  deadlineQueue: DeadlineQueue | undefined
  deadline: Instant
  before: Waiting | undefined
  after: Waiting | undefined
  phase: Phase
  /** From the head to the close. */
  record: RequestRecord | undefined
  startedAt: Instant
  /** Set from Trying on. */
  plan: Plan | undefined
  /** It asks for a tunnel: Upgrade, or extended CONNECT. */
  isTunnelRequest: boolean
  attempt: Attempt | undefined
  /** Endpoints that failed this request. */
  tried: Endpoint[] | undefined
  /** Request content that came before there was a connection, and, while `replayable`, all after it. */
  held: HeldContent | undefined
  /** `held` is all the content that came so far. */
  replayable: boolean
  trailers: Fields | undefined
  requestEnded: boolean
  responseEnded: boolean
  /** Request content the client got credit for. */
  credited: number
  watch: TunnelWatch | undefined

  constructor(proxy: Proxy, listener: ListenerState, exchange: Exchange) {
    this.proxy = proxy
    this.listener = listener
    this.exchange = exchange
    this.deadlineQueue = undefined
    this.deadline = Infinity
    this.before = undefined
    this.after = undefined
    this.phase = Phase.Reading
    this.record = undefined
    this.startedAt = 0
    this.plan = undefined
    this.isTunnelRequest = false
    this.attempt = undefined
    this.tried = undefined
    this.held = undefined
    this.replayable = true
    this.trailers = undefined
    this.requestEnded = false
    this.responseEnded = false
    this.credited = 0
    this.watch = undefined
  }

  // ── The client's leg ────────────────────────────────────────────────────────────────────────────

  onHead(head: Head, end: boolean): void {
    const { proxy, listener, exchange } = this
    this.startedAt = proxy.clock.now()
    this.requestEnded = end
    this.record = {
      startedAt: proxy.clock.wallTime(),
      listener: listener.config.name,
      route: '',
      cluster: '',
      endpoint: '',
      remoteAddress: exchange.connection.remote.address,
      protocol: exchange.protocol,
      upstreamProtocol: '',
      method: head.protocol === '' ? head.method : 'GET',
      authority: head.authority,
      path: head.path,
      status: 0,
      reason: '',
      attempts: 0,
      requestSize: 0,
      responseSize: 0,
      duration: 0,
      timeToHead: -1,
      tunnel: false,
    }
    proxy.startRequest(listener)
    this.admit(head, this.record)
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const { phase } = this
    if (this.record !== undefined) this.record.requestSize += limit - start
    if (end) this.requestEnded = true
    if (phase === Phase.Answered || phase === Phase.Closed) return
    const upstream = this.attempt?.exchange
    if (this.watch !== undefined) this.watch.lastActivity = this.proxy.clock.now()
    else if (upstream === undefined || this.isTunnelRequest) {
      // Bounded by the receive window: there is no credit for it before it has been sent.
      if (limit > start) this.hold(buffer, start, limit)
      return
    } else if (this.replayable && limit > start) {
      const copy = this.keepForReplay(buffer, start, limit)
      if (copy !== undefined) {
        upstream.sendOwned(copy, end)
        return
      }
    }
    upstream?.sendData(buffer, start, limit, end)
  }

  onTrailers(fields: Fields): void {
    this.requestEnded = true
    this.trailers = fields
    if (this.phase === Phase.Trying || this.phase === Phase.Responding) this.attempt?.exchange?.sendTrailers(fields)
  }

  onSent(byteCount: number, _writable: boolean): void {
    if (this.record !== undefined) this.record.responseSize += byteCount
    // The gateway's own answers have no source to credit.
    if (this.phase === Phase.Responding || this.phase === Phase.Tunnel) this.attempt?.exchange?.consume(byteCount)
  }

  onPriority(priority: Priority): void {
    this.attempt?.exchange?.setPriority(priority)
  }

  onClose(error: HeddleError | undefined): void {
    const { record, attempt } = this
    if (record === undefined) return
    if (error === undefined) {
      // Upstream may still be taking the end of what the client said.
      if (attempt !== undefined) attempt.detached = true
    } else {
      recordClientError(record, error)
      attempt?.cancel(this.phase === Phase.Tunnel ? CancelReason.ConnectError : upstreamCancelReason(error))
    }
    if (this.watch !== undefined) {
      this.watch.stop()
      this.proxy.tunnels--
    }
    this.deadlineQueue?.remove(this)
    this.phase = Phase.Closed
    this.attempt = undefined
    this.record = undefined
    this.held = undefined
    record.duration = this.proxy.clock.now() - this.startedAt
    this.proxy.endRequest(record)
  }

  // ── The upstream leg ────────────────────────────────────────────────────────────────────────────

  /** A connection is there, possibly another one than before: everything is sent from the beginning. */
  onUpstreamOpen(attempt: Attempt, upstream: Exchange): void {
    const { plan, held, trailers, requestEnded } = this
    const { head } = plan as Plan
    ;(this.record as RequestRecord).upstreamProtocol = upstream.protocol
    // What a client says in a tunnel before it is open may be meant for nobody: it waits.
    if (this.isTunnelRequest) {
      upstream.sendHead(head, false)
      return
    }
    upstream.sendHead(head, requestEnded && held === undefined && trailers === undefined)
    held?.sendTo(upstream, requestEnded && trailers === undefined)
    if (trailers !== undefined) upstream.sendTrailers(trailers)
    attempt.replayable = this.replayable
  }

  onUpstreamHead(attempt: Attempt, head: Head, end: boolean): void {
    if (this.phase !== Phase.Trying) return
    const { status } = head
    if (status < 200) {
      this.exchange.sendHead(head, false)
      return
    }
    const upstream = attempt.exchange as Exchange
    const record = this.record as RequestRecord
    record.timeToHead = this.proxy.clock.now() - this.startedAt
    record.status = status
    const sent = this.listener.response(head, upstream)
    if (this.isTunnelRequest && status < 300) {
      this.openTunnel(upstream, sent, record)
      return
    }
    this.phase = Phase.Responding
    this.replayable = false
    this.held = undefined
    this.exchange.sendHead(sent, end)
    if (end) this.endResponse()
  }

  onUpstreamData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.exchange.sendData(buffer, start, limit, end)
    if (this.watch !== undefined) this.watch.lastActivity = this.proxy.clock.now()
    else if (end) this.endResponse()
  }

  onUpstreamTrailers(fields: Fields): void {
    this.exchange.sendTrailers(fields)
    this.endResponse()
  }

  /** `sent`: request content the attempt's connection has taken. After a replay it begins at 0 again. */
  onUpstreamSent(sent: number): void {
    const more = sent - this.credited
    if (more <= 0) return
    this.credited = sent
    this.exchange.consume(more)
  }

  onUpstreamClose(attempt: Attempt, error: HeddleError | undefined): void {
    const { phase } = this
    if (phase === Phase.Trying) {
      if (error === undefined) this.refuse('upstream_closed')
      else if (!this.retry(attempt, error)) this.refuse(upstreamReason(error))
    } else if (error !== undefined && (phase === Phase.Tunnel || (phase === Phase.Responding && !this.responseEnded))) {
      // What the client has must not look complete.
      this.cut(upstreamReason(error), phase === Phase.Tunnel ? CancelReason.ConnectError : CancelReason.InternalError)
    }
  }

  // ── Time limits ─────────────────────────────────────────────────────────────────────────────────

  /** The attempt waited too long for a connection. */
  onQueueTimeout(): void {
    this.refuse('queue_timeout')
  }

  /** The route's time is up. */
  onDeadline(now: Instant): void {
    if (this.phase === Phase.Trying) {
      this.attempt?.giveUp(now)
      this.refuse('route_timeout')
    } else if (this.phase === Phase.Responding) {
      this.attempt?.cancel(CancelReason.Timeout)
      this.cut('route_timeout', CancelReason.Timeout)
    }
  }

  onTunnelIdle(): void {
    this.attempt?.cancel(CancelReason.Timeout)
    this.cut('tunnel_idle', CancelReason.Timeout)
  }

  // ── Ways on ─────────────────────────────────────────────────────────────────────────────────────

  /** Finds out where the request goes, and begins the first attempt. */
  private admit(head: Head, record: RequestRecord): void {
    const { proxy, listener, exchange } = this
    const peer = listener.peer(exchange.connection)
    if (head !== peer.lastHead || peer.lastPlan === undefined) {
      peer.lastPlan = planRequest(head, proxy, listener, peer, listener.via(exchange))
      peer.lastHead = head
    }
    const plan = peer.lastPlan
    const { route } = plan
    if (route !== undefined) {
      record.route = route.name
      record.cluster = route.cluster
    }
    if (plan instanceof Refusal) {
      record.reason = plan.reason
      this.answer(plan.answer, record)
      return
    }
    const endpoint = plan.cluster.pick()
    if (endpoint === undefined) {
      this.refuse('no_endpoint')
      return
    }
    this.plan = plan
    this.isTunnelRequest = head.method === 'CONNECT'
    this.phase = Phase.Trying
    const { timeout } = plan.route
    if (timeout !== Infinity) proxy.deadlines(timeout).add(this)
    this.start(endpoint, plan, record)
  }

  private start(endpoint: Endpoint, plan: Plan, record: RequestRecord): void {
    const attempt = new Attempt(this, plan.cluster, endpoint, this.replayable, this.proxy.clock.now())
    record.attempts++
    record.endpoint = endpoint.name
    this.attempt = attempt
    if (!attempt.start()) this.refuse('shutdown')
  }

  /** Tries once more if that can do no harm. */
  private retry(attempt: Attempt, error: HeddleError): boolean {
    const plan = this.plan as Plan
    const record = this.record as RequestRecord
    if (!this.replayable || record.attempts > plan.route.retry.attempts) return false
    const stale = attempt.wasStale(error)
    // RFC 9110 §9.2.2: what may have been acted on is sent again only if that changes nothing.
    if (!error.unprocessed && !(stale && isIdempotent(plan.head.method))) return false
    const tried = (this.tried ??= [])
    tried.push(attempt.endpoint)
    const next = plan.cluster.pick(tried) ?? (stale ? attempt.endpoint : undefined)
    if (next === undefined) return false
    this.start(next, plan, record)
    return true
  }

  private refuse(reason: Reason): void {
    const record = this.record as RequestRecord
    record.reason = reason
    this.answer(answerFor(reason), record)
  }

  private answer({ status, fields, content }: Answer, record: RequestRecord): void {
    const { exchange } = this
    this.phase = Phase.Answered
    this.held = undefined
    record.status = status
    this.deadlineQueue?.remove(this)
    exchange.sendHead(responseHead(status, fields), content.length === 0)
    if (content.length > 0) exchange.sendOwned(content, true)
    if (!this.requestEnded) exchange.discard()
  }

  /** Ends a response that cannot be completed so that the client sees it. */
  private cut(reason: Reason, how: CancelReason): void {
    ;(this.record as RequestRecord).reason = reason
    this.exchange.cancel(how)
  }

  private openTunnel(upstream: Exchange, head: Head, record: RequestRecord): void {
    const { proxy, held, requestEnded, exchange } = this
    this.phase = Phase.Tunnel
    this.held = undefined
    this.deadlineQueue?.remove(this)
    record.tunnel = true
    // Towards HTTP/1.1 clients the engine says it in their words.
    if (exchange.protocol === 'h1') record.status = 101
    proxy.tunnels++
    this.watch = new TunnelWatch(proxy.clock, proxy.tunnelIdleTimeout, () => this.onTunnelIdle())
    exchange.sendHead(head, false)
    if (held !== undefined) held.sendTo(upstream, requestEnded)
    else if (requestEnded) upstream.sendData(noContent, 0, 0, true)
  }

  private endResponse(): void {
    this.responseEnded = true
    // A refused Upgrade is a request without content, and complete.
    if (this.requestEnded || this.isTunnelRequest) return
    // RFC 9112 §9.6: the answer came early; nobody reads the rest of the request.
    this.exchange.discard()
    this.attempt?.cancel(CancelReason.NoError)
  }

  // ── Request content ─────────────────────────────────────────────────────────────────────────────

  private hold(buffer: Uint8Array, start: number, limit: number): Uint8Array {
    this.held ??= new HeldContent()
    return this.held.add(buffer, start, limit)
  }

  /** Keeps a copy and returns it; undefined, and never again, if that would be too much. */
  private keepForReplay(buffer: Uint8Array, start: number, limit: number): Uint8Array | undefined {
    const size = this.held === undefined ? 0 : this.held.size
    if (size + limit - start <= replayLimit) return this.hold(buffer, start, limit)
    this.replayable = false
    this.held = undefined
    if (this.attempt !== undefined) this.attempt.replayable = false
    return undefined
  }
}

function recordClientError(record: RequestRecord, error: HeddleError): void {
  if (error instanceof ProtocolError) {
    record.reason ||= 'client_error'
    if (record.status === 0) record.status = error.status
  } else if (error instanceof TimeoutError) {
    record.reason ||= 'client_timeout'
    if (record.status === 0 && error.phase === 'body') record.status = 408
  } else if (error.code === 'HANDLER_FAILED') {
    record.reason ||= 'internal_error'
    if (record.status === 0) record.status = 500
  } else record.reason ||= error.code === 'SHUTDOWN' ? 'shutdown' : 'client_closed'
}

/** Client gone: nobody wants the answer. A faulty message must not look complete upstream. */
function upstreamCancelReason(error: HeddleError): CancelReason {
  return error instanceof ProtocolError ? CancelReason.MessageError : CancelReason.Cancelled
}
