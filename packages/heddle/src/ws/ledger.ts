/** An entry that is neither a message nor a Pong. */
const other = -1
const pong = -2

/**
 * What was given to the exchange and has not left, in order: how many octets each thing is on the wire, and
 * what it counts for once all of them have left. A ring of numbers, so that an entry costs nothing.
 */
export class Ledger {
  /** Messages and parts that have left, ever. */
  messages: number
  /** Octets of payload of messages that were entered and have not left. */
  payload: number
  /** Messages that have not left. */
  waitingMessages: number
  /** Pongs that have not left. */
  waitingPongs: number
  /** Two numbers an entry: octets on the wire, and payload of a message, or `other`, or `pong`. */
  #ring: Float64Array | undefined
  #first: number
  #count: number

  constructor() {
    this.messages = 0
    this.payload = 0
    this.waitingMessages = 0
    this.waitingPongs = 0
    this.#ring = undefined
    this.#first = 0
    this.#count = 0
  }

  enterMessage(wire: number, payload: number): void {
    this.waitingMessages++
    this.payload += payload
    this.#enter(wire, payload)
  }

  enterPong(wire: number): void {
    this.waitingPongs++
    this.#enter(wire, pong)
  }

  enterOther(wire: number): void {
    this.#enter(wire, other)
  }

  #enter(wire: number, note: number): void {
    let ring = this.#ring
    if (ring === undefined || this.#count * 2 === ring.length) ring = this.#grow(ring)
    const at = ((this.#first + this.#count) * 2) & (ring.length - 1)
    ring[at] = wire
    ring[at + 1] = note
    this.#count++
  }

  #grow(ring: Float64Array | undefined): Float64Array {
    const grown = new Float64Array(ring === undefined ? 16 : ring.length * 2)
    if (ring !== undefined) {
      grown.set(ring.subarray(this.#first * 2))
      grown.set(ring.subarray(0, this.#first * 2), ring.length - this.#first * 2)
    }
    this.#first = 0
    this.#ring = grown
    return grown
  }

  /** `byteCount` more octets have left. */
  settle(byteCount: number): void {
    const ring = this.#ring
    if (ring === undefined) return
    let left = byteCount
    while (left > 0 && this.#count > 0) {
      const at = this.#first * 2
      const wire = ring[at] as number
      if (left < wire) {
        ring[at] = wire - left
        return
      }
      left -= wire
      const note = ring[at + 1] as number
      this.#first = (this.#first + 1) & (ring.length / 2 - 1)
      this.#count--
      if (note >= 0) {
        this.messages++
        this.waitingMessages--
        this.payload -= note
      } else if (note === pong) this.waitingPongs--
    }
  }
}
