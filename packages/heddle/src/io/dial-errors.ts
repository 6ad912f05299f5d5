import { NetworkError, type HeddleError } from '../http/index.ts'
import { codeOf, describe } from './errors.ts'
import type { AttemptFailure } from './happy-eyeballs.ts'

/** The name `host` leads nowhere; `proxy`: it is this proxy's. */
export function dnsError(host: string, cause: Error, proxy: string | undefined): HeddleError {
  if (proxy !== undefined) return proxyError(proxy, `its name could not be resolved: ${describe(cause)}`, cause)
  return new NetworkError('DNS_FAILED', `the name ${host} could not be resolved: ${describe(cause)}`, unprocessed(cause))
}

/** None of the addresses of `name` could be reached. `kind`: what of them, such as `QUIC connection`. */
export function connectError(
  name: string,
  failures: readonly AttemptFailure[],
  proxy: string | undefined,
  kind = 'connection',
): HeddleError {
  const errors = failures.map(({ error }) => error)
  const texts = [...new Set(errors.map((error) => attemptText(error, kind)))].join('; ')
  const cause = errors.length === 1 ? errors[0] : new AggregateError(errors, `${errors.length} addresses were tried`)
  if (proxy !== undefined) return proxyError(proxy, `no connection to it: ${texts}`, cause)
  return new NetworkError('CONNECT_FAILED', `no ${kind} to ${name}: ${texts}`, unprocessed(cause))
}

/** UDP has no connections, so what a call of the system says of one that nobody takes needs a word more. */
function attemptText(error: Error, kind: string): string {
  const text = describe(error)
  return kind === 'QUIC connection' && codeOf(error) === 'ECONNREFUSED' ? `nobody listens at that UDP port (${text})` : text
}

/** What failed is the way to the proxy, not to the origin: whoever reads it shall not look at the wrong end. */
export function proxyError(proxy: string, what: string, cause: unknown): HeddleError {
  return new NetworkError('PROXY_FAILED', `the proxy ${proxy} cannot be used: ${what}`, unprocessed(cause))
}

/** Facts of an error that comes before anything was sent. */
export function unprocessed(cause: unknown): { cause: unknown; unprocessed: true } {
  return { cause, unprocessed: true }
}
