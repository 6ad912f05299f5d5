import { TimeoutError, type HeddleError, type Instant } from '../http/index.ts'
import { Alarm } from '../io/index.ts'
import type { PooledOrigin } from './origin.ts'
import type { ClientTicket } from './ticket.ts'

/**
 * Looks whether the queue of an origin moves, for the requests that have no `queueTimeout`. One that
 * moves may be as long as it likes. One that stands still is a fault somewhere, most often a program
 * that holds all connections with responses it does not read, and would wait for itself for ever.
 */
export class Stall {
  readonly #origin: PooledOrigin
  /** When a request that waited last got a connection. */
  #movedAt: Instant
  /** Armed while such requests wait: one for all of them. */
  #alarm: Alarm | undefined

  constructor(origin: PooledOrigin) {
    this.#origin = origin
    this.#movedAt = -Infinity
    this.#alarm = undefined
  }

  /** A request that waited got a connection. */
  moved(): void {
    this.#movedAt = this.#origin.pool.clock.now()
  }

  /** A request without a limit of its own waits from `now` on. */
  watch(now: Instant): void {
    const { pool } = this.#origin
    const { queuePatience } = pool.settings
    if (queuePatience === Infinity || this.#alarm?.list !== undefined) return
    this.#alarm ??= new Alarm(() => this.#expire())
    pool.arm(this.#alarm, now + queuePatience)
  }

  /** Nobody waits. */
  stop(): void {
    if (this.#alarm !== undefined) this.#origin.pool.disarm(this.#alarm)
  }

  #expire(): void {
    const { pool, waiting } = this.#origin
    const { queuePatience } = pool.settings
    const now = pool.clock.now()
    pool.timers--
    for (let ticket = waiting.first; ticket !== undefined;) {
      const next = ticket.next as ClientTicket | undefined
      if (ticket.patient) {
        const end = Math.max(ticket.since, this.#movedAt) + queuePatience
        if (end > now) {
          // Those behind it came later.
          pool.arm(this.#alarm as Alarm, end)
          return
        }
        this.#origin.leave(ticket, this.#error(queuePatience))
      }
      ticket = next
    }
  }

  #error(patience: number): HeddleError {
    const { key, connections, guestOf } = this.#origin
    const isServed = connections.size > 0 || guestOf !== undefined
    const why = isServed ? 'a response that is neither read nor disposed of keeps its connection' : 'none could be made'
    return new TimeoutError('queue', `no connection to ${key} became free for ${patience} ms: ${why}`, { unprocessed: true })
  }
}
