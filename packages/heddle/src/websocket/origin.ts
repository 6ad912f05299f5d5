import { combinedFieldValue, UsageError, type Head } from '../http/index.ts'
import { wrongOption } from './option-checks.ts'
import type { UpgradeOptions } from './upgrade-options.ts'

/**
 * What is wrong with the Origin of a handshake (RFC 6455 §10.2), or ''. Throws UsageError for an entry of the
 * list that is no origin: it would never match, or match something else than was meant.
 */
export function originProblem(face: string, allowed: UpgradeOptions['origin'], head: Head): string {
  const origin = combinedFieldValue(head.fields, 'origin')
  if (typeof allowed === 'function') {
    const isAllowed: unknown = allowed(origin, head.authority)
    // Of a promise nobody knows what it is going to say, and it counts as true.
    if (typeof isAllowed !== 'boolean') throw wrongOption(face, 'what the function origin returns', 'true or false', isAllowed)
    if (isAllowed) return ''
    return origin === undefined ? 'this client may not connect' : foreign(origin)
  }
  if (allowed !== undefined) {
    const list = typeof allowed === 'string' ? [allowed] : allowed
    for (const entry of list) checkEntry(face, entry)
    return origin === undefined || list.includes('*') || list.includes(origin) ? '' : foreign(origin)
  }
  return origin === undefined || isSameHost(origin, head.authority) ? '' : foreign(origin)
}

/**
 * The page came from the host that it wants to connect to. Schemes are not compared: behind a proxy that ends
 * TLS the page is of `https` and the request of `http`.
 */
function isSameHost(origin: string, authority: string): boolean {
  const page = URL.parse(origin)
  if (page === null || page.host === '') return false
  // The same scheme for both, so that its port may be left out in one of them.
  return URL.parse(`${page.protocol}//${authority}`)?.host === page.host
}

function checkEntry(face: string, entry: string): void {
  if (entry === '*' || entry === 'null') return
  const url = URL.parse(entry)
  if (url !== null && url.host !== '' && `${url.protocol}//${url.host}` === entry) return
  const better = url === null || url.host === '' ? 'https://app.example.org' : `${url.protocol}//${url.host}`
  throw new UsageError(`${face}: origin ${JSON.stringify(entry)} is no origin; one looks like ${better}`)
}

function foreign(origin: string): string {
  return `pages of ${origin} may not connect`
}
