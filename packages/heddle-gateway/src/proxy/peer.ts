import { isIPv4, isIPv6 } from 'node:net'
import { isToken, type ConnectionInfo } from 'heddle/http'
import type { Plan, Refusal } from './plan.ts'
import { RecentHeads } from './recent-heads.ts'
import { plainAddress, type TrustList } from './trust.ts'
import { WindowGrowth } from './window-growth.ts'

/** What the gateway says of one client connection to upstreams. One object per connection. */
export class Peer {
  /** Its own word about clients before it is believed. */
  readonly trusted: boolean
  /** For `X-Forwarded-For`: an IP address, or `unknown`. */
  readonly address: string
  /** For `for=` of `Forwarded`, quoted where that is needed. */
  readonly node: string
  readonly scheme: 'http' | 'https'
  /** What its last heads came to. */
  readonly plans: RecentHeads<Plan | Refusal>
  /** Of the responses it waits for. */
  readonly windowGrowth: WindowGrowth

  constructor(connection: ConnectionInfo, trust: TrustList) {
    const { remote, tls } = connection
    const address = plainAddress(remote.address)
    const known = isIPv4(address) || isIPv6(address)
    this.trusted = known && trust.includes(address)
    this.address = known ? address : 'unknown'
    // RFC 7239 §6: an IPv6 address stands in brackets, and so in quotes.
    this.node = isIPv6(address) ? `"[${address}]"` : this.address
    this.scheme = tls === undefined ? 'http' : 'https'
    this.plans = new RecentHeads()
    this.windowGrowth = new WindowGrowth()
  }
}

/** A value of a `Forwarded` parameter: a token as it is, everything else quoted (RFC 7239 §4, RFC 9110 §5.6.4). */
export function forwardedValue(text: string): string {
  return isToken(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`
}
