import { checkOptionNames, type Instant, type OptionNames } from '../http/index.ts'
import type { Random } from './random.ts'

/** How a {@link DatagramLink} treats datagrams, one way. */
export interface DatagramLinkOptions {
  /** ms. Default 10. */
  readonly delay?: number
  /** Up to this much more, ms, chosen anew for every datagram; so they overtake each other. Default 0. */
  readonly jitter?: number
  /** Of all datagrams, 0 to 1, are lost. Default 0. */
  readonly loss?: number
  /** Of all datagrams, 0 to 1, arrive twice. Default 0. */
  readonly duplicates?: number
  /** Octets of UDP payload; what is longer is lost. Default 1,500. */
  readonly mtu?: number
  /** Octets per ms. Default Infinity. */
  readonly bandwidth?: number
  /** Octets that wait for the bandwidth; what comes above is lost. Default 128 KiB. */
  readonly queue?: number
  /** Of all datagrams with ECT, 0 to 1, arrive with CE. Default 0. */
  readonly congested?: number
}

const optionNames: OptionNames<DatagramLinkOptions> = {
  delay: true,
  jitter: true,
  loss: true,
  duplicates: true,
  mtu: true,
  bandwidth: true,
  queue: true,
  congested: true,
}

interface Flight {
  readonly at: Instant
  readonly bytes: Uint8Array
  readonly ecn: number
}

/** One direction of a network that loses, delays, doubles and reorders datagrams as a seed says. */
export class DatagramLink {
  readonly #random: Random
  /** May be changed at any time. */
  options: Required<DatagramLinkOptions>
  readonly #flights: Flight[]
  #sent: number
  #idleAt: Instant
  /** Datagrams that were lost, for whatever reason. */
  lost: number
  /** Datagrams that arrived. */
  arrived: number
  /** Decides whether a datagram is lost, in place of chance: true loses it. */
  drop: ((bytes: Uint8Array, number: number) => boolean) | undefined

  constructor(random: Random, options: DatagramLinkOptions = {}) {
    checkOptionNames('DatagramLink', '', options, optionNames)
    this.#random = random
    this.options = {
      delay: 10,
      jitter: 0,
      loss: 0,
      duplicates: 0,
      mtu: 1500,
      bandwidth: Infinity,
      queue: 131_072,
      congested: 0,
      ...options,
    }
    this.#flights = []
    this.#sent = 0
    this.#idleAt = 0
    this.lost = 0
    this.arrived = 0
    this.drop = undefined
  }

  /** How many datagrams are under way. */
  get underWay(): number {
    return this.#flights.length
  }

  /** When the next one arrives; Infinity: none is under way. */
  get deadline(): Instant {
    return this.#flights[0]?.at ?? Infinity
  }

  /** A datagram leaves; a copy is made. `ecn`: the two bits of the IP header. */
  send(buffer: Uint8Array, start: number, limit: number, ecn: number, now: Instant): void {
    const { loss, mtu, duplicates, bandwidth, queue, congested } = this.options
    const size = limit - start
    const number = this.#sent++
    const waiting = Math.max(0, this.#idleAt - now) * bandwidth
    const isLost = this.drop === undefined ? this.#random.fraction() < loss : this.drop(buffer.subarray(start, limit), number)
    if (isLost || size > mtu || waiting > queue) {
      this.lost++
      return
    }
    this.#idleAt = Math.max(this.#idleAt, now) + size / bandwidth
    const bytes = new Uint8Array(buffer.subarray(start, limit))
    const mark = ecn !== 0 && this.#random.fraction() < congested ? 3 : ecn
    this.#add(bytes, mark)
    if (this.#random.fraction() < duplicates) this.#add(new Uint8Array(bytes), mark)
  }

  /** Takes the next datagram that has arrived by `now`. */
  take(now: Instant): { readonly bytes: Uint8Array; readonly ecn: number } | undefined {
    const [first] = this.#flights
    if (first === undefined || first.at > now) return undefined
    this.#flights.shift()
    this.arrived++
    return first
  }

  #add(bytes: Uint8Array, ecn: number): void {
    const { delay, jitter } = this.options
    const at = this.#idleAt + delay + (jitter > 0 ? this.#random.fraction() * jitter : 0)
    const flight: Flight = { at, bytes, ecn }
    let index = this.#flights.length
    while (index > 0 && (this.#flights[index - 1] as Flight).at > at) index--
    this.#flights.splice(index, 0, flight)
  }
}
