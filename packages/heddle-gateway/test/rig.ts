import { createHash } from 'node:crypto'
import type { Server } from 'heddle'
import type { HeddleError } from 'heddle/http'
import type { listen } from 'heddle/io'
import { serve } from 'heddle/server'
import { ScriptedPeer, socketTransport, type LinkOptions, type LinkSocket, type World } from 'heddle/testing'
import type { ClusterConfig, Config, ListenerConfig, MatchConfig, RouteConfig } from '../src/config/types.ts'
import { Proxy, type ProxyOptions } from '../src/proxy/index.ts'
import { WindowGrowth } from '../src/proxy/window-growth.ts'
import type { RequestRecord } from '../src/record.ts'
import { Router } from '../src/routing/index.ts'
import { Cluster, type ClusterOptions } from '../src/upstream/index.ts'
import { QuietPeer, type Http2Settings } from './http2-peer.ts'

const http2 = { connectionWindow: 2 ** 22, maxWindow: 2 ** 24, pingInterval: 15_000, pingTimeout: 10_000 }

export function listenerConfig(options: Partial<ListenerConfig> = {}): ListenerConfig {
  return {
    name: 'web',
    host: 'gateway',
    port: 80,
    tls: undefined,
    trust: [],
    via: 'gw',
    forwarded: 'none',
    upgrades: ['websocket'],
    protocols: ['h1', 'h2'],
    altSvc: true,
    ...options,
    http3: { streamWindow: 2 ** 20, connectionWindow: 2 ** 22, maxWindow: 2 ** 24, maxConcurrentStreams: 100, ...options.http3 },
    http2: { ...http2, streamWindow: 2 ** 20, maxConcurrentStreams: 100, ...options.http2 },
    limits: {
      maxConnections: Infinity,
      maxContentLength: Infinity,
      headTimeout: 10_000,
      bodyTimeout: 30_000,
      idleTimeout: 60_000,
      sendTimeout: 60_000,
      ...options.limits,
    },
  }
}

export function clusterConfig(options: Partial<ClusterConfig> = {}): ClusterConfig {
  return {
    name: 'app',
    endpoints: [{ host: '10.0.0.1', port: 8080 }],
    tls: undefined,
    protocol: 'auto',
    connectTimeout: 5_000,
    headTimeout: 60_000,
    bodyTimeout: 60_000,
    sendTimeout: 60_000,
    idleTimeout: 30_000,
    maxConnectionsPerEndpoint: 128,
    maxTunnelsPerEndpoint: 1_000,
    maxWaiting: 1_000,
    resolveInterval: 30_000,
    ejection: { consecutiveFailures: 5, baseTime: 1_000, maxTime: 30_000, maxShare: 0.5 },
    ...options,
    http2: { ...http2, streamWindow: 2 ** 17, idleTimeout: 60_000, maxFailuresInRow: 8, ...options.http2 },
    http3: { streamWindow: 2 ** 17, idleTimeout: 60_000, maxFailuresInRow: 8, ...options.http3 },
  }
}

export function matchConfig(options: Partial<MatchConfig> = {}): MatchConfig {
  return { hosts: [], pathPrefix: '/', grpcService: undefined, methods: [], headers: [], ...options }
}

export function routeConfig(options: Partial<RouteConfig> = {}): RouteConfig {
  return {
    name: 'all',
    match: matchConfig(),
    cluster: 'app',
    timeout: Infinity,
    headTimeout: undefined,
    bodyTimeout: undefined,
    grpcDeadline: false,
    maxConcurrentStreams: Infinity,
    streamWindow: undefined,
    extendedConnect: false,
    tunnelIdleTimeout: 3_600_000,
    retry: { attempts: 2 },
    authority: undefined,
    ...options,
  }
}

/** What all responses that are under way hold of their clients' budgets, bytes. */
let growthHeld = 0
const { take, give } = WindowGrowth.prototype
WindowGrowth.prototype.take = function (): number {
  const share = take.call(this)
  growthHeld += share
  return share
}
WindowGrowth.prototype.give = function (share: number): void {
  growthHeld -= share
  give.call(this, share)
}

export interface RigOptions {
  readonly listener?: Partial<ListenerConfig>
  readonly routes?: readonly RouteConfig[]
  readonly clusters?: readonly ClusterConfig[]
  readonly lookup?: ClusterOptions['lookup']
  readonly clientLink?: LinkOptions
}

export function websocketAccept(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
}

/** `listen` of `heddle/io` on a world's network. */
export function worldListen(world: World, link: LinkOptions | undefined): typeof listen {
  return (options) => {
    const sockets = new Set<LinkSocket>()
    const { hostname = '', port = 0 } = options
    const counters = { accepted: 0, refused: 0, handshakesRefused: 0, handshakesFailed: 0, acceptErrors: 0 }
    const listener = world.network.listen(
      hostname,
      port,
      (connection) => {
        counters.accepted++
        sockets.add(connection.socket)
        connection.socket.on('close', () => sockets.delete(connection.socket))
        options.onConnection(connection)
      },
      link === undefined ? {} : { link },
    )
    return Promise.resolve({
      address: { address: hostname, port, family: 'IPv4' },
      counters,
      handshakes: 0,
      get connections() {
        return sockets.size
      },
      updateTls() {},
      stop() {
        listener.stop()
        return Promise.resolve()
      },
      destroyConnections() {
        for (const socket of sockets) socket.destroy()
      },
    })
  }
}

/** The gateway's proxy in a seeded world, with scripted clients before it and scripted upstreams behind it. */
export class Rig {
  readonly world: World
  readonly proxy: Proxy
  readonly clusters: ReadonlyMap<string, Cluster>
  readonly records: RequestRecord[]
  readonly server: Server
  readonly listener: ListenerConfig
  /** Those of the clients, in their order. */
  readonly clientSockets: LinkSocket[]
  /** Requests begun. */
  started: number
  /** What those of earlier rigs hold. */
  readonly #growthBefore: number

  static async make(world: World, options: RigOptions = {}): Promise<Rig> {
    const listener = listenerConfig(options.listener)
    const config: Config = {
      workers: 1,
      admin: undefined,
      accessLog: undefined,
      listeners: [listener],
      routes: options.routes ?? [routeConfig()],
      clusters: options.clusters ?? [clusterConfig()],
      drainTimeout: 30_000,
      tunnelGrace: 20_000,
    }
    const clusters = new Map(
      config.clusters.map((cluster) => [
        cluster.name,
        new Cluster(cluster, world, {
          routes: config.routes.filter((route) => route.cluster === cluster.name),
          connect: world.network.dial,
          random: () => world.random.fraction(),
          lookup: options.lookup ?? ((_host, done) => done(new Error('no names here'), [])),
        }),
      ]),
    )
    const records: RequestRecord[] = []
    let started = 0
    const proxyOptions: ProxyOptions = {
      config,
      router: new Router(config.routes),
      clusters,
      observer: {
        onRequestStart: () => {
          started++
        },
        onRequestEnd: (record) => records.push(record),
      },
      clock: world,
    }
    const proxy = new Proxy(proxyOptions)
    const server = await serve({
      hostname: listener.host,
      port: listener.port,
      clock: world,
      listen: worldListen(world, options.clientLink),
      protocols: listener.protocols.map((version) => (version === 'h1' ? 'http/1.1' : 'h2')),
      upgrades: listener.upgrades,
      extendedConnect: config.routes.some((route) => route.extendedConnect),
      http2: listener.http2,
      limits: {
        maxContentLength: listener.limits.maxContentLength,
        headTimeout: listener.limits.headTimeout,
        bodyTimeout: listener.limits.bodyTimeout,
        idleTimeout: listener.limits.idleTimeout,
        sendTimeout: listener.limits.sendTimeout,
      },
      onExchange: (exchange) => proxy.onExchange(listener, exchange),
      onError: (error) => {
        throw error
      },
    })
    const rig = new Rig(world, proxy, clusters, records, server, listener)
    Object.defineProperty(rig, 'started', { get: () => started })
    return rig
  }

  constructor(
    world: World,
    proxy: Proxy,
    clusters: ReadonlyMap<string, Cluster>,
    records: RequestRecord[],
    server: Server,
    listener: ListenerConfig,
  ) {
    this.world = world
    this.proxy = proxy
    this.clusters = clusters
    this.records = records
    this.server = server
    this.listener = listener
    this.clientSockets = []
    this.started = 0
    this.#growthBefore = growthHeld
  }

  /** The first cluster. */
  get cluster(): Cluster {
    return [...this.clusters.values()][0] as Cluster
  }

  /** Requests that wait for an upstream connection or stream. */
  get waiting(): number {
    return this.proxy.waiting(this.listener)
  }

  /** A client connected to the gateway. */
  client(): ScriptedPeer {
    let peer: ScriptedPeer | undefined
    this.world.network.connect(this.listener.host, 80, (error: HeddleError | undefined, connection) => {
      if (connection === undefined) throw error
      this.clientSockets.push(connection.socket)
      peer = new ScriptedPeer(this.world, socketTransport(connection.socket))
    })
    while (peer === undefined) if (!this.world.step()) this.world.advance(1)
    return peer
  }

  /** A client that speaks HTTP/2 by prior knowledge. */
  http2Client(settings: Http2Settings = []): QuietPeer {
    return new QuietPeer(this.client(), 'client', settings)
  }

  /** A host that takes connections; each is a scripted peer. */
  upstream(host = '10.0.0.1', port = 8080, link: LinkOptions = {}): Upstream {
    return new Upstream(this.world, host, port, link)
  }

  /** The only record since the last call. */
  record(): RequestRecord {
    const [record, ...more] = this.records.splice(0)
    if (record === undefined || more.length > 0) throw new Error(`${record === undefined ? 0 : more.length + 1} records instead of one`)
    return record
  }

  /** What must be zero when nothing is under way. Empty: all is. */
  leftovers(): string[] {
    const left: string[] = []
    const want = (name: string, value: number): void => {
      if (value !== 0) left.push(`${name}: ${value}`)
    }
    want('proxy.active', this.proxy.active)
    want('proxy.tunnels', this.proxy.tunnels.open.size)
    want('window growth', growthHeld - this.#growthBefore)
    want('listener.waiting', this.waiting)
    want('server.exchanges', this.server.stats().exchanges)
    for (const cluster of this.clusters.values()) {
      const stats = cluster.stats()
      want(`${stats.name}.active`, stats.active)
      want(`${stats.name}.waiting`, stats.waiting)
      for (const endpoint of stats.endpoints) want(`${endpoint.name}.active`, endpoint.active)
    }
    return left
  }
}

/** A scripted host behind the gateway. */
export class Upstream {
  readonly peers: ScriptedPeer[]
  readonly sockets: LinkSocket[]
  readonly stop: () => void

  constructor(world: World, host: string, port: number, link: LinkOptions) {
    this.peers = []
    this.sockets = []
    const listener = world.network.listen(
      host,
      port,
      ({ socket }) => {
        this.sockets.push(socket)
        this.peers.push(new ScriptedPeer(world, socketTransport(socket)))
      },
      { link },
    )
    this.stop = () => listener.stop()
  }

  /** The connection accepted as the `index`th, on which the gateway speaks HTTP/2. */
  http2Peer(index = 0, settings: Http2Settings = []): QuietPeer {
    return new QuietPeer(this.peer(index), 'server', settings)
  }

  /** The connection accepted as the `index`th. */
  peer(index = 0): ScriptedPeer {
    const peer = this.peers[index]
    if (peer === undefined) throw new Error(`there is no connection ${index}, only ${this.peers.length}`)
    return peer
  }
}
