import {
  combinedFieldValue,
  fieldValue,
  responseHead,
  UsageError,
  withoutField,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
} from 'heddle/http'
import type { Clock } from 'heddle/io'
import type { Config, ListenerConfig, RouteConfig } from '../config/types.ts'
import type { ProxyObserver, RequestRecord } from '../record.ts'
import type { RouteRefusal } from '../routing/index.ts'
import type { Cluster } from '../upstream/index.ts'
import { DeadlineQueue } from './deadlines.ts'
import { Forward } from './forward.ts'
import { Peer } from './peer.ts'
import { RecentHeads } from './recent-heads.ts'
import { RouteState } from './route-state.ts'
import { Term } from './term.ts'
import { TrustList } from './trust.ts'
import type { Tunnel } from './tunnel.ts'
import { Tunnels } from './tunnels.ts'
import { UnderwayList } from './underway.ts'

/** What the proxy needs of the router. */
export interface RequestRouter {
  /** The first route that matches, or why there is none. */
  match(head: Head): RouteConfig | RouteRefusal
}

export interface ProxyOptions {
  readonly config: Config
  readonly router: RequestRouter
  /** By name; every cluster that a route names. */
  readonly clusters: ReadonlyMap<string, Cluster>
  readonly observer: ProxyObserver
  readonly clock: Clock
}

/** Forwards the requests of all listeners by the routes. */
export class Proxy {
  readonly clock: Clock
  readonly observer: ProxyObserver
  router: RequestRouter
  #clusters: ReadonlyMap<string, Cluster>
  /** Requests, tunnels included. */
  readonly underway: UnderwayList
  readonly tunnels: Tunnels
  /** By name. */
  readonly #listeners: Map<string, ListenerState>
  readonly #routes: Map<RouteConfig, RouteState>
  /** When those that are under way end, so far as they can. */
  readonly #end: Term
  /** By timeout. */
  readonly #deadlines: Map<number, DeadlineQueue>

  constructor(options: ProxyOptions) {
    this.clock = options.clock
    this.observer = options.observer
    this.router = options.router
    this.#clusters = options.clusters
    this.underway = new UnderwayList()
    this.#end = new Term(options.clock, () => this.underway.shutdown())
    this.tunnels = new Tunnels(options.clock)
    this.#listeners = new Map(options.config.listeners.map((listener) => [listener.name, new ListenerState(listener)]))
    this.#routes = new Map()
    this.#deadlines = new Map()
  }

  /** The raw face of `serve` for `listener`: `onExchange: (exchange) => proxy.onExchange(listener, exchange)`. Throws UsageError for a listener that is not in the configuration. */
  onExchange(listener: ListenerConfig, exchange: Exchange): ExchangeHandler {
    const state = this.#listeners.get(listener.name)
    if (state === undefined) throw new UsageError(`the listener ${listener.name} is not of this configuration`)
    return new Forward(this, state, exchange)
  }

  /**
   * From now on requests go by `config`, whose listeners have the names they had. What is under way goes on as it
   * began. `clusters`: as at the beginning; a route whose cluster is another object now begins with nothing under way.
   */
  reload(config: Config, router: RequestRouter, clusters: ReadonlyMap<string, Cluster>): void {
    this.router = router
    this.#clusters = clusters
    for (const [route, { cluster }] of this.#routes) {
      if (!config.routes.includes(route) || cluster !== clusters.get(route.cluster)) this.#routes.delete(route)
    }
    for (const listener of config.listeners) this.#listeners.get(listener.name)?.configure(listener)
  }

  /** What there is to know of a route that the router gave. */
  route(config: RouteConfig): RouteState {
    let route = this.#routes.get(config)
    if (route === undefined) {
      route = new RouteState(config, this.#clusters.get(config.cluster))
      this.#routes.set(config, route)
    }
    return route
  }

  /**
   * Ends, `ms` from now, what can be ended by more than a cut: requests without a response, and calls of gRPC.
   * A second call may bring that forward.
   */
  end(ms: number): void {
    this.#end.set(ms)
  }

  /** Requests under way, tunnels included. */
  get active(): number {
    return this.underway.length
  }

  /** HTTP/3 is served for `listener` at this port, and its responses over other versions tell of it if the configuration says so. */
  advertise(listener: ListenerConfig, port: number): void {
    this.#listeners.get(listener.name)?.serveHttp3(port)
  }

  /** Requests of `listener` that wait for an upstream connection, or for a stream on one. */
  waiting(listener: ListenerConfig): number {
    return this.#listeners.get(listener.name)?.waiting ?? 0
  }

  /** A request's head is there. */
  startRequest(request: Forward): void {
    this.underway.add(request)
    this.observer.onRequestStart(request.listener.config.name)
  }

  /** A tunnel is open. */
  startTunnel(tunnel: Tunnel, record: RequestRecord): void {
    this.observer.onTunnelStart?.(record)
    this.tunnels.add(tunnel)
  }

  /** A request's exchange is over. */
  endRequest(request: Forward, record: RequestRecord): void {
    this.underway.remove(request)
    this.observer.onRequestEnd(record)
  }

  /** Where what may take `timeout` (ms) waits for its end: requests of routes with that limit, attempts without a connection. */
  deadlines(timeout: number): DeadlineQueue {
    let queue = this.#deadlines.get(timeout)
    if (queue === undefined) {
      queue = new DeadlineQueue(timeout, this.clock)
      this.#deadlines.set(timeout, queue)
    }
    return queue
  }
}

/** What forwarding needs of one listener, made of its configuration once. */
export class ListenerState {
  config!: ListenerConfig
  /** Requests that wait for an upstream connection, or for a stream on one. Kept by their attempts. */
  waiting: number
  #trust!: TrustList
  #peers!: WeakMap<ConnectionInfo, Peer>
  #via1!: string
  #via2!: string
  #via3!: string
  /** The last response heads, and what was sent on for them … */
  #responses!: RecentHeads<Head>
  /** … to clients that come by HTTP/3 and need not be told of it. */
  #http3Responses!: RecentHeads<Head>
  /** Where HTTP/3 is served; 0: nowhere. */
  #http3Port: number
  /** What `Alt-Svc` says to clients of other versions; empty: nothing. */
  #altSvc!: string

  constructor(config: ListenerConfig) {
    this.waiting = 0
    this.#http3Port = 0
    this.configure(config)
  }

  /** Goes by `config` from now on, and by the routes of now: what was found out about requests is forgotten. */
  configure(config: ListenerConfig): void {
    this.config = config
    this.#trust = new TrustList(config.trust)
    this.#peers = new WeakMap()
    this.#via1 = `1.1 ${config.via}`
    this.#via2 = `2 ${config.via}`
    this.#via3 = `3 ${config.via}`
    this.#responses = new RecentHeads()
    this.#http3Responses = new RecentHeads()
    this.#altSvc = altSvcOf(config.altSvc, this.#http3Port)
  }

  /** HTTP/3 is served at this port. */
  serveHttp3(port: number): void {
    this.#http3Port = port
    this.#altSvc = altSvcOf(this.config.altSvc, port)
  }

  /** The client at the other end of `connection`. */
  peer(connection: ConnectionInfo): Peer {
    let peer = this.#peers.get(connection)
    if (peer === undefined) {
      peer = new Peer(connection, this.#trust)
      this.#peers.set(connection, peer)
    }
    return peer
  }

  /** Our entry in Via for a message that came over `exchange` (RFC 9110 §7.6.3: the protocol it was received by). */
  via(exchange: Exchange): string {
    return exchange.protocol === 'h1' ? this.#via1 : exchange.protocol === 'h2' ? this.#via2 : this.#via3
  }

  /** What is sent to `client` for the head `upstream` answered with. */
  response(head: Head, upstream: Exchange, client: Exchange): Head {
    const responses = client.protocol === 'h3' ? this.#http3Responses : this.#responses
    const known = responses.find(head)
    if (known !== undefined) return known
    const fields = this.#responseFields(head)
    // RFC 9110 §7.6.3: by the protocol the response came with.
    fields.push('via', this.via(upstream))
    if (this.#altSvc !== '' && client.protocol !== 'h3') fields.push('alt-svc', this.#altSvc)
    const sent = responseHead(head.status, fields)
    responses.keep(head, sent)
    return sent
  }

  /** `fields` of an answer of the gateway's own, with what is to be told of HTTP/3. */
  advertised(fields: Fields, client: Exchange): Fields {
    return this.#altSvc === '' || client.protocol === 'h3' ? fields : [...fields, 'alt-svc', this.#altSvc]
  }

  #responseFields({ status, fields: received }: Head): string[] {
    // RFC 7838 §3: what an upstream says is of its own authority and ports, which are not the client's.
    const isReplaced = this.#altSvc !== '' && fieldValue(received, 'alt-svc') !== undefined
    const fields = isReplaced ? withoutField(received, 'alt-svc') : received
    if (status !== 426) return fields.slice()
    // RFC 9110 §7.8: what the upstream wants is wanted of the client, in so far as it can have it here. HTTP/2 says nothing of it.
    const wanted = (combinedFieldValue(fields, 'upgrade') ?? '').split(',').map((name) => name.trim())
    const had = wanted.filter((name) => this.config.upgrades.includes(name.toLowerCase()))
    const sent = withoutField(fields, 'upgrade')
    if (had.length > 0) sent.push('upgrade', had.join(', '))
    return sent
  }
}

/** RFC 7838 §3. Empty: there is nothing to say. */
function altSvcOf(altSvc: boolean | number, port: number): string {
  return altSvc === false || port === 0 ? '' : `h3=":${altSvc === true ? port : altSvc}"; ma=86400`
}
