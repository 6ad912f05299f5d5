import { List } from '../bytes/index.ts'
import { UsageError } from '../http/index.ts'
import { Alarm } from '../io/index.ts'
import { PooledOrigin, tunnelSuffix } from './origin.ts'
import type { Pool } from './pool.ts'
import { Census, Counters, poolCounts, type ClientStats } from './stats.ts'

const defaultPorts: Readonly<Record<string, number>> = { http: 80, https: 443 }

/** The origins of a client by name. Those in nobody's use are forgotten after a while, so names do not add up. */
export class Directory {
  readonly #pool: Pool
  readonly #origins: Map<string, PooledOrigin>
  /** Origins without connections and requests, the one unused longest first. */
  readonly #unused: List<PooledOrigin>
  readonly #sweep: Alarm
  /** What forgotten origins counted. */
  readonly #forgotten: Counters

  constructor(pool: Pool) {
    this.#pool = pool
    this.#origins = new Map()
    this.#unused = new List()
    this.#sweep = new Alarm(() => this.#forget())
    this.#forgotten = new Counters()
  }

  /** Origins in use. */
  get used(): number {
    return this.#origins.size - this.#unused.length
  }

  origins(): Iterable<PooledOrigin> {
    return this.#origins.values()
  }

  /** The origin of `url`, made if it is not known. Throws UsageError for what has none. */
  find(url: string | URL): PooledOrigin {
    if (typeof url === 'string') {
      const known = this.#origins.get(url)
      if (known !== undefined) return known
      if (!URL.canParse(url)) throw new UsageError(`not a URL: ${url}`)
    }
    const { protocol, host, hostname, port } = typeof url === 'string' ? new URL(url) : url
    const scheme = protocol.slice(0, -1)
    const defaultPort = defaultPorts[scheme]
    if (defaultPort === undefined) throw new UsageError(`only http and https URLs have an origin to send to, not ${protocol}`)
    const known = this.#origins.get(`${scheme}://${host}`)
    if (known !== undefined) return known
    const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
    return this.#remember(new PooledOrigin(this.#pool, scheme, host, bare, port === '' ? defaultPort : Number(port)))
  }

  /** What stands for `origin`, which was forgotten: itself again, or the one that took its place. */
  recall(origin: PooledOrigin): PooledOrigin {
    return this.#origins.get(origin.key) ?? this.#remember(origin)
  }

  /**
   * Where tunnels to `origin` wait that no HTTP/2 connection takes now: with HTTP/1.1 connections of their
   * own, or where the rest waits if the client speaks HTTP/2 only.
   */
  forTunnels(origin: PooledOrigin): PooledOrigin {
    if (origin.tunnelsOnly || !origin.route.protocols.includes('h1')) return origin
    const { scheme, authority, host, port } = origin
    return this.#origins.get(origin.key + tunnelSuffix) ?? this.#remember(new PooledOrigin(this.#pool, scheme, authority, host, port, true))
  }

  /** `origin` has neither connections nor requests. */
  becameUnused(origin: PooledOrigin): void {
    origin.unusedSince = this.#pool.clock.now()
    origin.moveTo(this.#unused)
    if (this.#unused.length === 1) this.#pool.arm(this.#sweep, origin.unusedSince + this.#pool.settings.originLifetime)
  }

  becameUsed(origin: PooledOrigin): void {
    if (origin.list !== this.#unused) return
    origin.moveTo(undefined)
    if (this.#unused.length === 0) this.stopSweeping()
  }

  /** The client is closed: nothing needs to be forgotten any more. */
  stopSweeping(): void {
    this.#pool.disarm(this.#sweep)
  }

  stats(): ClientStats {
    const total = new Counters()
    total.add(this.#forgotten)
    const census = new Census()
    const origins = []
    for (const origin of this.#origins.values()) {
      total.add(origin.counters)
      census.add(origin.census())
      origins.push(origin.stats())
    }
    const { resets, http3Resets } = this.#pool.settings
    return {
      ...poolCounts(census, total),
      http3Unavailable: this.#pool.settings.http3Unavailable,
      timers: this.#pool.timers,
      resetsSent: resets.sent,
      resetsReceived: resets.received,
      http3ResetsSent: http3Resets.sent,
      http3ResetsReceived: http3Resets.received,
      origins,
    }
  }

  #remember(origin: PooledOrigin): PooledOrigin {
    origin.known = true
    this.#origins.set(origin.key, origin)
    this.becameUnused(origin)
    return origin
  }

  #forget(): void {
    const pool = this.#pool
    pool.timers--
    const now = pool.clock.now()
    for (let origin = this.#unused.first; origin !== undefined; origin = this.#unused.first) {
      const end = origin.unusedSince + pool.settings.originLifetime
      if (end > now) {
        pool.arm(this.#sweep, end)
        return
      }
      origin.moveTo(undefined)
      origin.known = false
      origin.dials.cancelAll()
      this.#origins.delete(origin.key)
      this.#forgotten.add(origin.counters)
      origin.counters.reset()
    }
  }
}
