import { Head } from 'heddle/http'
import type { RouteConfig } from '../config/types.ts'
import { hostPort, type Cluster } from '../upstream/index.ts'
import type { Peer } from './peer.ts'
import type { ListenerState, Proxy } from './proxy.ts'
import { answerFor, type Answer, type Reason } from './reason.ts'
import { decrementMaxForwards, maxForwards, requestFields } from './request-fields.ts'

/** Where a request goes and what is sent there. Immutable, shared by all requests with the same head. */
export class Plan {
  readonly route: RouteConfig
  readonly cluster: Cluster
  /** What is sent upstream. */
  readonly head: Head

  constructor(route: RouteConfig, cluster: Cluster, head: Head) {
    this.route = route
    this.cluster = cluster
    this.head = head
  }
}

/** A request that goes nowhere: the gateway answers it. */
export class Refusal {
  readonly route: RouteConfig | undefined
  readonly answer: Answer
  /** Empty: the answer is what the client asked for. */
  readonly reason: Reason | ''

  constructor(route: RouteConfig | undefined, answer: Answer, reason: Reason | '') {
    this.route = route
    this.answer = answer
    this.reason = reason
  }
}

/** RFC 9110 §7.6.2: the answer of the hop at which an OPTIONS must stop; RFC 9110 §9.3.7: it states its length. */
const optionsAnswer: Answer = {
  status: 200,
  fields: ['allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS', 'content-length', '0'],
  content: new Uint8Array(0),
}

/** Finds out what a request comes to. `via`: our entry in Via. */
export function planRequest(head: Head, proxy: Proxy, listener: ListenerState, peer: Peer, via: string): Plan | Refusal {
  const { method } = head
  // RFC 9110 §9.3.8: TRACE shows fields that others added. RFC 9110 §9.3.6: CONNECT is for forward proxies, except as Upgrade.
  if (method === 'TRACE' || (method === 'CONNECT' && head.protocol === '')) return refusal('method_refused', undefined)
  const route = proxy.router.match(head)
  if (typeof route === 'string') return refusal(route, undefined)
  let { fields } = head
  if (method === 'OPTIONS') {
    const left = maxForwards(fields)
    if (left === 0) return new Refusal(route, optionsAnswer, '')
    if (left > 0) fields = decrementMaxForwards(fields, left)
  }
  const sent = requestFields(fields, head.authority, peer, listener.config, via)
  if (sent === undefined) return refusal('loop_detected', route)
  const cluster = proxy.clusters.get(route.cluster)
  if (cluster === undefined) return refusal('no_endpoint', route)
  return new Plan(route, cluster, new Head(method, cluster.scheme, authorityOf(head, route, cluster), head.path, head.protocol, 0, sent))
}

/** RFC 9112 §3.2: HTTP/1.0 may come without Host, HTTP/1.1 must not go without. */
function authorityOf(head: Head, route: RouteConfig, cluster: Cluster): string {
  if (route.authority !== undefined) return route.authority
  if (head.authority !== '') return head.authority
  const [first] = cluster.config.endpoints
  return first === undefined ? '' : hostPort(first.host, first.port)
}

function refusal(reason: Reason, route: RouteConfig | undefined): Refusal {
  return new Refusal(route, answerFor(reason), reason)
}
