import {
  CancelReason,
  responseHead,
  UsageError,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type Instant,
} from 'heddle/http'
import { Alarm } from 'heddle/io'
import type { RequestRecord } from '../record.ts'
import type { Endpoint } from '../upstream/index.ts'
import { answerFor, endCall, type Answer } from './answer.ts'
import { Attempt } from './attempt.ts'
import type { DeadlineQueue, Waiting } from './deadlines.ts'
import { grpcStatusOf, statusOfReason } from './grpc.ts'
import { IdleWatch } from './idle-watch.ts'
import { MessageTracker } from './message-tracker.ts'
import type { Peer } from './peer.ts'
import { Phase } from './phase.ts'
import { planRequest, Refusal, type Plan } from './plan.ts'
import type { ListenerState, Proxy } from './proxy.ts'
import { clientCancelReason, upstreamCancelReason, type Reason } from './reason.ts'
import { finishRecord, recordClientError, startRecord } from './recording.ts'
import { RequestContent } from './request-content.ts'
import { requestTrailers } from './request-fields.ts'
import { endpointForRetry } from './retry.ts'
import { Tunnel, type TunnelOwner } from './tunnel.ts'
import type { Underway } from './underway.ts'
import { limitResponse } from './window-growth.ts'

/**
 * One request on its way through: the handler of the client's exchange, and what holds it together
 * with its {@link Attempt}. Content flows straight from one exchange to the other; the side it comes
 * from gets credit for what the other side's connection has taken, so a slow reader slows its writer
 * and nothing piles up here.
 */
export class Forward implements ExchangeHandler, Waiting, Underway, TunnelOwner {
  readonly proxy: Proxy
  readonly listener: ListenerState
  readonly exchange: Exchange
  deadlineQueue: DeadlineQueue | undefined
  deadline: Instant
  before: Waiting | undefined
  after: Waiting | undefined
  previous: Underway | undefined
  next: Underway | undefined
  phase: Phase
  /** From the head to the close. */
  record: RequestRecord | undefined
  startedAt: Instant
  /** Set from Trying on: it counts as one of its route's. */
  plan: Plan | undefined
  /** Set as `plan` is. */
  peer: Peer | undefined
  /** By how much the upstream's window may grow. */
  windowGrowth: number
  /** It asks for a tunnel: Upgrade, or extended CONNECT. */
  isTunnelRequest: boolean
  attempt: Attempt | undefined
  /** Endpoints that failed this request. */
  tried: Endpoint[] | undefined
  readonly content: RequestContent
  responseEnded: boolean
  /** Request content the client got credit for. */
  credited: number
  /** Response content that came. */
  received: number
  /** Of the response to a call of gRPC: where trailers may come. */
  messages: MessageTracker | undefined
  /** Of a response whose silence it is on us to notice. */
  watch: IdleWatch | undefined
  /** From the moment it is open. It may have to go on for a while when the client has gone. */
  tunnel: Tunnel | undefined
  /** The end of the time a gRPC client gave itself, where the route honours that. */
  alarm: Alarm | undefined

  constructor(proxy: Proxy, listener: ListenerState, exchange: Exchange) {
    this.proxy = proxy
    this.listener = listener
    this.exchange = exchange
    this.deadlineQueue = undefined
    this.deadline = Infinity
    this.before = undefined
    this.after = undefined
    this.previous = undefined
    this.next = undefined
    this.phase = Phase.Reading
    this.record = undefined
    this.startedAt = 0
    this.plan = undefined
    this.peer = undefined
    this.windowGrowth = 0
    this.isTunnelRequest = false
    this.attempt = undefined
    this.tried = undefined
    this.content = new RequestContent()
    this.responseEnded = false
    this.credited = 0
    this.received = 0
    this.messages = undefined
    this.watch = undefined
    this.tunnel = undefined
    this.alarm = undefined
  }

  // ── The client's leg ────────────────────────────────────────────────────────────────────────────

  onHead(head: Head, end: boolean): void {
    const { proxy, listener, exchange } = this
    this.startedAt = proxy.clock.now()
    this.content.ended = end
    this.record = startRecord(exchange, listener.config.name, head, proxy.clock.wallTime())
    proxy.startRequest(this)
    this.admit(head, this.record)
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const { phase, content } = this
    if (this.record !== undefined) this.record.requestSize += limit - start
    if (end) content.ended = true
    if (phase === Phase.Answered || phase === Phase.Closed) return
    if (this.tunnel !== undefined) {
      this.tunnel.fromClient(buffer, start, limit, end)
      return
    }
    const upstream = this.attempt?.exchange
    if (upstream === undefined || this.isTunnelRequest) {
      // Bounded by the receive window: there is no credit for it before it has been sent.
      if (limit > start) content.hold(buffer, start, limit)
      return
    } else if (content.replayable && limit > start) {
      const copy = content.keepForReplay(buffer, start, limit)
      if (copy === undefined) (this.attempt as Attempt).replayable = false
      else {
        upstream.sendOwned(copy, end)
        if (end) this.requestSent()
        return
      }
    }
    upstream?.sendData(buffer, start, limit, end)
    if (end) this.requestSent()
  }

  onTrailers(fields: Fields): void {
    const sent = requestTrailers(fields)
    this.content.ended = true
    this.content.trailers = sent
    if (this.phase !== Phase.Trying && this.phase !== Phase.Responding) return
    this.attempt?.exchange?.sendTrailers(sent)
    this.requestSent()
  }

  onSent(byteCount: number, _writable: boolean): void {
    if (this.record !== undefined) this.record.responseSize += byteCount
    if (this.tunnel !== undefined) this.tunnel.clientTook(byteCount)
    // The gateway's own answers have no source to credit.
    else if (this.phase === Phase.Responding) this.attempt?.exchange?.consume(byteCount)
  }

  /**
   * RFC 9218 §7: PRIORITY_UPDATE is for this hop, whose order it changes; the `priority` field goes on.
   * Passed on, the wishes of one client would be frames on a connection that all of them share.
   */
  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    const { record, attempt, plan, proxy, tunnel } = this
    if (record === undefined) return
    const now = proxy.clock.now()
    if (error !== undefined) recordClientError(record, error)
    if (tunnel !== undefined) {
      tunnel.clientClosed(error)
      proxy.tunnels.leave(tunnel)
    } else if (error !== undefined) attempt?.cancel(upstreamCancelReason(error))
    // Upstream may still be taking the end of what the client said.
    else if (attempt !== undefined) attempt.detached = true
    if (plan !== undefined) plan.route.active--
    this.peer?.windowGrowth.give(this.windowGrowth)
    this.stopClocks()
    this.phase = Phase.Closed
    this.attempt = undefined
    this.record = undefined
    this.content.drop()
    finishRecord(record, now - this.startedAt, attempt === undefined ? -1 : now - attempt.startedAt)
    proxy.endRequest(this, record)
  }

  // ── The upstream leg ────────────────────────────────────────────────────────────────────────────

  /** A connection is there, possibly another one than before: everything is sent from the beginning. */
  onUpstreamOpen(attempt: Attempt, upstream: Exchange): void {
    const { plan, content } = this
    const { head } = plan as Plan
    ;(this.record as RequestRecord).upstreamProtocol = upstream.protocol
    // What a client says in a tunnel before it is open may be meant for nobody: it waits.
    if (this.isTunnelRequest) {
      // An ordinary answer can be passed on where the client may get one, too.
      if (this.exchange.ignoreUpgrade !== undefined) upstream.ignoreUpgrade?.()
      try {
        upstream.sendHead(head, false)
      } catch (error) {
        if (!(error instanceof UsageError) || upstream.protocol === 'h1') throw error
        // RFC 8441 §3: the upstream has not offered it.
        attempt.cancel(CancelReason.NoError)
        this.refuse('tunnel_unsupported')
        return
      }
      limitResponse(upstream, this.plan as Plan, this.windowGrowth)
      this.requestSent()
      return
    }
    upstream.sendHead(head, content.isEmpty)
    content.sendTo(upstream)
    limitResponse(upstream, this.plan as Plan, this.windowGrowth)
    attempt.replayable = content.replayable
    if (content.ended) this.requestSent()
  }

  /** The request is complete, its answer due within some time. */
  private requestSent(): void {
    const { attempt, plan, phase } = this
    if (attempt?.exchange === undefined || plan === undefined || phase !== Phase.Trying) return
    const { ownHeadTimeout } = plan.route
    if (ownHeadTimeout !== Infinity) attempt.awaitHead(ownHeadTimeout)
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
    const now = this.proxy.clock.now()
    record.timeToHead = now - this.startedAt
    record.upstreamLatency = now - attempt.startedAt
    record.status = status
    const sent = this.listener.response(head, upstream, this.exchange)
    if (this.isTunnelRequest && status < 300) {
      if (upstream.upgradeIgnored !== true) {
        this.openTunnel(attempt, sent, end, record)
        return
      }
      // RFC 9110 §7.8: the upstream took it for an ordinary GET, and so does the client's connection.
      this.exchange.ignoreUpgrade?.()
    }
    this.phase = Phase.Responding
    this.content.drop()
    this.exchange.sendHead(sent, end)
    if (end) {
      // Trailers-only, if it is an answer of gRPC.
      if (record.grpc !== undefined) record.grpcStatus = grpcStatusOf(head.fields)
      this.endResponse()
    } else {
      if (record.grpc !== undefined) this.messages = new MessageTracker()
      this.watchResponse()
    }
  }

  onUpstreamData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    if (this.tunnel !== undefined) {
      this.tunnel.fromUpstream(buffer, start, limit, end)
      return
    }
    this.received += limit - start
    this.messages?.pass(buffer, start, limit)
    this.exchange.sendData(buffer, start, limit, end)
    if (this.watch !== undefined) this.watch.lastActivity = this.proxy.clock.now()
    if (end && this.phase === Phase.Responding) this.endResponse()
  }

  onUpstreamTrailers(fields: Fields): void {
    const { record } = this
    if (record?.grpc !== undefined) record.grpcStatus = grpcStatusOf(fields)
    this.exchange.sendTrailers(fields)
    this.endResponse()
  }

  /** `sent`: request content the attempt's connection has taken. After a replay it begins at 0 again. */
  onUpstreamSent(sent: number): void {
    const more = sent - this.credited
    if (more <= 0) return
    this.credited = sent
    if (this.tunnel !== undefined) this.tunnel.upstreamTook(more)
    else this.exchange.consume(more)
  }

  onUpstreamClose(attempt: Attempt, error: HeddleError | undefined): void {
    const { phase } = this
    if (phase === Phase.Trying) {
      if (error === undefined) this.refuse('upstream_closed')
      else if (this.isTunnelRequest && error instanceof UsageError) this.refuse('tunnel_unsupported')
      else if (!this.retry(attempt, error)) this.refuse(attempt.reasonOf(error), error.wireCode)
    } else if (this.tunnel !== undefined) {
      if (this.tunnel.upstreamClosed(error) && error !== undefined) this.cut(attempt.reasonOf(error), CancelReason.ConnectError)
    } else if (error !== undefined && phase === Phase.Responding && !this.responseEnded) {
      // What the client has must not look complete.
      this.cut(attempt.reasonOf(error), clientCancelReason(error), error.wireCode)
    }
  }

  // ── Time limits ─────────────────────────────────────────────────────────────────────────────────

  /** The attempt waited too long for a connection, or for the head of a response. */
  onAttemptTimeout(reason: 'queue_timeout' | 'head_timeout'): void {
    this.refuse(reason)
  }

  /** The route's time is up. */
  onDeadline(now: Instant): void {
    this.giveUp('route_timeout', now)
  }

  private giveUp(reason: Reason, now: Instant): void {
    if (this.phase === Phase.Trying) {
      this.attempt?.giveUp(now)
      this.refuse(reason)
    } else if (this.phase === Phase.Responding) {
      this.attempt?.cancel(CancelReason.Timeout)
      this.cut(reason, CancelReason.Timeout)
    }
  }

  /**
   * The connection is cut in a moment. An answer can still be given, and to a call of gRPC a status between two
   * messages; what is left is no message to anyone.
   */
  onShutdown(): void {
    const { phase, exchange } = this
    const atBoundary = phase === Phase.Responding && !this.responseEnded && this.messages?.atBoundary === true
    const endsCall = atBoundary && exchange.protocol !== 'h1'
    if (phase !== Phase.Trying && !endsCall) return
    this.attempt?.cancel(CancelReason.Cancelled)
    if (endsCall) {
      endCall(exchange, this.record as RequestRecord, 'shutdown')
      this.endResponse()
    } else this.refuse('shutdown')
  }

  onTunnelOver(): void {
    this.proxy.tunnels.forget(this.tunnel as Tunnel)
  }

  onTunnelEnd(reason: Reason): void {
    if (this.record !== undefined) this.record.reason ||= reason
  }

  /** Notices the silence of a response whose route has a limit of its own. */
  private watchResponse(): void {
    const { ownBodyTimeout } = (this.plan as Plan).route
    if (ownBodyTimeout !== Infinity) this.watch = new IdleWatch(this.proxy.clock, ownBodyTimeout, (now) => this.onResponseIdle(now))
  }

  private onResponseIdle(now: Instant): void {
    if (this.received > (this.record as RequestRecord).responseSize) {
      // It waits for its client. How long that may take is the listener's affair.
      ;(this.watch as IdleWatch).lastActivity = now
      return
    }
    this.attempt?.giveUp(now)
    this.cut('body_timeout', CancelReason.InternalError)
  }

  private stopClocks(): void {
    this.deadlineQueue?.remove(this)
    this.watch?.stop()
    if (this.alarm !== undefined) this.proxy.clock.clear(this.alarm)
  }

  // ── Ways on ─────────────────────────────────────────────────────────────────────────────────────

  /** Finds out where the request goes, and begins the first attempt. */
  private admit(head: Head, record: RequestRecord): void {
    const { proxy, listener, exchange } = this
    const peer = listener.peer(exchange.connection)
    let plan = peer.plans.find(head)
    if (plan === undefined) {
      plan = planRequest(head, proxy, listener, peer, exchange)
      peer.plans.keep(head, plan)
    }
    const { route } = plan
    record.grpc = plan.grpc
    if (route !== undefined) {
      record.route = route.config.name
      record.cluster = route.config.cluster
    }
    if (plan instanceof Refusal) {
      record.reason = plan.reason
      this.answer(plan.answer, record)
      return
    }
    const { config } = plan.route
    if (plan.route.active >= config.maxConcurrentStreams) {
      this.refuse('route_full')
      return
    }
    const endpoint = plan.cluster.pick()
    if (endpoint === undefined) {
      this.refuse('no_endpoint')
      return
    }
    this.plan = plan
    plan.route.active++
    this.peer = peer
    this.windowGrowth = peer.windowGrowth.take()
    // What waits for the client is bounded by the windows of its responses: it may be slow and keep its connection.
    exchange.exemptQueue?.()
    if (config.streamWindow !== undefined && !this.content.ended) exchange.limitWindow?.(config.streamWindow)
    this.isTunnelRequest = head.method === 'CONNECT'
    this.phase = Phase.Trying
    if (plan.grpcTimeout !== Infinity) {
      // Every client's is another one, so they share no queue.
      this.alarm = new Alarm(() => this.giveUp('grpc_timeout', proxy.clock.now()))
      proxy.clock.set(this.alarm, this.startedAt + plan.grpcTimeout)
    } else if (config.timeout !== Infinity) proxy.deadlines(config.timeout).add(this)
    this.start(endpoint, plan, record)
  }

  private start(endpoint: Endpoint, plan: Plan, record: RequestRecord): void {
    const attempt = new Attempt(this, plan.cluster, endpoint, this.content.replayable, this.proxy.clock.now())
    record.attempts++
    record.endpoint = endpoint.name
    this.attempt = attempt
    if (!attempt.start()) this.refuse('shutdown')
  }

  /** Tries once more if that can do no harm. */
  private retry(attempt: Attempt, error: HeddleError): boolean {
    if (!this.content.replayable) return false
    const plan = this.plan as Plan
    const record = this.record as RequestRecord
    const next = endpointForRetry(plan, attempt, error, record.attempts, (this.tried ??= []))
    if (next === undefined) return false
    this.start(next, plan, record)
    return true
  }

  /** `wireCode`: of the upstream's RST_STREAM, if that is the reason. */
  private refuse(reason: Reason, wireCode?: number): void {
    const record = this.record as RequestRecord
    record.reason = reason
    this.answer(answerFor(reason, record.grpc, wireCode), record)
  }

  private answer({ status, fields, content, grpcStatus }: Answer, record: RequestRecord): void {
    const { exchange } = this
    this.phase = Phase.Answered
    this.content.drop()
    record.status = status
    record.grpcStatus = grpcStatus
    this.stopClocks()
    exchange.sendHead(responseHead(status, this.listener.advertised(fields, exchange)), content.length === 0)
    if (content.length > 0) exchange.sendOwned(content, true)
    if (!this.content.ended) exchange.discard()
  }

  /** Ends a response that cannot be completed so that the client sees it. */
  private cut(reason: Reason, how: CancelReason, wireCode?: number): void {
    const { record } = this
    if (record === undefined) return
    record.reason ||= reason
    if (record.grpc !== undefined) record.grpcStatus = statusOfReason(reason, wireCode)
    this.exchange.cancel(how)
  }

  /** `end`: of what the upstream has to say. */
  private openTunnel(attempt: Attempt, head: Head, end: boolean, record: RequestRecord): void {
    const { proxy, exchange } = this
    const { held, ended } = this.content
    const { route, head: asked } = this.plan as Plan
    this.phase = Phase.Tunnel
    this.content.drop()
    this.stopClocks()
    record.tunnel = true
    // Towards HTTP/1.1 clients the engine says it in their words.
    if (exchange.protocol === 'h1') record.status = 101
    exchange.sendHead(head, false)
    const tunnel = new Tunnel(this, exchange, attempt, asked.protocol === 'websocket', proxy.clock, route.config.tunnelIdleTimeout)
    this.tunnel = tunnel
    attempt.becomeTunnel()
    tunnel.begin(held, ended, end)
    proxy.startTunnel(tunnel, record)
  }

  private endResponse(): void {
    this.responseEnded = true
    this.watch?.stop()
    if (this.content.ended) return
    // RFC 9112 §9.6: the answer came early; nobody reads the rest of the request.
    this.exchange.discard()
    // Without its tunnel a request for one is complete: the engine sends nothing of what was meant for it.
    if (!this.isTunnelRequest) this.attempt?.cancel(CancelReason.NoError)
  }
}
