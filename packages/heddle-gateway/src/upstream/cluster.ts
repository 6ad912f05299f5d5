import { readFileSync } from 'node:fs'
import { isIP, isIPv6, type LookupFunction } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import {
  Client,
  type ClientExchangeHandler,
  type ClientOptions,
  type ClientTlsOptions,
  type Dialler,
  type QuicDialler,
  type ExchangeOptions,
  type Ticket,
} from 'heddle/client'
import { dial, dialQuic, type Clock } from 'heddle/io'
import type { ClusterConfig, ClusterTlsConfig, EndpointConfig, HttpVersion, RouteConfig, UpstreamProtocol } from '../config/types.ts'
import type { Http2Counts } from '../http2-counts.ts'
import type { Http3Counts } from '../http3-counts.ts'
import { Endpoint, type EndpointStats } from './endpoint.ts'
import { Health, Outage } from './health.ts'
import { lookupAll, machines, NameWatch, type NameLookup } from './names.ts'

export interface ClusterOptions {
  /** The routes that lead here: their time limits may be longer than the cluster's. Default none. */
  readonly routes?: readonly RouteConfig[]
  // What tests replace; production gives none of it.
  /** Laid over the options the cluster makes for its client. */
  readonly client?: ClientOptions
  /** Opens connections. Default `dial` of `heddle/io`. */
  readonly connect?: Dialler
  /** Resolves host names. Default the system's resolver. */
  readonly lookup?: NameLookup
  /** In [0, 1): draws endpoints. Default Math.random. */
  readonly random?: () => number
}

/** How a cluster is doing. */
export interface ClusterStats {
  readonly name: string
  readonly endpoints: readonly EndpointStats[]
  /** Attempts under way or waiting, those at endpoints that left included. */
  readonly active: number
  /** Requests waiting for a connection. */
  readonly waiting: number
  /** So many failures in a row make an endpoint a failing one; 0: none ever is. */
  readonly consecutiveFailures: number
  /** Upstream connections in any state. */
  readonly connections: number
  /** Open tunnels. */
  readonly tunnels: number
  /** Of the connections, those that speak HTTP/2. */
  readonly http2: Http2Counts
  /** … and those that speak HTTP/3. */
  readonly http3: Http3Counts
}

/** One configured endpoint and what its name stands for at present. */
class Site {
  readonly config: EndpointConfig
  watch: NameWatch | undefined
  endpoints: Endpoint[]

  constructor(config: EndpointConfig) {
    this.config = config
    this.watch = undefined
    this.endpoints = []
  }
}

const nothingTried: readonly Endpoint[] = []
const tunnelled: ExchangeOptions = { tunnel: true }

/** What TLS connections are offered, best first. */
const spoken: Readonly<Record<UpstreamProtocol, readonly HttpVersion[]>> = {
  auto: ['h2', 'h1'],
  h1: ['h1'],
  h2: ['h2'],
  h2c: ['h2'],
  h3: ['h3'],
}

/**
 * Of an HTTP/3 connection to an upstream, which all clients share: QUIC holds nothing back there, or those who read
 * slowly would fill it up for all others. What waits for clients is bounded by the streams' windows.
 */
const sharedWindow = 2 ** 40

let nextEndpointId = 1

/** A group of endpoints that answer the same requests, with the connections to them. */
export class Cluster {
  readonly name: string
  readonly config: ClusterConfig
  readonly scheme: 'http' | 'https'
  /** What its connections allow from a request to the response's head, ms: no route allows more. */
  readonly headTimeout: number
  /** What they allow without a byte of a response, ms. */
  readonly bodyTimeout: number
  /** Attempts under way at any endpoint. Kept by whoever makes them. */
  active: number
  /** Of these, those that became tunnels. */
  tunnels: number
  readonly #clock: Clock
  readonly #client: Client
  readonly #random: () => number
  readonly #connect: Dialler
  readonly #outage: Outage
  readonly #sites: Site[]
  /** By the host of their origins. */
  readonly #byHost: Map<string, Endpoint>
  #endpoints: readonly Endpoint[]
  readonly #tls: ClientTlsOptions | undefined
  /** Of a cluster that is retired and not closed yet. */
  #onRetired: (() => void) | undefined

  /** Reads the TLS files `config` names and begins to resolve its host names. Throws what `readFileSync` throws. */
  constructor(config: ClusterConfig, clock: Clock, options: ClusterOptions = {}) {
    this.name = config.name
    this.config = config
    this.scheme = config.tls === undefined ? 'http' : 'https'
    const { headTimeout, bodyTimeout } = timeLimits(config, options.routes)
    this.headTimeout = headTimeout
    this.bodyTimeout = bodyTimeout
    this.active = 0
    this.tunnels = 0
    this.#clock = clock
    this.#random = options.random ?? Math.random
    this.#connect = options.connect ?? dial
    this.#outage = new Outage(config.ejection)
    this.#byHost = new Map()
    this.#endpoints = []
    this.#onRetired = undefined
    this.#tls = tlsOptions(config.tls)
    const { maxFailuresInRow, ...http2 } = config.http2
    const { maxFailuresInRow: http3Failures, ...http3 } = config.http3
    const timeouts = { responseTimeout: this.headTimeout, bodyTimeout: this.bodyTimeout, sendTimeout: config.sendTimeout }
    this.#client = new Client({
      clock,
      maxConnectionsPerOrigin: config.maxConnectionsPerEndpoint,
      maxTunnelsPerOrigin: config.maxTunnelsPerEndpoint,
      maxWaitingPerOrigin: config.maxWaiting,
      connectTimeout: config.connectTimeout,
      protocols: spoken[config.protocol],
      h2c: config.protocol === 'h2c',
      whenFull: 'connect',
      maxFailuresInRow: config.protocol === 'h3' ? http3Failures : maxFailuresInRow,
      limits: { ...timeouts, idleTimeout: config.idleTimeout },
      http2: { ...http2, ...timeouts },
      http3: { ...http3, connectionWindow: sharedWindow, ...timeouts },
      tls: this.#tls,
      connect: (target, dialOptions, done) => this.#dial(target, dialOptions, done),
      connectQuic: (target, dialOptions, done) => this.#dialQuic(target, dialOptions, done),
      ...options.client,
    })
    this.#sites = config.endpoints.map((endpoint) => new Site(endpoint))
    const lookup = options.lookup ?? lookupAll
    for (const site of this.#sites) {
      const { host } = site.config
      const literal = isIP(host) !== 0
      // Until a name is resolved, the endpoint is the name: its requests wait in the dialler.
      site.endpoints = [this.#makeEndpoint(site.config, literal ? [host] : [])]
      if (!literal) site.watch = new NameWatch(host, clock, config.resolveInterval, lookup, (addresses) => this.#update(site, addresses))
    }
    this.#collect()
  }

  /**
   * The better of two endpoints drawn at random: the one with fewer attempts under way. Undefined if
   * there is none but those `tried` already.
   */
  pick(tried: readonly Endpoint[] = nothingTried): Endpoint | undefined {
    let candidates = this.#endpoints
    const outage = this.#outage
    // Endpoints may have left since so many were taken out; then none is kept out.
    if (outage.out > 0 && outage.out <= outage.allowed) {
      const now = this.#clock.now()
      candidates = candidates.filter(({ health }) => health.isUsable(now))
    }
    if (tried.length > 0) candidates = candidates.filter((endpoint) => !tried.includes(endpoint))
    const { length } = candidates
    if (length <= 1) return candidates[0]
    const first = Math.floor(this.#random() * length)
    let second = Math.floor(this.#random() * (length - 1))
    if (second >= first) second++
    const a = candidates[first] as Endpoint
    const b = candidates[second] as Endpoint
    return b.active < a.active ? b : a
  }

  /**
   * Begins an attempt at `endpoint`; see `Client.exchange`. `tunnel`: it asks for one. Its end, whatever
   * it is, must be told to {@link finish}. Throws UsageError, with nothing begun, once the cluster is closed.
   */
  start(endpoint: Endpoint, handler: ClientExchangeHandler, tunnel = false): Ticket {
    this.active++
    endpoint.active++
    endpoint.requests++
    try {
      return this.#client.exchange(endpoint.origin, handler, tunnel ? tunnelled : undefined)
    } catch (error) {
      this.finish(endpoint)
      throw error
    }
  }

  /** An attempt at `endpoint` is over. */
  finish(endpoint: Endpoint): void {
    this.active--
    endpoint.active--
    if (this.#onRetired !== undefined && this.active === 0) this.#maybeClose()
    if (endpoint.retired && endpoint.active === 0) this.#byHost.delete(endpoint.origin.host)
  }

  stats(): ClusterStats {
    const stats = this.#client.stats()
    const { waiting, connections, http2, http3, resetsSent, resetsReceived, origins } = stats
    const now = this.#clock.now()
    return {
      name: this.name,
      consecutiveFailures: this.config.ejection.consecutiveFailures,
      active: this.active,
      waiting,
      connections,
      tunnels: this.tunnels,
      http2: {
        connections: http2.connections,
        streams: http2.streams,
        frames: http2.frames,
        writes: http2.writes,
        resetsSent,
        resetsReceived,
      },
      http3: {
        connections: http3.connections,
        streams: http3.streams,
        resetsSent: stats.http3ResetsSent,
        resetsReceived: stats.http3ResetsReceived,
      },
      endpoints: this.#endpoints.map((endpoint) => {
        // Where tunnels need HTTP/1.1, connections for them are kept under a name that goes on.
        const key = endpoint.origin.toString()
        const own = origins.filter(({ origin }) => origin === key || origin.startsWith(`${key} `))
        return {
          name: endpoint.name,
          active: endpoint.active,
          requests: endpoint.requests,
          failures: endpoint.failures,
          ejections: endpoint.health.ejections,
          ejected: endpoint.health.isOut,
          failing: endpoint.health.isFailing(now),
          failuresInRow: endpoint.health.recentFailures(now),
          answering: endpoint.health.isAnswering(now),
          waiting: sum(own, (stats) => stats.waiting),
          connections: sum(own, (stats) => stats.connections),
          streams: sum(own, (stats) => stats.http2.streams + stats.http3.streams),
        }
      }),
    }
  }

  /** True: one that was made of this now would be no different, TLS files read again. Throws what `readFileSync` throws. */
  isMadeOf(config: ClusterConfig, routes: readonly RouteConfig[]): boolean {
    const { headTimeout, bodyTimeout } = timeLimits(config, routes)
    if (config !== this.config || headTimeout !== this.headTimeout || bodyTimeout !== this.bodyTimeout) return false
    return isDeepStrictEqual(tlsOptions(config.tls), this.#tls)
  }

  /** Lets the attempts under way finish, then closes every connection. */
  close(): Promise<void> {
    this.#stopWatching()
    return this.#client.close()
  }

  /** Begins nothing new but what belongs to requests that have begun; closed once none of them is left. */
  retire(onClosed: () => void): void {
    this.#stopWatching()
    this.#onRetired = onClosed
    this.#maybeClose()
  }

  /** Retired, and nothing under way. A request whose attempt has just failed may begin another one at once. */
  #maybeClose(): void {
    this.#clock.soon(() => {
      const onClosed = this.#onRetired
      if (this.active > 0 || onClosed === undefined) return
      this.#onRetired = undefined
      void this.close().then(onClosed)
    })
  }

  /** Cuts what is under way. */
  destroy(): void {
    this.#stopWatching()
    this.#client.destroy()
  }

  #stopWatching(): void {
    for (const { watch } of this.#sites) watch?.close()
  }

  #makeEndpoint(config: EndpointConfig, addresses: readonly string[], name = hostPort(config.host, config.port)): Endpoint {
    // A host of its own for every endpoint: the pool keeps connections apart by it, so those to an
    // address that left are not used again, and #dial finds the endpoint by it (RFC 2606 §2: never a real name).
    const host = `e${nextEndpointId++}.invalid`
    const origin = this.#client.origin(`${this.scheme}://${host}:${config.port}`)
    const endpoint = new Endpoint(name, config, origin, addresses, new Health(this.#outage))
    this.#byHost.set(host, endpoint)
    return endpoint
  }

  /** The name of `site` stands for these addresses now. Endpoints whose machine did not change are kept. */
  #update(site: Site, addresses: readonly string[]): void {
    const before = site.endpoints
    const groups = machines(addresses)
    const [first] = before
    if (groups.length === 1 && first?.addresses.length === 0) {
      first.addresses = groups[0] as string[]
      return
    }
    const after = groups.map((group) => {
      const kept = before.find((endpoint) => sameSet(endpoint.addresses, group))
      if (kept !== undefined) return kept
      const name = groups.length === 1 ? undefined : hostPort(group[0] as string, site.config.port)
      const endpoint = this.#makeEndpoint(site.config, group, name)
      const predecessor = before.find((other) => other.name === endpoint.name)
      if (predecessor !== undefined) endpoint.continueCounts(predecessor)
      return endpoint
    })
    for (const endpoint of before) {
      if (after.includes(endpoint)) continue
      endpoint.retired = true
      endpoint.health.leave()
      // What is under way or waits there goes on, and may still need a connection.
      if (endpoint.active === 0) this.#byHost.delete(endpoint.origin.host)
    }
    site.endpoints = after
    this.#collect()
  }

  #collect(): void {
    this.#endpoints = this.#sites.flatMap(({ endpoints }) => endpoints)
    this.#outage.members = this.#endpoints.length
  }

  #dial(...[target, options, done]: Parameters<Dialler>): ReturnType<Dialler> {
    const endpoint = 'host' in target ? this.#byHost.get(target.host) : undefined
    if (endpoint === undefined) return this.#connect(target, options, done)
    const { tls } = options
    const { config } = endpoint
    const ownTls = tls && endpoint.tlsFor(tls, this.config.tls?.serverName ?? config.host)
    return this.#connect(placeOf(endpoint), { ...options, tls: ownTls, lookup: lookupFor(endpoint) ?? options.lookup }, done)
  }

  #dialQuic(...[target, options, done]: Parameters<QuicDialler>): ReturnType<QuicDialler> {
    const endpoint = this.#byHost.get(target.host)
    if (endpoint === undefined) return dialQuic(target, options, done)
    const servername = this.config.tls?.serverName ?? endpoint.config.host
    return dialQuic(placeOf(endpoint), { ...options, servername, lookup: lookupFor(endpoint) ?? options.lookup }, done)
  }
}

/** What connections allow: the longest that a route to them wants. */
function timeLimits(config: ClusterConfig, routes: readonly RouteConfig[] = []): { headTimeout: number; bodyTimeout: number } {
  return {
    headTimeout: Math.max(config.headTimeout, ...routes.map((route) => route.headTimeout ?? 0)),
    bodyTimeout: Math.max(config.bodyTimeout, ...routes.map((route) => route.bodyTimeout ?? 0)),
  }
}

/** Where its connections go. */
function placeOf({ addresses, config }: Endpoint): EndpointConfig {
  return { host: addresses.length === 1 ? (addresses[0] as string) : config.host, port: config.port }
}

/** A `lookup` for it where it has several addresses. */
function lookupFor({ addresses }: Endpoint): LookupFunction | undefined {
  return addresses.length > 1 ? knownAddresses(addresses) : undefined
}

/** A `lookup` that gives what is known already. */
function knownAddresses(addresses: readonly string[]): LookupFunction {
  return (_host, _options, done) => {
    done(
      null,
      addresses.map((address) => ({ address, family: isIP(address) })),
    )
  }
}

function tlsOptions(config: ClusterTlsConfig | undefined): ClientTlsOptions | undefined {
  if (config === undefined) return undefined
  const file = (path: string | undefined): Buffer | undefined => (path === undefined ? undefined : readFileSync(path))
  return { ca: file(config.ca), cert: file(config.cert), key: file(config.key), servername: config.serverName }
}

function sum<Item>(items: readonly Item[], read: (item: Item) => number): number {
  return items.reduce((total, item) => total + read(item), 0)
}

/** `host:port`, an IPv6 address in brackets. */
export function hostPort(host: string, port: number): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item) => b.includes(item))
}
