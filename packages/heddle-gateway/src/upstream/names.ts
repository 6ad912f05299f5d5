import { lookup as systemLookup } from 'node:dns'
import { isIP } from 'node:net'
import { Alarm, type Clock } from 'heddle/io'

/** Resolves a host name to all its addresses, in the resolver's order. */
export type NameLookup = (host: string, done: (error: Error | undefined, addresses: readonly string[]) => void) => void

/** The system's resolver: /etc/hosts first, then DNS. */
export const lookupAll: NameLookup = (host, done) => {
  systemLookup(host, { all: true, order: 'verbatim' }, (error, found) => {
    if (error) done(error, [])
    else
      done(
        undefined,
        found.map(({ address }) => address),
      )
  })
}

/**
 * Keeps the addresses of one host name fresh: asks at once, and again `interval` ms after each
 * answer. A failed look-up changes nothing, so a cluster outlives its name server.
 */
export class NameWatch {
  readonly host: string
  /** The last look-up's error, or undefined if it went well. */
  error: Error | undefined
  readonly #clock: Clock
  readonly #interval: number
  readonly #lookup: NameLookup
  readonly #onAddresses: (addresses: readonly string[]) => void
  readonly #alarm: Alarm
  #closed = false

  /** `onAddresses` is called with every answer that has addresses, changed or not. */
  constructor(host: string, clock: Clock, interval: number, lookup: NameLookup, onAddresses: (addresses: readonly string[]) => void) {
    this.host = host
    this.error = undefined
    this.#clock = clock
    this.#interval = interval
    this.#lookup = lookup
    this.#onAddresses = onAddresses
    this.#alarm = new Alarm(() => this.#resolve())
    this.#resolve()
  }

  close(): void {
    this.#closed = true
    this.#clock.clear(this.#alarm)
  }

  #resolve(): void {
    this.#lookup(this.host, (error, addresses) => {
      if (this.#closed) return
      this.#clock.set(this.#alarm, this.#clock.now() + this.#interval)
      this.error = error
      if (error !== undefined) return
      // What is no address would end up in a dial.
      const usable = addresses.filter((address) => isIP(address) !== 0)
      if (usable.length > 0) this.#onAddresses(usable)
    })
  }
}

/**
 * The machines behind the addresses of one name. One address, or one of each family, is one machine,
 * and the dialler's Happy Eyeballs finds out which way leads there; more addresses are a machine each.
 */
export function machines(addresses: readonly string[]): string[][] {
  const distinct = [...new Set(addresses)]
  const ipv4 = distinct.filter((address) => isIP(address) === 4).length
  if (ipv4 <= 1 && distinct.length - ipv4 <= 1) return [distinct]
  return distinct.map((address) => [address])
}
