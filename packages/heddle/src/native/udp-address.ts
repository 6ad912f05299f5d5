import { isIPv4, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { UdpAddress } from './types.ts'

/** An address in numbers: an IPv4 address is in `a`, an IPv6 address in `a` to `d`, most significant first. */
export class Address implements UdpAddress {
  readonly family: 4 | 6
  readonly port: number
  readonly a: number
  readonly b: number
  readonly c: number
  readonly d: number
  /** The number of the network interface, of a link-local address. */
  readonly scope: number
  #host: string | undefined
  #key: string | undefined

  constructor(family: 4 | 6, port: number, a: number, b: number, c: number, d: number, scope: number) {
    this.family = family
    this.port = port
    this.a = a
    this.b = b
    this.c = c
    this.d = d
    this.scope = scope
    this.#host = undefined
    this.#key = undefined
  }

  get host(): string {
    this.#host ??= this.family === 4 ? ipv4Text(this.a) : ipv6Text(this)
    return this.#host
  }

  get key(): string {
    this.#key ??= this.family === 4 ? `${this.host}:${this.port}` : `[${this.host}]:${this.port}`
    return this.#key
  }

  /** The host as a socket of IPv6 takes it. */
  get mappedHost(): string {
    return this.family === 4 ? `::ffff:${this.host}` : this.host
  }

  equals(other: UdpAddress): boolean {
    return (
      this === other || (other instanceof Address && this.is(other.family, other.port, other.a, other.b, other.c, other.d, other.scope))
    )
  }

  is(family: 4 | 6, port: number, a: number, b: number, c: number, d: number, scope: number): boolean {
    return (
      this.a === a && this.d === d && this.port === port && this.b === b && this.c === c && this.family === family && this.scope === scope
    )
  }
}

const places = 1024

/**
 * Addresses seen lately, one object each. Peers choose what is put here (source addresses may be forged), so it has
 * a fixed number of places, and a newcomer takes its place from whoever has it.
 */
export class AddressTable {
  readonly #places: (Address | undefined)[]
  /** What `parse` was asked last. */
  #text: string
  #parsed: Address

  constructor() {
    this.#places = Array.from<Address | undefined>({ length: places }).fill(undefined)
    this.#text = '0.0.0.0'
    this.#parsed = new Address(4, 0, 0, 0, 0, 0, 0)
  }

  of(family: 4 | 6, port: number, a: number, b: number, c: number, d: number, scope: number): Address {
    let hash = Math.imul(a ^ port, 0x9e37_79b1) ^ Math.imul(b ^ (d >>> 16), 0x85eb_ca6b) ^ Math.imul(c ^ d ^ scope, 0xc2b2_ae35)
    hash ^= hash >>> 15
    const place = hash & (places - 1)
    const known = this.#places[place]
    if (known !== undefined && known.is(family, port, a, b, c, d, scope)) return known
    const address = new Address(family, port, a, b, c, d, scope)
    this.#places[place] = address
    return address
  }

  /** From text: what `Udp.address` promises. */
  parse(host: string, port: number): Address {
    if (host === this.#text && port === this.#parsed.port) return this.#parsed
    const address = this.#parse(host, port)
    // The number of a zone may change.
    if (address.scope === 0) {
      this.#text = host
      this.#parsed = address
    }
    return address
  }

  #parse(host: string, port: number): Address {
    if (!Number.isInteger(port) || port < 0 || port > 0xffff) throw new RangeError(`${port} is not a port`)
    if (isIPv4(host)) return this.of(4, port, ipv4Word(host), 0, 0, 0, 0)
    if (!isIPv6(host)) throw new RangeError(`'${host}' is not an IP address`)
    const percent = host.indexOf('%')
    const groups = ipv6Groups(percent < 0 ? host : host.slice(0, percent))
    const word = (at: number): number => ((groups[at]! << 16) | groups[at + 1]!) >>> 0
    const scope = percent < 0 ? 0 : scopeOf(host.slice(percent + 1))
    return this.ipv6(port, word(0), word(2), word(4), word(6), scope)
  }

  /** An IPv6 address; one that is a mapped IPv4 address (RFC 4291 §2.5.5.2) becomes that. */
  ipv6(port: number, a: number, b: number, c: number, d: number, scope: number): Address {
    if (a === 0 && b === 0 && c === 0xffff) return this.of(4, port, d, 0, 0, 0, 0)
    return this.of(6, port, a, b, c, d, scope)
  }
}

function ipv4Word(text: string): number {
  const [a, b, c, d] = text.split('.').map(Number) as [number, number, number, number]
  return ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
}

function ipv4Text(word: number): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`
}

/** The eight groups of a well-formed IPv6 address. */
function ipv6Groups(text: string): number[] {
  const dotted = text.lastIndexOf(':') + 1
  if (text.includes('.')) {
    const word = ipv4Word(text.slice(dotted))
    text = `${text.slice(0, dotted)}${(word >>> 16).toString(16)}:${(word & 0xffff).toString(16)}`
  }
  const [head = '', tail] = text.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const between = Array.from({ length: 8 - first.length - last.length }, () => '0')
  return [...first, ...between, ...last].map((group) => Number.parseInt(group, 16))
}

/** RFC 5952 §4: lower case, no leading zeros, the first of the longest runs of two zero groups or more is `::`. */
function ipv6Text(address: Address): string {
  const groups: number[] = []
  for (const word of [address.a, address.b, address.c, address.d]) groups.push(word >>> 16, word & 0xffff)
  let longestAt = -1
  let longest = 1
  for (let at = 0; at < 8; at++) {
    let limit = at
    while (limit < 8 && groups[limit] === 0) limit++
    if (limit - at > longest) {
      longestAt = at
      longest = limit - at
    }
    at = Math.max(at, limit - 1)
  }
  const words = groups.map((group) => group.toString(16))
  const text = longestAt < 0 ? words.join(':') : `${words.slice(0, longestAt).join(':')}::${words.slice(longestAt + longest).join(':')}`
  return address.scope === 0 ? text : `${text}%${zoneOf(address.scope)}`
}

/** Zones are names where people see them, and numbers where the system does. */
function scopeOf(zone: string): number {
  if (/^\d{1,9}$/.test(zone)) return Number(zone)
  for (const { scopeid } of networkInterfaces()[zone] ?? []) if (scopeid !== undefined && scopeid !== 0) return scopeid
  return 0
}

function zoneOf(scope: number): string {
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    if (addresses?.some(({ scopeid }) => scopeid === scope)) return name
  }
  return String(scope)
}
