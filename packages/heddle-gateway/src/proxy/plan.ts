import { Head, type Exchange, type Fields } from 'heddle/http'
import type { GrpcCall } from '../record.ts'
import { hostPort, type Cluster } from '../upstream/index.ts'
import { answerFor, type Answer } from './answer.ts'
import { grpcCall, grpcTimeout } from './grpc.ts'
import type { Peer } from './peer.ts'
import type { ListenerState, Proxy } from './proxy.ts'
import type { Reason } from './reason.ts'
import { decrementMaxForwards, maxForwards, requestFields } from './request-fields.ts'
import type { RouteState } from './route-state.ts'

/** Where a request goes and what is sent there. Immutable, shared by all requests with the same head. */
export class Plan {
  readonly route: RouteState
  readonly cluster: Cluster
  /** What is sent upstream. */
  readonly head: Head
  readonly grpc: GrpcCall | undefined
  /** What the client's own `grpc-timeout` leaves, ms, where the route honours it and it is the shorter limit; else Infinity. */
  readonly grpcTimeout: number

  constructor(route: RouteState, cluster: Cluster, head: Head, grpc: GrpcCall | undefined, timeout: number) {
    this.route = route
    this.cluster = cluster
    this.head = head
    this.grpc = grpc
    this.grpcTimeout = timeout
  }
}

/** A request that goes nowhere: the gateway answers it. */
export class Refusal {
  readonly route: RouteState | undefined
  readonly answer: Answer
  /** Empty: the answer is what the client asked for. */
  readonly reason: Reason | ''
  readonly grpc: GrpcCall | undefined

  constructor(route: RouteState | undefined, answer: Answer, reason: Reason | '', grpc: GrpcCall | undefined) {
    this.route = route
    this.answer = answer
    this.reason = reason
    this.grpc = grpc
  }
}

/** RFC 9110 §7.6.2: the answer of the hop at which an OPTIONS must stop; RFC 9110 §9.3.7: it states its length. */
const optionsAnswer: Answer = {
  status: 200,
  fields: ['allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS', 'content-length', '0'],
  content: new Uint8Array(0),
  grpcStatus: -1,
}

/** Finds out what the request on `exchange` comes to. */
export function planRequest(head: Head, proxy: Proxy, listener: ListenerState, peer: Peer, exchange: Exchange): Plan | Refusal {
  const { method } = head
  const grpc = grpcCall(head)
  // RFC 9110 §9.3.8: TRACE shows fields that others added. RFC 9110 §9.3.6: CONNECT is for forward proxies, except as Upgrade.
  if (method === 'TRACE' || (method === 'CONNECT' && head.protocol === '')) return refusal('method_refused', undefined, grpc)
  const config = proxy.router.match(head)
  if (typeof config === 'string') return refusal(config, undefined, grpc)
  const route = proxy.route(config)
  if (method === 'CONNECT' && exchange.protocol !== 'h1') {
    // An Upgrade is offered by the client; extended CONNECT was offered by us, for the sake of some routes (RFC 8441 §3).
    const offered = config.extendedConnect && listener.config.upgrades.includes(head.protocol)
    if (!offered) return refusal('method_refused', route, grpc)
  }
  let { fields } = head
  if (method === 'OPTIONS') {
    const left = maxForwards(fields)
    if (left === 0) return new Refusal(route, optionsAnswer, '', undefined)
    if (left > 0) fields = decrementMaxForwards(fields, left)
  }
  const sent = requestFields(fields, head.authority, peer, listener.config, listener.via(exchange))
  if (sent === undefined) return refusal('loop_detected', route, grpc)
  const { cluster } = route
  if (cluster === undefined) return refusal('no_endpoint', route, grpc)
  const authority = authorityOf(head, route, cluster)
  const upstreamHead = new Head(method, cluster.scheme, authority, head.path, head.protocol, 0, sent)
  return new Plan(route, cluster, upstreamHead, grpc, timeoutOf(route, grpc, fields))
}

function timeoutOf({ config }: RouteState, grpc: GrpcCall | undefined, fields: Fields): number {
  if (grpc === undefined || !config.grpcDeadline) return Infinity
  const timeout = grpcTimeout(fields)
  return timeout < config.timeout ? timeout : Infinity
}

/** RFC 9112 §3.2: HTTP/1.0 may come without Host, HTTP/1.1 must not go without. */
function authorityOf(head: Head, { config }: RouteState, cluster: Cluster): string {
  if (config.authority !== undefined) return config.authority
  if (head.authority !== '') return head.authority
  const [first] = cluster.config.endpoints
  return first === undefined ? '' : hostPort(first.host, first.port)
}

function refusal(reason: Reason, route: RouteState | undefined, grpc: GrpcCall | undefined): Refusal {
  return new Refusal(route, answerFor(reason, grpc), reason, grpc)
}
