import type { Exchange } from 'heddle/http'
import type { Plan } from './plan.ts'

/** What the windows of one client's responses may grow by, all together. */
const budget = 4_194_304

/**
 * By how much the windows of what upstreams send to one client may grow beyond what every stream has from the
 * start. It all waits here when the client stops to read, so there is one budget for a client's connection: a
 * quarter of what is left for each response. One or two get the window a long path needs, a hundred hardly any.
 */
export class WindowGrowth {
  private left: number

  constructor() {
    this.left = budget
  }

  /** The share of one more response, bytes. */
  take(): number {
    const share = this.left >> 2
    this.left -= share
    return share
  }

  /** A response with such a share is over. */
  give(share: number): void {
    this.left += share
  }
}

/** Limits what `upstream` may send before the client's connection has taken it. `growth`: its share of the client's budget. */
export function limitResponse(upstream: Exchange, { route, cluster }: Plan, growth: number): void {
  const { streamWindow } = route.config
  const { http2, http3 } = cluster.config
  if (streamWindow !== undefined) upstream.limitWindow?.(streamWindow)
  else upstream.limitWindowGrowth?.((upstream.protocol === 'h3' ? http3 : http2).streamWindow + growth)
}
