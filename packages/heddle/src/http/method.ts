/** RFC 9110 §9.2.2, and RFC 9110 §9.3 for each. A method not known here counts as not idempotent. */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE', 'QUERY', 'PROPFIND', 'SEARCH', 'REPORT'])
const safe = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY', 'PROPFIND', 'SEARCH', 'REPORT'])

/** True: sending it twice has the effect of sending it once. */
export function isIdempotent(method: string): boolean {
  return idempotent.has(method)
}

/** True: it asks for nothing but an answer (RFC 9110 §9.2.1). */
export function isSafe(method: string): boolean {
  return safe.has(method)
}
