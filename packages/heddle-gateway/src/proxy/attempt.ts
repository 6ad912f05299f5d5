import type { ClientExchangeHandler, Ticket } from 'heddle/client'
import { CancelReason, type Exchange, type Fields, type Head, type HeddleError, type Instant } from 'heddle/http'
import type { Cluster, Endpoint } from '../upstream/index.ts'
import type { Forward } from './forward.ts'
import type { DeadlineQueue, Waiting } from './deadlines.ts'
import type { Plan } from './plan.ts'
import { blamesEndpoint, upstreamReason, type Reason } from './reason.ts'

/**
 * The upstream leg of a request: one try at one endpoint. It keeps the endpoint's books, and passes
 * on to its {@link Forward} what happens, until one of the two lets go of the other.
 */
export class Attempt implements ClientExchangeHandler, Waiting {
  readonly forward: Forward
  readonly cluster: Cluster
  readonly endpoint: Endpoint
  /** Where it stands while it waits for a connection, or for a head that it is on us to expect in time. */
  deadlineQueue: DeadlineQueue | undefined
  deadline: Instant
  before: Waiting | undefined
  after: Waiting | undefined
  ticket: Ticket | undefined
  /** It is one of its listener's that wait for a connection. */
  waiting: boolean
  /** Undefined until a connection is there. */
  exchange: Exchange | undefined
  /** See {@link ClientExchangeHandler}: what was sent so far can be sent again. */
  replayable: boolean
  /** Request content the connection has taken. */
  sent: number
  /** It has closed. */
  over: boolean
  /** The forward takes no more notice of it. */
  detached: boolean
  /** It tries whether the endpoint is well again. */
  readonly trial: boolean
  readonly startedAt: Instant
  /** Failures in a row before this one had a response head; -1 until then. */
  earlierStreak: number
  cancelReason: CancelReason
  /** It became a tunnel. */
  isTunnel: boolean

  constructor(forward: Forward, cluster: Cluster, endpoint: Endpoint, replayable: boolean, now: Instant) {
    this.forward = forward
    this.cluster = cluster
    this.endpoint = endpoint
    this.deadlineQueue = undefined
    this.deadline = Infinity
    this.before = undefined
    this.after = undefined
    this.ticket = undefined
    this.waiting = false
    this.exchange = undefined
    this.replayable = replayable
    this.sent = 0
    this.over = false
    this.detached = false
    this.trial = endpoint.health.startAttempt(now)
    this.startedAt = now
    this.earlierStreak = -1
    this.cancelReason = CancelReason.NoError
    this.isTunnel = false
  }

  /** Goes to the pool. False: the cluster is closed, and the attempt over. */
  start(): boolean {
    try {
      this.ticket = this.cluster.start(this.endpoint, this, this.forward.isTunnelRequest)
    } catch {
      this.over = true
      this.endpoint.health.endUndecided(this.trial)
      return false
    }
    if (this.over) return true
    // Let go of while the pool was still handing the connection over.
    if (this.detached) this.ticket.cancel(this.cancelReason)
    // Who would not wait longer for an answer does not wait longer for a connection either.
    else if (this.exchange === undefined) this.startWait()
    return true
  }

  private startWait(): void {
    this.waiting = true
    this.forward.listener.waiting++
    this.waitAtMost((this.forward.plan as Plan).route.headTimeout)
  }

  /** It waits for nothing any more: not for a connection, and not for a head. */
  private endWait(): void {
    this.deadlineQueue?.remove(this)
    if (!this.waiting) return
    this.waiting = false
    this.forward.listener.waiting--
  }

  /** The request is complete: its answer must begin within `timeout` ms. */
  awaitHead(timeout: number): void {
    if (this.earlierStreak < 0 && this.deadlineQueue === undefined) this.waitAtMost(timeout)
  }

  private waitAtMost(timeout: number): void {
    if (timeout !== Infinity) this.forward.proxy.deadlines(timeout).add(this)
  }

  /** Lets go of it, and ends it if it is not over. */
  cancel(reason: CancelReason): void {
    this.detached = true
    this.cancelReason = reason
    this.endWait()
    if (!this.over) this.ticket?.cancel(reason)
  }

  /** As `cancel`, because it took too long: that counts against an endpoint that had all of the request. */
  giveUp(now: Instant): void {
    const { content, isTunnelRequest } = this.forward
    // Before the end of the request it was its client who was slow.
    if (this.exchange !== undefined && (content.ended || isTunnelRequest)) this.blame(now)
    this.cancel(CancelReason.Timeout)
  }

  /** No connection became free in time, or no head came. */
  onDeadline(now: Instant): void {
    const isOpen = this.exchange !== undefined
    this.giveUp(now)
    this.forward.onAttemptTimeout(isOpen ? 'head_timeout' : 'queue_timeout')
  }

  /**
   * True if it ended by the race that kept-alive connections bring with them: the upstream closed one
   * just when the request went out. That says nothing about the endpoint.
   */
  wasStale({ code, scope }: HeddleError): boolean {
    // RST_STREAM is an answer of a sort: the connection lives, and the upstream has seen the request.
    if (this.ticket === undefined || !this.ticket.reused || this.ticket.responded || scope === 'stream') return false
    // The end of a QUIC connection from which nothing comes any more is IDLE_TIMEOUT.
    return code === 'PEER_CLOSED' || code === 'PEER_RESET' || code === 'NETWORK_ERROR' || code === 'IDLE_TIMEOUT'
  }

  /** Why `error` ended it. */
  reasonOf(error: HeddleError): Reason {
    return upstreamReason(error, this.earlierStreak >= 0, this.forward.isTunnelRequest)
  }

  onOpen(exchange: Exchange): void {
    this.exchange = exchange
    this.sent = 0
    this.endWait()
    // What waits for the upstream is bounded by what its clients may send, each on its own; and what one of them sends to
    // where nobody reads must not cost all others their connection.
    exchange.exemptQueue?.()
    if (this.detached) exchange.cancel(this.cancelReason)
    else this.forward.onUpstreamOpen(this, exchange)
  }

  /** The connection was lost, or refused the request, before that was acted on: what comes from now on is held for the next one. */
  onMove(): void {
    this.exchange = undefined
    this.endWait()
    // Within `exchange()` there is no ticket yet; `start` sees to it.
    if (!this.detached && this.ticket !== undefined) this.startWait()
  }

  onHead(head: Head, end: boolean): void {
    if (this.earlierStreak < 0 && head.status >= 200) {
      this.earlierStreak = this.endpoint.health.succeed()
      this.deadlineQueue?.remove(this)
    }
    if (!this.detached) this.forward.onUpstreamHead(this, head, end)
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    if (!this.detached) this.forward.onUpstreamData(buffer, start, limit, end)
  }

  onTrailers(fields: Fields): void {
    if (!this.detached) this.forward.onUpstreamTrailers(fields)
  }

  onSent(byteCount: number, _writable: boolean): void {
    this.sent += byteCount
    if (!this.detached) this.forward.onUpstreamSent(this.sent)
  }

  /** RFC 9218 §8: an upstream has no say in how the client's responses are ordered. */
  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    this.over = true
    this.endWait()
    this.cluster.finish(this.endpoint)
    if (this.isTunnel) this.cluster.tunnels--
    const { detached } = this
    const tunnel = this.forward.isTunnelRequest
    if (error !== undefined && !detached && blamesEndpoint(error, this.earlierStreak >= 0, tunnel) && !this.wasStale(error))
      this.blame(this.forward.proxy.clock.now())
    else if (this.earlierStreak < 0) this.endpoint.health.endUndecided(this.trial)
    if (!detached) this.forward.onUpstreamClose(this, error)
  }

  /** What was asked for is there. */
  becomeTunnel(): void {
    this.isTunnel = true
    this.cluster.tunnels++
  }

  blame(now: Instant): void {
    this.endpoint.failures++
    this.endpoint.health.fail(now, this.trial, this.earlierStreak)
    // Whatever comes now, the books of this attempt are closed.
    this.earlierStreak = 0
  }
}
