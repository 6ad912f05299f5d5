import type { Instant } from '../http/index.ts'

/** RFC 9000 §14: what every path of QUIC carries, octets of UDP payload. */
export const smallestDatagram = 1200

/** A size is given up after so many probes were lost (RFC 8899 §5.1.2). */
const mostLosses = 3
/** So many larger datagrams lost in a row, and none acknowledged: the path became narrower (RFC 8899 §4.3). */
const blackHoleLosses = 6
/** The search ends when less than this is left to gain, octets. */
const resolution = 16

/**
 * How large the datagrams of a path may be (RFC 9000 §14.3, RFC 8899). It begins with 1,200 octets and
 * tries larger ones with packets of PING and PADDING, whose loss says nothing about congestion: first the
 * largest, then what is halfway to a size that did not arrive.
 */
export class PathMtu {
  /** Octets of UDP payload that a datagram may have. */
  size: number
  /** What this end and the peer allow at most. */
  #most: number
  /** What the sizes stay below: one more than the most allowed, or a size that did not arrive. */
  #tooLarge: number
  /** What is tried next, or being tried. */
  #target: number
  #underWay: boolean
  #losses: number
  #lostInRow: number
  /** When the first of them was known to be lost, and whether one of them was sent later. */
  #suspectedAt: Instant
  #isConfirmed: boolean

  /** `most`: octets of UDP payload that are tried at most; 1,200 or less: nothing is tried. */
  constructor(most: number) {
    this.size = smallestDatagram
    this.#most = Math.max(most, smallestDatagram)
    this.#tooLarge = Math.max(most, smallestDatagram) + 1
    this.#target = this.#tooLarge - 1
    this.#underWay = false
    this.#losses = 0
    this.#lostInRow = 0
    this.#suspectedAt = -Infinity
    this.#isConfirmed = false
  }

  /** The peer's transport parameter max_udp_payload_size, at least 1,200. */
  setPeer(maxUdpPayloadSize: number): void {
    this.#most = Math.min(this.#most, maxUdpPayloadSize)
    this.#tooLarge = Math.min(this.#tooLarge, maxUdpPayloadSize + 1)
    this.#target = Math.min(this.#target, this.#tooLarge - 1)
    this.size = Math.min(this.size, this.#tooLarge - 1)
  }

  /** Another path, of which nothing is known (RFC 9000 §14.3). */
  restart(): void {
    this.size = Math.min(smallestDatagram, this.#most)
    this.#tooLarge = this.#most + 1
    this.#target = this.#most
    this.#underWay = false
    this.#losses = 0
    this.#lostInRow = 0
    this.#isConfirmed = false
  }

  /** The size that a probe should have now; 0: none is to be sent. */
  get probeSize(): number {
    return this.#underWay || this.#target - this.size < resolution ? 0 : this.#target
  }

  /** A probe of `probeSize` octets leaves. */
  onProbeSent(): void {
    this.#underWay = true
  }

  /** A probe of `size` octets arrived. */
  onProbeAcked(size: number): void {
    this.#underWay = false
    this.#losses = 0
    this.#lostInRow = 0
    if (size >= this.#tooLarge || size <= this.size) return
    this.size = size
    this.#aim()
  }

  /** A probe of `size` octets was lost. */
  onProbeLost(size: number): void {
    this.#underWay = false
    if (++this.#losses < mostLosses) return
    this.#losses = 0
    this.#tooLarge = Math.min(this.#tooLarge, size)
    this.#aim()
  }

  /** An ordinary datagram of `size` octets arrived. */
  onAcked(size: number): void {
    if (size <= smallestDatagram) return
    this.#lostInRow = 0
    this.#isConfirmed = false
  }

  /** An ordinary datagram of `size` octets, sent at `sentAt`, was lost. */
  onLost(size: number, sentAt: Instant, now: Instant): void {
    if (size <= smallestDatagram || size > this.size) return
    if (this.#lostInRow++ === 0) this.#suspectedAt = now
    // A queue that ran over takes many at once, but not those that are sent when that is known.
    if (sentAt > this.#suspectedAt) this.#isConfirmed = true
  }

  /** All that one event told of was told: losses count only if nothing as large arrived with them. */
  settle(): void {
    if (this.#lostInRow < blackHoleLosses || !this.#isConfirmed) return
    this.#isConfirmed = false
    this.#lostInRow = 0
    this.#losses = 0
    this.#tooLarge = this.size
    this.size = smallestDatagram
    this.#aim()
  }

  #aim(): void {
    const between = this.size + ((this.#tooLarge - this.size) >> 1)
    this.#target = this.size === this.#tooLarge - 1 ? this.size : between
  }
}
