import { isIPv4, isIPv6 } from 'node:net'

/** One IP address or CIDR block, as the leading bits of an address. */
interface Block {
  readonly octets: readonly number[]
  readonly bits: number
}

/** Peers whose word about the client before them is believed. */
export class TrustList {
  readonly #blocks: readonly Block[]

  /** `entries`: IP addresses and CIDR blocks. Throws TypeError for anything else. */
  constructor(entries: readonly string[]) {
    this.#blocks = entries.map(parseBlock)
  }

  /** False for what is no IP address, such as the path of a Unix socket. */
  includes(address: string): boolean {
    if (this.#blocks.length === 0) return false
    const octets = addressOctets(plainAddress(address))
    return octets !== undefined && this.#blocks.some((block) => covers(block, octets))
  }
}

/** Without zone, and without the IPv6 form an IPv4 peer has on a dual-stack socket (`::ffff:192.0.2.1`). */
export function plainAddress(address: string): string {
  const zone = address.indexOf('%')
  const bare = zone < 0 ? address : address.slice(0, zone)
  return bare.startsWith('::ffff:') && isIPv4(bare.slice(7)) ? bare.slice(7) : bare
}

function parseBlock(entry: string): Block {
  const slash = entry.indexOf('/')
  const address = plainAddress(slash < 0 ? entry : entry.slice(0, slash))
  const octets = addressOctets(address)
  const most = (octets?.length ?? 0) * 8
  const length = slash < 0 ? String(most) : entry.slice(slash + 1)
  let bits = /^\d{1,3}$/.test(length) ? Number(length) : Infinity
  // ::ffff:192.0.2.0/120 is 192.0.2.0/24.
  if (slash > 0 && most === 32 && entry.startsWith('::')) bits -= 96
  if (octets === undefined || bits > most || bits < 0) throw new TypeError(`not an IP address or CIDR block: ${entry}`)
  return { octets, bits }
}

function covers(block: Block, octets: readonly number[]): boolean {
  if (block.octets.length !== octets.length) return false
  const whole = block.bits >> 3
  for (let i = 0; i < whole; i++) if (block.octets[i] !== octets[i]) return false
  const mask = (0xff00 >> (block.bits & 7)) & 0xff
  return mask === 0 || ((block.octets[whole] as number) & mask) === ((octets[whole] as number) & mask)
}

/** The 4 or 16 octets of an IP address, or undefined. */
function addressOctets(address: string): number[] | undefined {
  if (isIPv4(address)) return address.split('.').map(Number)
  if (!isIPv6(address)) return undefined
  const [before = '', after] = address.split('::')
  const left = groupOctets(before)
  const right = after === undefined ? [] : groupOctets(after)
  return [...left, ...Array.from({ length: 16 - left.length - right.length }, () => 0), ...right]
}

function groupOctets(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number)
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}
