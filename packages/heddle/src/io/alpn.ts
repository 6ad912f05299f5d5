/** The names of RFC 7301 for what Heddle speaks, best first. */
export const clientProtocols: readonly string[] = ['http/1.1']
export const serverProtocols: readonly string[] = ['http/1.1']

/** The engine that speaks the protocol TLS agreed on: without ALPN it is HTTP/1.1 (RFC 9113 §3.2, RFC 9112). Undefined: none does. */
export function protocolOf(alpn: string | undefined): 'h1' | 'h2' | undefined {
  if (alpn === undefined || alpn === 'http/1.1' || alpn === 'http/1.0') return 'h1'
  return alpn === 'h2' ? 'h2' : undefined
}
