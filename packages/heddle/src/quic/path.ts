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
/** PATH_CHALLENGE frames that may be under way on a path, each sent a probe timeout after the one before. */
const mostChallenges = 3
/** PATH_RESPONSE frames that wait to be sent: what comes above is not answered. */
export const mostResponses = 32

/**
 * One network path of a connection: how much may go to an address that is not validated, and the
 * PATH_CHALLENGE that validates it (RFC 9000 §8).
 */
export class Path {
  readonly route: Route
  /** The peer has shown that it receives at the address. */
  validated: boolean
  /** Octets of datagrams. */
  bytesReceived: number
  bytesSent: number
  /** The challenges that were sent and not answered. */
  readonly #challenges: Uint8Array[]
  /** A PATH_CHALLENGE must leave. */
  challengeWaits: boolean
  /** When the next challenge goes, or the path is given up; Infinity: no validation is going on. */
  deadline: Instant
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
    this.responses = []
  }

  /** Octets that a datagram to this path may have now; Infinity once it is validated. */
  get allowance(): number {
    return this.validated ? Infinity : Math.max(0, this.bytesReceived * amplification - this.bytesSent)
  }

  /** The address is to be validated: a challenge leaves as soon as it may. */
  startValidation(): void {
    if (this.validated || this.challengeWaits || this.#challenges.length > 0) return
    this.challengeWaits = true
  }

  /** A PATH_CHALLENGE with these 8 octets leaves. */
  onChallengeSent(challenge: Uint8Array, probeTimeout: number, now: Instant): void {
    this.#challenges.push(challenge)
    this.challengeWaits = false
    this.deadline = now + probeTimeout
  }

  /** PATH_RESPONSE. True if it answers a challenge of this path (RFC 9000 §8.2.3). */
  receiveResponse(buffer: Uint8Array, start: number): boolean {
    if (!this.#challenges.some((each) => each.every((octet, i) => octet === buffer[start + i]))) return false
    this.validated = true
    this.#challenges.length = 0
    this.challengeWaits = false
    this.deadline = Infinity
    return true
  }

  /** PATH_CHALLENGE: keeps what to answer with, unless too much waits. */
  receiveChallenge(buffer: Uint8Array, start: number): void {
    if (this.responses.length < mostResponses) this.responses.push(new Uint8Array(buffer.subarray(start, start + 8)))
  }

  /** The deadline has come: another challenge goes, or the path has failed (RFC 9000 §8.2.4), which is `false`. */
  expire(): boolean {
    this.deadline = Infinity
    if (this.#challenges.length >= mostChallenges) {
      this.#challenges.length = 0
      return false
    }
    this.challengeWaits = true
    return true
  }
}
