import { lookup as systemLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { HeddleError, NetworkError, type Instant } from '../http/index.ts'
import { Alarm, type DialOptions } from '../io/index.ts'
import type { Alternative } from './alternatives.ts'
import type { Coalescing } from './coalescing.ts'
import type { PooledConnection } from './connection.ts'
import { drop, type AnyDialled } from './engine.ts'
import { HeadStart, type Attempt, type Connector, type HeadStartOwner, type Told } from './head-start.ts'
import type { PooledOrigin } from './origin.ts'
import { isMultiplexed } from './protocols.ts'

/** ms before the first new attempt after a dial failed while other connections live, doubled each time … */
const firstPause = 100
/** … up to this. */
const longestPause = 5_000

/** The connections to one origin that are being made: when there is to be one more, and what becomes of those that fail. */
export class Dials implements HeadStartOwner {
  readonly #origin: PooledOrigin
  readonly #attempts: Set<Attempt>
  /** The last one failed: one at a time until one succeeds. */
  #suspect: boolean
  /** Attempts in a row that failed while other connections lived. */
  #failures: number
  /** No new attempt before this while other connections live. */
  #pausedUntil: Instant
  /** Armed while requests wait for the end of the pause. */
  #pause: Alarm | undefined
  /** An attempt by QUIC that no request waits for: they have connections by TCP. */
  #probe: Attempt | undefined
  /** One is to begin. */
  #probeWanted: boolean

  constructor(origin: PooledOrigin) {
    this.#origin = origin
    this.#attempts = new Set()
    this.#suspect = false
    this.#failures = 0
    this.#pausedUntil = 0
    this.#pause = undefined
    this.#probe = undefined
    this.#probeWanted = false
  }

  get size(): number {
    return this.#attempts.size
  }

  /**
   * True if another one would be of use and the origin's own limit allows it. While nobody knows what the
   * origin speaks, one at a time: it tells whether more are needed.
   */
  get isWanted(): boolean {
    const { protocol, pool, waiting, streamsPerConnection } = this.#origin
    const { size } = this.#attempts
    if (waiting.length === 0 || !this.#isAllowed) return false
    // The next one may be by QUIC, and do for all.
    if (protocol === undefined || (protocol === 'h1' && this.usesAlternative)) return size === 0
    if (protocol === 'h1') return waiting.length > size
    if (!pool.settings.connectsWhenFull) return size === 0 && !this.#origin.hasStreams
    return waiting.length > size * streamsPerConnection
  }

  get #isAllowed(): boolean {
    const { pool, connections, leaving, tunnelling, tunnelsOnly } = this.#origin
    const { maxConnectionsPerOrigin, maxTunnelsPerOrigin } = pool.settings
    const all = connections.size + this.#attempts.size
    if (tunnelsOnly && all >= maxTunnelsPerOrigin) return false
    // A tunnel may last for days: neither requests nor other tunnels wait for its end.
    const taken = all - tunnelling
    if (taken < maxConnectionsPerOrigin) return true
    // What a leaving HTTP/2 connection still has to finish may take hours: new requests do not wait for it.
    return taken - leaving < maxConnectionsPerOrigin && taken < maxConnectionsPerOrigin * 2
  }

  /** Beside an HTTP/2 connection that takes no more requests another may be made, while that has some to finish. */
  get isReplaceable(): boolean {
    const { pool, connections, tunnelling } = this.#origin
    return pool.room.left && connections.size + this.#attempts.size - tunnelling < pool.settings.maxConnectionsPerOrigin * 2
  }

  /**
   * Starts one if there is a request waiting without one and the limits allow it. True: another could be
   * of use; asked one at a time, so that origins share the room they compete for.
   */
  maybeStart(): boolean {
    if (!this.isWanted) {
      if (this.#probeWanted) this.#startProbe()
      return false
    }
    this.#probeWanted = false
    const origin = this.#origin
    const { pool } = origin
    if (this.#suspect && this.#attempts.size > 0) return false
    if (this.#suspect && origin.hasUsable && pool.clock.now() < this.#pausedUntil) {
      this.#pause ??= new Alarm(() => this.#endPause())
      pool.arm(this.#pause, this.#pausedUntil)
      return false
    }
    const host = pool.coalescing?.named(origin)
    if (host !== undefined) {
      origin.shareWith(host)
      return false
    }
    if (!pool.room.left) {
      pool.room.block(origin)
      return false
    }
    this.#start()
    return true
  }

  /** Ends those that no request waits for. */
  cancelAll(): void {
    this.#withdrawAll()
    this.#probe?.cancel()
    this.#probe = undefined
    this.#probeWanted = false
  }

  #withdrawAll(): void {
    for (const attempt of this.#attempts) this.#withdraw(attempt)
  }

  /** Nobody waits for the end of a pause. */
  stopPausing(): void {
    if (this.#pause !== undefined) this.#origin.pool.disarm(this.#pause)
  }

  #start(): void {
    const origin = this.#origin
    const { pool } = origin
    const attempt: Attempt = { cancel: () => {} }
    this.#attempts.add(attempt)
    pool.room.take()
    try {
      const dial = this.#connector(attempt)((error, dialled) => {
        if (!this.#attempts.delete(attempt)) {
          if (dialled !== undefined) drop(dialled)
        } else if (dialled !== undefined) this.#succeeded(dialled)
        else this.#failed(error as HeddleError)
      })
      attempt.cancel = () => dial.cancel()
    } catch (error) {
      this.#attempts.delete(attempt)
      this.#failed(error as HeddleError)
    }
  }

  /** How the next connection is made. What it throws is a HeddleError. */
  #connector(attempt: Attempt): Connector {
    const origin = this.#origin
    const { pool, route, alternative } = origin
    const byTcp: Connector = (done) => begin(() => pool.settings.connect(route.target, this.#optionsOf(attempt), done))
    if (route.quicOnly) return (done) => this.#byQuic(origin.host, origin.port, done)
    if (alternative === undefined || !this.usesAlternative) return byTcp
    const byQuic: Connector = (done) => this.#byQuic(alternative.host, alternative.port, done)
    return (done) => new HeadStart(pool.clock, alternative, byQuic, byTcp, this, done)
  }

  #byQuic(host: string, port: number, done: Told): Attempt {
    const { pool, route } = this.#origin
    const { quic } = pool.settings
    const options = route.quic
    // RFC 9110 §9.3.6: CONNECT makes a tunnel for TCP.
    if (quic === undefined || options === undefined) {
      throw new NetworkError('PROXY_FAILED', 'no connection over QUIC goes through a proxy', { unprocessed: true })
    }
    return begin(() => quic.connect({ host, port }, options, done))
  }

  // ── Beside TCP ──────────────────────────────────────────────────────────────────────────────────

  /** The next connection is tried by QUIC, to where the server said that it can be reached so. */
  get usesAlternative(): boolean {
    const { alternative, http1Required, pool } = this.#origin
    return alternative !== undefined && this.#probe === undefined && !http1Required && alternative.isUsable(pool.clock.now())
  }

  /** A request goes over TCP: if it need not be so for ever, a connection by QUIC is tried meanwhile. */
  considerProbe(): void {
    const origin = this.#origin
    if (this.#probeWanted || this.#attempts.size > 0 || origin.usable.h3 > 0 || !this.usesAlternative) return
    this.#probeWanted = true
    origin.pool.makeDue(origin)
  }

  #startProbe(): void {
    this.#probeWanted = false
    const { pool, alternative } = this.#origin
    if (alternative === undefined || !this.usesAlternative || !this.#hasRoom) return
    try {
      this.#probe = this.#byQuic(alternative.host, alternative.port, (error, dialled) => this.onProbed(alternative, error, dialled))
    } catch (error) {
      pool.clock.soon(() => this.onProbed(alternative, error as HeddleError, undefined))
    }
  }

  get #hasRoom(): boolean {
    const { known, pool } = this.#origin
    return known && !pool.closing && pool.room.left && this.#isAllowed
  }

  onProbing(probe: Attempt): void {
    this.#probe = probe
  }

  onQuicFailed(error: HeddleError): void {
    this.#origin.counters.countError(error.code)
  }

  onProbed(alternative: Alternative, error: HeddleError | undefined, dialled: AnyDialled | undefined): void {
    const origin = this.#origin
    const { pool } = origin
    this.#probe = undefined
    if (dialled === undefined) {
      this.onQuicFailed(error as HeddleError)
      alternative.failed(pool.clock.now())
      return
    }
    alternative.worked()
    if (!this.#hasRoom || origin.http1Required || origin.usable.h3 > 0) return drop(dialled)
    pool.room.take()
    pool.directory.becameUsed(origin)
    origin.connected(dialled, 'h3')
  }

  #optionsOf(attempt: Attempt): DialOptions {
    const origin = this.#origin
    const { route, pool } = origin
    if (origin.http1Required) return route.http1Options
    const { coalescing } = pool
    if (coalescing === undefined || !coalescing.mayReach(origin)) return route.options
    return { ...route.options, lookup: this.#lookupOf(attempt, coalescing) }
  }

  /** A lookup that ends `attempt` if the name leads to where another origin's connection goes that will do. */
  #lookupOf(attempt: Attempt, coalescing: Coalescing): LookupFunction {
    const origin = this.#origin
    const look = origin.route.options.lookup ?? (systemLookup as unknown as LookupFunction)
    return (host, options, done) => {
      look(host, options, (error, result, family) => {
        const addresses = typeof result === 'string' ? [result] : (result ?? []).map(({ address }) => address)
        const found = error === null || error === undefined ? coalescing.reached(origin, addresses) : undefined
        if (found === undefined) done(error, result, family)
        // Some lookups answer before there is a dial to end.
        else origin.pool.clock.soon(() => this.#give(attempt, found))
      })
    }
  }

  /** `attempt` is not needed: the connection of another origin, `host`, will do. */
  #give(attempt: Attempt, host: PooledConnection): void {
    if (!this.#withdraw(attempt)) return
    const origin = this.#origin
    if (host.retired) origin.pool.makeDue(origin)
    else origin.shareWith(host)
  }

  #withdraw(attempt: Attempt): boolean {
    if (!this.#attempts.delete(attempt)) return false
    attempt.cancel()
    this.#origin.pool.left()
    return true
  }

  #succeeded(dialled: AnyDialled): void {
    const origin = this.#origin
    const { pool, http1Required, route } = origin
    const protocol = 'quic' in dialled ? 'h3' : route.spokenOn(dialled.alpn, http1Required)
    if (protocol === undefined) {
      drop(dialled)
      const message = `${origin.key} speaks none of ${route.protocols.join(', ')}`
      return this.#failed(new NetworkError('TLS_FAILED', message, { unprocessed: true }))
    }
    if (isMultiplexed(protocol) && http1Required) {
      // It was on its way when the server asked for HTTP/1.1.
      drop(dialled)
      pool.left()
      if (origin.waiting.length > 0) pool.makeDue(origin)
      return
    }
    this.#suspect = false
    this.#failures = 0
    origin.connected(dialled, protocol)
    // What was held back while the origin was suspect, or nobody knew what it speaks.
    if (this.isWanted) pool.makeDue(origin)
    // One connection does for all, where several were thought to be needed.
    else if (isMultiplexed(protocol) && origin.waiting.length === 0) this.#withdrawAll()
  }

  /**
   * While others are under way, they decide. If nothing is left that could serve them, all who wait are
   * told; else those who have waited as long as a connection may take, and the rest goes on waiting for
   * the connections that live, with new attempts in growing intervals.
   */
  #failed(failure: HeddleError): void {
    const origin = this.#origin
    const error = origin.errorAbout(failure)
    const { pool, waiting } = origin
    origin.counters.countError(error.code)
    this.#suspect = true
    pool.left()
    if (this.#attempts.size > 0) return
    if (!origin.hasUsable) {
      this.#failures = 0
      origin.failWaiting(error)
      origin.maybeUnused()
      return
    }
    const now = pool.clock.now()
    const { connectTimeout } = pool.settings
    for (let ticket = waiting.first; ticket !== undefined && now - ticket.since >= connectTimeout; ticket = waiting.first) {
      origin.leave(ticket, error)
    }
    this.#pausedUntil = now + Math.min(firstPause * 2 ** this.#failures, longestPause)
    this.#failures++
    if (waiting.length > 0) pool.makeDue(origin)
  }

  #endPause(): void {
    const { pool } = this.#origin
    pool.timers--
    pool.makeDue(this.#origin)
  }
}

/** What `start` returns; what it throws, an option that net or tls refuses, is made a HeddleError. */
function begin(start: () => Attempt): Attempt {
  try {
    return start()
  } catch (cause) {
    if (cause instanceof HeddleError) throw cause
    throw new NetworkError('CONNECT_FAILED', 'no connection could be begun', { cause, unprocessed: true })
  }
}
