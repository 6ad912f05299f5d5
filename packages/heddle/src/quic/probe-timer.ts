import type { Instant } from '../http/index.ts'
import type { Rtt } from './rtt.ts'
import type { SentSpace } from './sent-space.ts'
import { Space } from './space.ts'

/** The back-off doubles no more often: 2^16 probe timeouts are hours. */
const mostBackoff = 16

/** When packets count as lost, or else probes are due: the one timer of loss detection (RFC 9002 §6.2, §A.8). */
export class ProbeTimer {
  /** Meaningful after `arm`. */
  deadline: Instant
  /** Where the probes are due. */
  space: Space
  /** What `deadline` depends on has changed since `arm`. */
  isStale: boolean
  /** Timeouts in a row. */
  count: number
  /** The peer's max_ack_delay (ms). */
  maxAckDelay: number
  handshakeConfirmed: boolean
  /** The peer knows our address, so that it may send: always of a server. */
  isAddressValidated: boolean
  /** There are keys for Handshake packets: a server has them before it can have anything to wait for. */
  hasHandshakeKeys: boolean
  /** A server may send nothing more before the client does. */
  isAmplificationLimited: boolean
  /** When probes were asked for last. */
  expiredAt: Instant
  /** What the timeout of a client that has nothing in flight counts from. */
  idleSince: Instant

  constructor(isServer: boolean, now: Instant) {
    this.deadline = Infinity
    this.space = Space.initial
    this.isStale = true
    this.count = 0
    this.maxAckDelay = 25
    this.handshakeConfirmed = false
    this.isAddressValidated = isServer
    this.hasHandshakeKeys = isServer
    this.isAmplificationLimited = false
    this.expiredAt = -Infinity
    this.idleSince = now
  }

  /** Finds the deadline. */
  arm([initial, handshake, application]: readonly [SentSpace, SentSpace, SentSpace], rtt: Rtt): void {
    this.isStale = false
    this.deadline = Math.min(initial.lossTime, handshake.lossTime, application.lossTime)
    // RFC 9002 §6.2.2.1: at the limit a timeout could do nothing.
    if (this.deadline !== Infinity || this.isAmplificationLimited) return

    const backoff = 2 ** Math.min(this.count, mostBackoff)
    const timeout = rtt.probeTimeout * backoff
    if (initial.elicitingCount > 0) this.#consider(Space.initial, initial.lastElicitingAt + timeout)
    if (handshake.elicitingCount > 0) this.#consider(Space.handshake, handshake.lastElicitingAt + timeout)
    // RFC 9002 §6.2.1: not before the handshake is confirmed.
    if (application.elicitingCount > 0 && this.handshakeConfirmed) {
      this.#consider(Space.application, application.lastElicitingAt + timeout + this.maxAckDelay * backoff)
    }
    if (this.deadline !== Infinity) {
      // Probes that could not leave are not asked for again at the same instant.
      if (this.deadline <= this.expiredAt) this.deadline = this.expiredAt + timeout
      return
    }
    // RFC 9002 §6.2.2.1: the server may wait for octets of a client that has nothing to say. And 1-RTT packets that
    // the peer cannot read yet may fill the window, with what would let it read them lost: no answer ever comes then.
    const mayWaitForever = !this.isAddressValidated || (application.elicitingCount > 0 && !this.handshakeConfirmed)
    if (mayWaitForever) this.#consider(this.hasHandshakeKeys ? Space.handshake : Space.initial, this.idleSince + timeout)
  }

  #consider(space: Space, deadline: Instant): void {
    if (deadline >= this.deadline) return
    this.deadline = deadline
    this.space = space
  }
}
