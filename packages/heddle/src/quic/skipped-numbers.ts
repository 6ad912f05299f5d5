/** The first number is left out among so many. */
const firstPeriod = 64
/** Later they are rarer, up to this. */
const lastPeriod = 4_096
/** Numbers left out that are remembered: an acknowledgement of an older one proves nothing new. */
const remembered = 4

/**
 * Packet numbers that are never sent, at places nobody can foresee: who acknowledges one acknowledges
 * what it did not receive, to be sent more than the path can take (RFC 9000 §21.4).
 */
export class SkippedNumbers {
  readonly #random: (byteCount: number) => Uint8Array
  readonly #skipped: number[]
  #period: number
  #skipAt: number

  constructor(random: (byteCount: number) => Uint8Array) {
    this.#random = random
    this.#skipped = []
    this.#period = firstPeriod
    // The first packets of a connection carry the handshake's end and settings; leave those alone.
    this.#skipAt = -1
  }

  /** The number to send next, where `packetNumber` would follow. */
  next(packetNumber: number): number {
    if (this.#skipAt < 0) this.#skipAt = this.#choose(packetNumber)
    if (packetNumber < this.#skipAt) return packetNumber
    this.#skipped.push(packetNumber)
    if (this.#skipped.length > remembered) this.#skipped.shift()
    this.#period = Math.min(2 * this.#period, lastPeriod)
    this.#skipAt = this.#choose(packetNumber + 1)
    return packetNumber + 1
  }

  /** One of them is in `ranges`: pairs `[smallest, largest]`, the newest first. */
  isAcknowledged(ranges: Float64Array, count: number): boolean {
    const skipped = this.#skipped
    let index = 0
    for (let which = skipped.length - 1; which >= 0; which--) {
      const packetNumber = skipped[which] as number
      while (index < count && (ranges[2 * index] as number) > packetNumber) index++
      if (index === count) return false
      if ((ranges[2 * index + 1] as number) >= packetNumber) return true
    }
    return false
  }

  #choose(from: number): number {
    const bytes = this.#random(2)
    const value = (bytes[0] as number) * 256 + (bytes[1] as number)
    return from + 1 + Math.floor((this.#period * value) / 65_536)
  }
}
