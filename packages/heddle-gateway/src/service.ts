import { readFileSync } from 'node:fs'
import { HeddleError } from 'heddle/http'
import { serve, type ServedProtocol, type Server } from 'heddle/server'
import { listen, systemClock, type Clock, type TlsIdentity, type TlsServerOptions } from 'heddle/io'
import { reloaded, type Config, type HttpVersion, type ListenerConfig, type TlsConfig } from './config/index.ts'
import { listenError } from './listen-error.ts'
import { AccessLog } from './log/index.ts'
import { processSnapshot, Traffic, type Snapshot } from './metrics/index.ts'
import { Proxy } from './proxy/index.ts'
import type { ProxyObserver, RequestRecord } from './record.ts'
import { Router } from './routing/index.ts'
import { Cluster } from './upstream/index.ts'

/** The same trouble again and again, EMFILE for example, is told once in so many ms. */
const reportInterval = 10_000

/** At most so many ms before connections are cut, who waits for a response is told. */
const lastWordsTime = 500

/** What of both is spoken with a client that can do either. */
const preference: readonly HttpVersion[] = ['h3', 'h2', 'h1']
const alpnNames: Readonly<Record<HttpVersion, ServedProtocol>> = { h1: 'http/1.1', h2: 'h2', h3: 'h3' }

/** A listener that is up. */
export interface ListeningAddress {
  /** As in the configuration. */
  readonly name: string
  /** `http://127.0.0.1:8080`; `localhost` when it listens on all addresses. */
  readonly url: string
  /** The address it listens on. */
  readonly host: string
  /** The real one, also where the configuration says 0. */
  readonly port: number
}

export interface ServiceOptions {
  readonly clock?: Clock
  /** Told of every request besides metrics and access log. */
  readonly observer?: ProxyObserver
  /** How many processes share the listeners: each takes its part of `maxConnections`. Default 1. */
  readonly processes?: number
  /** Offer clients extended CONNECT, whatever the routes say. Default: if some route allows it. */
  readonly extendedConnect?: boolean
  /** 48 bytes, the same in all processes: TLS sessions resume whichever takes the connection. */
  readonly ticketKeys?: Buffer
  /** 32 bytes, the same in all processes: what one of them gave a QUIC client the others know. */
  readonly quicKey?: Buffer
  /** By listener's name: the ports of those for HTTP/3 alone whose configuration says 0. Default: any free one, in each process another. */
  readonly quicPorts?: ReadonlyMap<string, number>
  /** Told of what concerns no request, such as a failed accept. Default: a line on standard error. */
  readonly onError?: (message: string) => void
}

/**
 * The gateway's work in one process: listeners, routing, proxying, clusters, counters, access log.
 * The whole gateway with one worker; each worker's part with several.
 */
export class Service {
  #config: Config
  readonly #log: AccessLog | undefined
  readonly #traffic: Traffic
  #clusters: ReadonlyMap<string, Cluster>
  /** Clusters of earlier configurations in which requests are under way. */
  readonly #retired: Set<Cluster>
  readonly #options: ServiceOptions
  readonly #proxy: Proxy
  readonly #extendedConnect: boolean
  readonly #servers: { config: ListenerConfig; readonly server: Server }[] = []
  #closing: Promise<void> | undefined
  #lastReport = ''
  #lastReportAt = 0

  private constructor(config: Config, options: ServiceOptions) {
    const clock = options.clock ?? systemClock()
    this.#config = config
    this.#options = options
    this.#clusters = makeClusters(config, clock)
    this.#retired = new Set()
    // RFC 8441 §3: what was offered cannot be withdrawn, so it is not offered for nothing.
    this.#extendedConnect = options.extendedConnect ?? config.routes.some((route) => route.extendedConnect)
    this.#log = config.accessLog === undefined ? undefined : new AccessLog(config.accessLog.path)
    this.#traffic = new Traffic(config.listeners.map(({ name, tls }) => ({ name, scheme: tls === undefined ? 'http' : 'https' })))
    const router = new Router(config.routes)
    this.#proxy = new Proxy({ config, router, clusters: this.#clusters, observer: this.#observer(), clock })
  }

  /** Starts everything; rejects with a {@link ListenError} if a port cannot be had, and nothing is left running then. */
  static async start(config: Config, options: ServiceOptions = {}): Promise<Service> {
    const service = new Service(config, options)
    try {
      await service.#listen()
    } catch (error) {
      await service.close({ deadline: 0 })
      throw error
    }
    return service
  }

  async #listen(): Promise<void> {
    const { clock = systemClock(), processes = 1, quicKey, quicPorts } = this.#options
    // One after the other: workers must ask for their sockets in the same order.
    for (const listener of this.#config.listeners) {
      const { maxConnections, ...limits } = listener.limits
      const speaksHttp3 = listener.protocols.includes('h3')
      const server = await serve({
        hostname: listener.host,
        port: quicPorts?.get(listener.name) ?? listener.port,
        clock,
        protocols: preference.filter((version) => listener.protocols.includes(version)).map((version) => alpnNames[version]),
        limits,
        http2: listener.http2,
        http3: listener.http3,
        maxConnections: Math.ceil(maxConnections / processes),
        upgrades: listener.upgrades,
        extendedConnect: this.#extendedConnect,
        onExchange: (exchange) => this.#proxy.onExchange(listener, exchange),
        onError: (error) => this.#report(error),
        // By UDP each process has a socket of its own and the system keeps clients with theirs; by TCP one holds them all.
        ...(speaksHttp3 && processes > 1 ? { reusePort: true, listen: (options) => listen({ ...options, reusePort: false }) } : undefined),
        ...(quicKey === undefined ? undefined : { quicKey }),
        ...(listener.tls === undefined ? undefined : { tls: this.#tlsOptions(listener.tls) }),
      }).catch((error: unknown) => {
        throw listenError(error, `listener ${listener.name}`, listener.host, listener.port, processes === 1)
      })
      if (speaksHttp3) this.#proxy.advertise(listener, server.port)
      this.#servers.push({ config: listener, server })
    }
  }

  get addresses(): readonly ListeningAddress[] {
    return this.#servers.map(({ config, server }) => ({ name: config.name, url: server.url, host: server.hostname, port: server.port }))
  }

  /** What was counted, and how things are now. O(connections). */
  snapshot(): Snapshot {
    return {
      processes: [processSnapshot()],
      traffic: this.#traffic.snapshot(),
      listeners: this.#servers.map(({ config, server }) => {
        const { connections, accepted, rejected, handshakesFailed, exchanges, deadlines, http2, http3 } = server.stats()
        return {
          name: config.name,
          url: server.url,
          connections,
          accepted,
          refused: rejected,
          handshakesFailed,
          exchanges,
          deadlines,
          waiting: this.#proxy.waiting(config),
          http2: {
            connections: http2.connections,
            streams: http2.exchanges,
            frames: http2.frames,
            writes: http2.writes,
            resetsSent: http2.resetsSent,
            resetsReceived: http2.resetsReceived,
          },
          http3: {
            connections: http3.connections,
            streams: http3.exchanges,
            resetsSent: http3.resetsSent,
            resetsReceived: http3.resetsReceived,
            datagrams: http3.datagrams,
            writes: http3.writes,
          },
        }
      }),
      clusters: [...this.#clusters.values()].map((cluster) => cluster.stats()),
      accessLog: this.#log?.stats() ?? { lines: 0, dropped: 0, failures: 0 },
    }
  }

  /** Opens the access log anew and reads the certificates again. A certificate that is no good changes nothing and goes to `onError`. */
  refresh(): void {
    this.#log?.reopen()
    for (const { config, server } of this.#servers) {
      if (config.tls === undefined) continue
      try {
        server.updateTls(this.#tlsOptions(config.tls))
      } catch (error) {
        this.#report(error)
      }
    }
  }

  /**
   * Goes by `config` from the next request on. What is under way goes on as it began, and clusters that did not
   * change keep their connections and what is known of their endpoints. Throws, having changed nothing, a
   * {@link ReloadError} for what takes a restart, and what reading TLS files throws.
   */
  reload(config: Config): void {
    const next = reloaded(this.#config, config, this.#extendedConnect)
    const identities = next.listeners.map(({ tls }) => (tls === undefined ? undefined : this.#tlsOptions(tls)))
    const router = new Router(next.routes)
    const before = this.#clusters
    const clusters = makeClusters(next, this.#options.clock ?? systemClock(), before)
    this.#config = next
    this.#clusters = clusters
    this.#proxy.reload(next, router, clusters)
    for (const cluster of before.values()) {
      if (clusters.get(cluster.name) === cluster) continue
      this.#retired.add(cluster)
      cluster.retire(() => this.#retired.delete(cluster))
    }
    this.#servers.forEach((served, index) => {
      served.config = next.listeners[index] as ListenerConfig
      const tls = identities[index]
      try {
        if (tls !== undefined) served.server.updateTls(tls)
      } catch (error) {
        this.#report(error)
      }
    })
  }

  /**
   * Accepts no more, lets what runs finish, cuts what is left after `deadline` ms (default the
   * configuration's `drainTimeout`). A second call may bring the deadline forward.
   */
  close(options: { readonly deadline?: number } = {}): Promise<void> {
    const { deadline = this.#config.drainTimeout } = options
    const closed = this.#servers.map(({ server }) => server.close({ deadline }))
    const { drainTimeout, tunnelGrace } = this.#config
    // Of a shorter deadline tunnels have the same share.
    this.#proxy.tunnels.end(deadline < drainTimeout ? (tunnelGrace * deadline) / drainTimeout : tunnelGrace)
    this.#proxy.tunnels.cut(deadline)
    // What is said then must have left before the cut.
    this.#proxy.end(Math.max(deadline - lastWordsTime, deadline * 0.9))
    this.#closing ??= this.#finish(closed)
    return this.#closing
  }

  async #finish(closed: readonly Promise<void>[]): Promise<void> {
    // Idle upstream connections do not keep a process alive; the end of this must, or it would never come.
    const hold = setInterval(() => {}, 60_000)
    await Promise.allSettled(closed)
    // Clients of WebSockets may have answered sooner than upstreams.
    await this.#proxy.tunnels.over()
    for (const cluster of [...this.#retired, ...this.#clusters.values()]) {
      const gone = cluster.close()
      // No client is left, so nothing upstream is wanted any more.
      cluster.destroy()
      await gone
    }
    await this.#log?.close()
    clearInterval(hold)
  }

  /** Tells what concerns no request. What clients can cause as often as they like is counted only, or told now and then. */
  #report(error: unknown): void {
    if (error instanceof HeddleError && (error.code === 'TLS_FAILED' || error.code === 'HANDSHAKE_FAILED')) return
    const message = error instanceof Error ? error.message : String(error)
    const trouble = troubleOf(error) ?? message
    const now = Date.now()
    if (trouble === this.#lastReport && now - this.#lastReportAt < reportInterval) return
    this.#lastReport = trouble
    this.#lastReportAt = now
    const { onError = printError } = this.#options
    onError(message)
  }

  #observer(): ProxyObserver {
    const observers: ProxyObserver[] = [this.#traffic]
    const log = this.#log
    if (log !== undefined) observers.push({ onRequestStart() {}, onRequestEnd: (record) => log.write(record) })
    if (this.#options.observer !== undefined) observers.push(this.#options.observer)
    return observers.length === 1 ? this.#traffic : new Observers(observers)
  }

  #tlsOptions(tls: TlsConfig): TlsServerOptions {
    const { ticketKeys } = this.#options
    const clientCa = tls.clientCa === undefined ? undefined : readFileSync(tls.clientCa)
    const names: Record<string, TlsIdentity> = {}
    const identities = tls.certificates.map((certificate): TlsIdentity => {
      const identity = { cert: readFileSync(certificate.cert), key: readFileSync(certificate.key), ca: clientCa }
      // The first certificate for a name wins.
      for (const name of certificate.names) names[name] ??= identity
      return identity
    })
    return { ...identities[0], names, requestCert: clientCa !== undefined, ticketKeys }
  }
}

/** What the system refused, whatever the address: datagrams may fail to leave to clients anywhere. Undefined: it is no error of the system's. */
function troubleOf(error: unknown): string | undefined {
  const system: unknown = error instanceof HeddleError ? error.cause : error
  if (!(system instanceof Error)) return undefined
  const { code, syscall } = system as NodeJS.ErrnoException
  return typeof code === 'string' && typeof syscall === 'string' ? `${syscall} ${code}` : undefined
}

/** Those of `config`; what did not change is taken from `known`. Throws for TLS files that cannot be read; then none is new. */
function makeClusters(config: Config, clock: Clock, known?: ReadonlyMap<string, Cluster>): Map<string, Cluster> {
  const clusters = new Map<string, Cluster>()
  const made: Cluster[] = []
  try {
    for (const cluster of config.clusters) {
      const routes = config.routes.filter((route) => route.cluster === cluster.name)
      const old = known?.get(cluster.name)
      if (old?.isMadeOf(cluster, routes) === true) {
        clusters.set(cluster.name, old)
        continue
      }
      const fresh = new Cluster(cluster, clock, { routes })
      made.push(fresh)
      clusters.set(cluster.name, fresh)
    }
  } catch (error) {
    for (const cluster of made) cluster.destroy()
    throw error
  }
  return clusters
}

/** Tells several observers. */
class Observers implements ProxyObserver {
  readonly #observers: readonly ProxyObserver[]

  constructor(observers: readonly ProxyObserver[]) {
    this.#observers = observers
  }

  onRequestStart(listener: string): void {
    for (const observer of this.#observers) observer.onRequestStart(listener)
  }

  onTunnelStart(record: RequestRecord): void {
    for (const observer of this.#observers) observer.onTunnelStart?.(record)
  }

  onRequestEnd(record: RequestRecord): void {
    for (const observer of this.#observers) observer.onRequestEnd(record)
  }
}

function printError(message: string): void {
  console.error(`heddle-gateway: ${message}`)
}
