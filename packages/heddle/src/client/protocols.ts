import { UsageError } from '../http/index.ts'
import { protocolOf } from '../io/index.ts'

/** A version of HTTP that the client speaks. */
export type ClientProtocol = 'h1' | 'h2' | 'h3'

/** Every version. */
export const everyProtocol: readonly ClientProtocol[] = Object.freeze(['h3', 'h2', 'h1'])
/** What is offered when nothing is said, best first. */
export const usualProtocols: readonly ClientProtocol[] = Object.freeze(['h2', 'h1'])

const alpnNames: Readonly<Record<ClientProtocol, string>> = { h1: 'http/1.1', h2: 'h2', h3: 'h3' }

/** The ALPN names (RFC 7301 §6) of those of `protocols` that are spoken over TCP, in their order. */
export function alpnOf(protocols: readonly ClientProtocol[]): readonly string[] {
  return protocols.filter((protocol) => protocol !== 'h3').map((protocol) => alpnNames[protocol])
}

/** Checks an option: some of them, each once. */
export function checkedProtocols(protocols: readonly ClientProtocol[] | undefined): readonly ClientProtocol[] {
  if (protocols === undefined) return usualProtocols
  const known = Array.isArray(protocols) && protocols.every((protocol) => Object.hasOwn(alpnNames, protocol))
  if (!known || protocols.length === 0 || new Set(protocols).size !== protocols.length) {
    throw new UsageError("protocols must be a list of 'h3', 'h2' and 'h1', each once at most")
  }
  return [...protocols]
}

/**
 * What is spoken on a TLS connection on which ALPN chose `alpn`, if it is one of `protocols`. Without
 * ALPN that is HTTP/1.1 (RFC 9113 §3.2: HTTP/2 over TLS needs it).
 */
export function chosenProtocol(alpn: string | undefined, protocols: readonly ClientProtocol[]): ClientProtocol | undefined {
  const protocol = protocolOf(alpn)
  return protocol !== undefined && protocols.includes(protocol) ? protocol : undefined
}

/** One connection runs many requests at once. */
export function isMultiplexed(protocol: ClientProtocol): boolean {
  return protocol !== 'h1'
}
