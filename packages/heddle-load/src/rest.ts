import type { HeddleError } from 'heddle/http'

/** How long a slot rests after its `count`+1st failure in a row, ms: 10, 20, 40, … 1,000. */
export function restTime(count: number): number {
  return Math.min(10 * 2 ** Math.min(count, 10), 1_000)
}

const connectCodes: ReadonlySet<string> = new Set(['CONNECT_FAILED', 'CONNECT_TIMEOUT', 'DNS_FAILED', 'TLS_FAILED', 'PROXY_FAILED'])

/** True if the way to the server failed, not the request. */
export function isConnectFailure({ code }: HeddleError): boolean {
  return connectCodes.has(code)
}
