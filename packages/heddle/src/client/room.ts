import { List } from '../bytes/index.ts'
import type { PooledConnection } from './connection.ts'
import type { PooledOrigin } from './origin.ts'
import type { Pool } from './pool.ts'

/**
 * The limit over all connections of a client (`maxConnections`). An origin that may not dial because
 * of it stands in line; idle connections of other origins make room for it, and an origin with more
 * than its share of the room gives connections up between two requests.
 */
export class Room {
  /** Open connections and those being made. */
  taken: number
  /** Connections closed to make room and not gone yet. */
  evicting: number
  /** Origins that want to dial and may not. */
  readonly blocked: List<PooledOrigin>
  readonly #pool: Pool
  readonly #limit: number
  /** Origins with idle connections; kept only if there is a limit. */
  readonly #idle: List<PooledOrigin>
  /** HTTP/2 connections without requests on which their servers allow none; kept only if there is a limit. */
  readonly #shut: Set<PooledConnection>

  constructor(pool: Pool) {
    this.taken = 0
    this.evicting = 0
    this.blocked = new List()
    this.#pool = pool
    this.#limit = pool.settings.maxConnections
    this.#idle = new List()
    this.#shut = new Set()
  }

  /** True while another connection may be made. */
  get left(): boolean {
    return this.taken < this.#limit
  }

  /** A dial begins. */
  take(): void {
    this.taken++
  }

  /** A connection is gone, or a dial ended without one: whoever stands first in line may dial. */
  give(): void {
    this.taken--
    const origin = this.blocked.first
    if (origin === undefined) return
    origin.moveTo(undefined)
    this.#pool.makeDue(origin)
  }

  /** `origin` stands in line. */
  block(origin: PooledOrigin): void {
    origin.moveTo(this.blocked)
    this.#pool.attendSoon()
  }

  /** Room that those called up before did not need is for the next in line, who is added to `due`; false: there is none. */
  callUp(due: PooledOrigin[]): boolean {
    const { first } = this.blocked
    if (first === undefined || !this.left) return false
    first.moveTo(undefined)
    due.push(first)
    return true
  }

  unblock(origin: PooledOrigin): void {
    if (origin.list === this.blocked) origin.moveTo(undefined)
  }

  /** The first connection of `origin` is idle. */
  becameIdle(origin: PooledOrigin): void {
    if (this.#limit === Infinity) return
    origin.moveTo(this.#idle)
    if (this.blocked.length > 0) this.#pool.attendSoon()
  }

  /** No connection of `origin` is idle any more. */
  becameBusy(origin: PooledOrigin): void {
    if (origin.list === this.#idle) origin.moveTo(undefined)
  }

  /** Whether `connection` has no requests and may not have any changed, or it takes none any more. */
  noteShut(connection: PooledConnection, shut: boolean): void {
    if (this.#limit === Infinity) return
    if (!shut) {
      this.#shut.delete(connection)
      return
    }
    this.#shut.add(connection)
    if (this.blocked.length > 0) this.#pool.attendSoon()
  }

  /**
   * Takes `connection`, which could take a request, away from its origin if another one has less than its
   * share and stands in line. True: it must not take it.
   */
  claims(connection: PooledConnection): boolean {
    // A connection made for a request serves one.
    if (this.blocked.length === 0 || connection.taken === 0 || !this.#mustYield(connection.origin)) return false
    this.#evict(connection)
    this.#pool.retireSoon(connection)
    return true
  }

  /** Closes connections that are idle, or of no use, as long as somebody stands in line. In `attend` only. */
  make(): void {
    for (let wanted = this.blocked.length - this.evicting; wanted > 0; wanted--) {
      const connection = this.#idle.first?.oldestIdle ?? this.#ofNoUse()
      if (connection === undefined) return
      this.#evict(connection)
      connection.retire()
    }
  }

  /**
   * A connection whose server allows no requests on it. Not for its own origin, which would only get another such,
   * and stands behind the others from now on.
   */
  #ofNoUse(): PooledConnection | undefined {
    const { first, last } = this.blocked
    for (const connection of this.#shut) {
      const { origin } = connection
      if (origin === first && origin === last) continue
      if (origin.list === this.blocked) {
        this.blocked.remove(origin)
        this.blocked.append(origin)
      }
      return connection
    }
    return undefined
  }

  #mustYield(origin: PooledOrigin): boolean {
    const { first } = this.blocked
    const other = first === origin ? (first.next as PooledOrigin | undefined) : first
    if (other === undefined || this.blocked.length <= this.evicting) return false
    const sharers = this.#pool.directory.used
    const share = Math.max(1, Math.floor(this.#limit / sharers))
    if (origin.connections.size - origin.evicting > share) return true
    // More origins than connections: they take turns.
    return sharers > this.#limit && other.connections.size === 0
  }

  #evict(connection: PooledConnection): void {
    connection.evicted = true
    connection.origin.evicting++
    this.evicting++
  }
}
