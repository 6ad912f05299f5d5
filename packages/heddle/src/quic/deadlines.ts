import type { Instant } from '../http/index.ts'

/** What a connection waits for. */
export const Deadline = {
  /** Loss detection: a packet counts as lost, or a probe is due (RFC 9002 §6). */
  recovery: 0,
  /** An acknowledgement must leave (RFC 9000 §13.2.1). */
  ack: 1,
  /** The pacer lets the next datagram go (RFC 9002 §7.7). */
  pacing: 2,
  /** Nothing came for too long (RFC 9000 §10.1). */
  idle: 3,
  /** The handshake takes too long. */
  handshake: 4,
  /** A PING keeps the connection open. */
  keepAlive: 5,
  /** The path was not validated in time (RFC 9000 §8.2.4). */
  path: 6,
  /** The keys of the phase before, or of 0-RTT, are let go (RFC 9001 §6.5). */
  keys: 7,
  /** Closing or draining is over (RFC 9000 §10.2). */
  closed: 8,
  /** No packet to the id that the client addressed first is worth anything any more. */
  alias: 9,
} as const
export type Deadline = (typeof Deadline)[keyof typeof Deadline]

const kinds = 10

/**
 * The deadlines of one connection, one of each kind; Infinity where there is none. The earliest is the
 * connection's.
 */
export class Deadlines {
  readonly #at: Float64Array

  constructor() {
    this.#at = new Float64Array(kinds).fill(Infinity)
  }

  /** The earliest of all. */
  get earliest(): Instant {
    let earliest = Infinity
    for (let kind = 0; kind < kinds; kind++) {
      const at = this.#at[kind] as number
      if (at < earliest) earliest = at
    }
    return earliest
  }

  set(kind: Deadline, at: Instant): void {
    this.#at[kind] = at
  }

  clear(kind: Deadline): void {
    this.#at[kind] = Infinity
  }

  clearAll(): void {
    this.#at.fill(Infinity)
  }

  at(kind: Deadline): Instant {
    return this.#at[kind] as number
  }

  /** It has come. It stays until it is set or cleared. */
  isDue(kind: Deadline, now: Instant): boolean {
    return (this.#at[kind] as number) <= now
  }
}
