import type { LookupAddress } from 'node:dns'
import { isIP, isIPv4 } from 'node:net'
import type { Address } from '../http/index.ts'

/** An IP address to connect to. */
export interface IpAddress {
  readonly address: string
  readonly family: 4 | 6
}

/** `host` as an address if it is one (square brackets allowed), else undefined. */
export function literalAddress(host: string): IpAddress | undefined {
  const address = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  const family = isIP(address)
  return family === 0 ? undefined : { address, family: family as 4 | 6 }
}

/** What a lookup function called back with, in any form it may have; entries that are no address are left out. */
export function lookupResult(result: string | readonly LookupAddress[] | undefined): IpAddress[] {
  const entries = typeof result === 'string' ? [{ address: result }] : (result ?? [])
  const found = new Map<string, IpAddress>()
  for (const { address } of entries) {
    const family = isIP(address)
    if (family !== 0) found.set(address, { address, family: family as 4 | 6 })
  }
  return [...found.values()]
}

/** RFC 8305 §4: the families by turns, beginning with the first one's; the order within a family stays. */
export function interleave(addresses: readonly IpAddress[]): IpAddress[] {
  const first = addresses[0]
  if (first === undefined) return []
  const preferred = addresses.filter(({ family }) => family === first.family)
  const others = addresses.filter(({ family }) => family !== first.family)
  const order: IpAddress[] = []
  for (let i = 0; i < preferred.length || i < others.length; i++) {
    const one = preferred[i]
    const other = others[i]
    if (one !== undefined) order.push(one)
    if (other !== undefined) order.push(other)
  }
  return order
}

/** `host:port` for messages and for CONNECT (RFC 9110 §9.3.6). */
export function hostAndPort(host: string, port: number): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]:${port}` : `${host}:${port}`
}

/** The form an IPv4 address has on a socket of both families (RFC 4291 §2.5.5.2). */
const mapped = '::ffff:'

/** One end of a TCP socket as node:net tells it; an IPv4 peer is one, whatever socket it came by: `127.0.0.1`, not `::ffff:127.0.0.1`. */
export function ipEnd(address = '', port = 0, family: string | undefined): Address {
  if (family === 'IPv6') {
    const plain = address.startsWith(mapped) ? address.slice(mapped.length) : ''
    if (!isIPv4(plain)) return { address, port, family: 'IPv6' }
    return { address: plain, port, family: 'IPv4' }
  }
  return { address, port, family: 'IPv4' }
}

/** One end of a Unix socket; the end that connected has no path. */
export function unixEnd(path: string): Address {
  return { address: path, port: 0, family: 'unix' }
}
