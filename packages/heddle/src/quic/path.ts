import type { Address, Instant } from '../http/index.ts'

/** A way between two addresses. */
export interface Route {
  /** The same for the same two addresses, and for no others. */
  readonly key: string
  readonly remote: Address
  readonly local: Address
}

/** Octets that go to an address for each that came from it, until it is known to be the peer's (RFC 9000 §8.1). */
export const amplification = 3
/** PATH_RESPONSE frames that wait to be sent: what comes above is not answered. */
export const mostResponses = 32

/** A PATH_CHALLENGE that was sent. */
interface Challenge {
  readonly octets: Uint8Array
  /** Its datagram had 1,200 octets, so that the answer tells that the path carries them. */
  readonly isFull: boolean
}

/**
 * One network path of a connection: how much may go to an address that is not validated, and the
 * PATH_CHALLENGE that validates it (RFC 9000 §8).
 *
 *     idle ── startValidation ──► challenge waits ◄──── interval over ─────┐
 *      ▲                                │ onChallengeSent                  │
 *      │                                ▼                                  │
 *      ├── answer to a full one ─── under way ─────────────────────────────┘
 *      └── the time is over: failed
 */
export class Path {
  readonly route: Route
  /** The peer has shown that it receives at the address. */
  validated: boolean
  /** Octets of datagrams. */
  bytesReceived: number
  bytesSent: number
  /** The challenges that were sent and not answered. */
  readonly #challenges: Challenge[]
  /** A PATH_CHALLENGE must leave. */
  challengeWaits: boolean
  /** When the next challenge goes, or the path is given up; Infinity: no validation is going on. */
  deadline: Instant
  /** ms that a validation may take, and when that time is over. */
  #patience: number
  #failsAt: Instant
  /** What the peer's PATH_CHALLENGE frames want back. */
  readonly responses: Uint8Array[]

  constructor(route: Route, validated: boolean) {
    this.route = route
    this.validated = validated
    this.bytesReceived = 0
    this.bytesSent = 0
    this.#challenges = []
    this.challengeWaits = false
    this.deadline = Infinity
    this.#patience = 0
    this.#failsAt = Infinity
    this.responses = []
  }

  /** Octets that a datagram to this path may have now; Infinity once it is validated. */
  get allowance(): number {
    return this.validated ? Infinity : Math.max(0, this.bytesReceived * amplification - this.bytesSent)
  }

  /** An answer is waited for. */
  get isValidating(): boolean {
    return this.deadline !== Infinity
  }

  /** It is to be found out whether the peer is at the address (still): a challenge leaves as soon as it may. `patience`: ms that it may take. */
  startValidation(patience: number, now: Instant): void {
    if (this.isValidating) return
    this.#patience = patience
    this.#failsAt = now + patience
    this.deadline = this.#failsAt
    this.challengeWaits = true
  }

  /** A PATH_CHALLENGE with these 8 octets leaves. `isFull`: in a datagram of 1,200 octets. `probeTimeout`: ms. */
  onChallengeSent(octets: Uint8Array, isFull: boolean, probeTimeout: number, now: Instant): void {
    // RFC 9000 §8.2.1: no more often than Initial packets are sent again.
    const interval = probeTimeout * 2 ** this.#challenges.length
    this.#challenges.push({ octets, isFull })
    this.challengeWaits = false
    this.deadline = Math.min(now + interval, this.#failsAt)
  }

  /** PATH_RESPONSE. True if it answers a challenge of this path (RFC 9000 §8.2.3). */
  receiveResponse(buffer: Uint8Array, start: number): boolean {
    const answered = this.#challenges.find(({ octets }) => octets.every((octet, i) => octet === buffer[start + i]))
    if (answered === undefined) return false
    this.validated = true
    this.#challenges.length = 0
    this.challengeWaits = !answered.isFull
    // RFC 9000 §8.2.1: more may be sent now, so it is tried whether the path carries 1,200 octets.
    this.#failsAt = answered.isFull ? Infinity : this.#failsAt + this.#patience
    this.deadline = this.#failsAt
    return true
  }

  /** PATH_CHALLENGE: keeps what to answer with, unless too much waits. */
  receiveChallenge(buffer: Uint8Array, start: number): void {
    if (this.responses.length < mostResponses) this.responses.push(new Uint8Array(buffer.subarray(start, start + 8)))
  }

  /** The deadline has come: another challenge goes, or the path has failed (RFC 9000 §8.2.4), which is `false`. */
  expire(now: Instant): boolean {
    if (now >= this.#failsAt) {
      this.#challenges.length = 0
      this.challengeWaits = false
      this.#failsAt = Infinity
      this.deadline = Infinity
      return false
    }
    this.challengeWaits = true
    // One that cannot leave now waits for the end.
    this.deadline = this.#failsAt
    return true
  }
}
