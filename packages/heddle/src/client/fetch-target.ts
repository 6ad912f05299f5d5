/** Scheme, authority and path as a request head wants them, and the URL text without its fragment. */
export class FetchTarget {
  readonly site: Site
  /** Path and query. */
  readonly path: string
  /** The whole URL without fragment: what `response.url` shows. */
  readonly href: string

  constructor(site: Site, path: string, href: string) {
    this.site = site
    this.path = path
    this.href = href
  }
}

/** The part of a URL that many requests share: made once per spelling. */
export interface Site {
  readonly scheme: 'http' | 'https'
  /** Host and, unless it is the scheme's default, port. */
  readonly authority: string
  /** `scheme://authority`. */
  readonly origin: string
}

/** Spellings of `scheme://authority` seen lately. Bounded: a crawler sees hosts without end. */
const sites = new Map<string, Site>()
const maxSites = 1_024

/** 1 where `new URL` keeps the character as it is in a path; 2 where a query keeps it too and a path does not; 3 the dot. */
const kept = new Uint8Array(128)
for (const char of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-_~!$&()*+,;=:@%|[]'") kept[char.charCodeAt(0)] = 1
for (const char of '?`{}^') kept[char.charCodeAt(0)] = 2
kept[0x2e] = 3

/**
 * Reads an absolute http or https URL. Text that `new URL` would leave as it is, apart from the
 * fragment, is only scanned; all other text goes through `new URL`, so the result is the same.
 * Throws TypeError for what is no URL, for another scheme, and for user information in it.
 */
export function fetchTarget(text: string): FetchTarget {
  const hostAt = text.startsWith('http://') ? 7 : text.startsWith('https://') ? 8 : 0
  if (hostAt > 0) {
    const pathAt = endOfAuthority(text, hostAt)
    const prefix = pathAt === text.length ? text : text.slice(0, pathAt)
    const site = sites.get(prefix)
    if (site !== undefined) {
      const limit = endOfPlainPath(text, pathAt)
      if (limit >= 0) return plainTarget(text, prefix, site, pathAt, limit)
    }
  }
  return parsedTarget(text, hostAt)
}

function plainTarget(text: string, prefix: string, site: Site, pathAt: number, limit: number): FetchTarget {
  if (pathAt === limit) return new FetchTarget(site, '/', `${site.origin}/`)
  if (text.charCodeAt(pathAt) === 0x2f) {
    const path = text.slice(pathAt, limit)
    const href = prefix !== site.origin ? site.origin + path : limit === text.length ? text : text.slice(0, limit)
    return new FetchTarget(site, path, href)
  }
  const path = `/${text.slice(pathAt, limit)}`
  return new FetchTarget(site, path, site.origin + path)
}

/** The slow way, and the twin the fast one is tested against. */
export function parsedTarget(text: string, hostAt = 0): FetchTarget {
  let url: URL
  try {
    url = new URL(text)
  } catch (error) {
    throw new TypeError(`not an absolute URL: ${shown(text)}`, { cause: error })
  }
  const { protocol, username, password } = url
  if (protocol !== 'http:' && protocol !== 'https:') throw new TypeError(`fetch speaks http and https, not ${protocol}`)
  // RFC 9110 §4.2.4: user information in a URL is an invitation to phish; Fetch refuses it as well.
  if (username !== '' || password !== '') throw new TypeError('a URL to fetch must not hold user information')
  const { host, origin } = url
  const site: Site = { scheme: protocol === 'https:' ? 'https' : 'http', authority: host, origin }
  if (hostAt > 0) {
    const pathAt = endOfAuthority(text, hostAt)
    if (pathAt > hostAt && text.charCodeAt(pathAt) !== 0x5c) remember(text.slice(0, pathAt), site)
  }
  // From the whole: `search` does not tell an empty query from none, the wire does.
  const fragmentAt = url.href.indexOf('#')
  const href = fragmentAt < 0 ? url.href : url.href.slice(0, fragmentAt)
  return new FetchTarget(site, href.slice(origin.length), href)
}

function remember(prefix: string, site: Site): void {
  if (prefix.length > 300) return
  if (sites.size >= maxSites) sites.clear()
  sites.set(prefix, site)
}

/** Where the authority that begins at `at` ends: at `/`, `?`, `#`, `\` or the end. */
function endOfAuthority(text: string, at: number): number {
  let i = at
  for (; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x2f || code === 0x3f || code === 0x23 || code === 0x5c) break
  }
  return i
}

/** Where path and query end (at the fragment or the end), or -1 if `new URL` might change something. */
function endOfPlainPath(text: string, at: number): number {
  let i = at
  let previous = 0
  for (; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x23) return plainFragment(text, i) ? i : -1
    if (code === 0x3f) return endOfPlainQuery(text, i + 1)
    const kind = code < 128 ? kept[code] : 0
    // A segment that begins with a dot, or with the percent sign that may hide one, might be `.` or `..`.
    if (kind === 0 || kind === 2 || (previous === 0x2f && (kind === 3 || code === 0x25))) return -1
    previous = code
  }
  return i
}

function endOfPlainQuery(text: string, at: number): number {
  for (let i = at; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x23) return plainFragment(text, i) ? i : -1
    // RFC 3986 allows the apostrophe, the URL standard encodes it in the query of a special scheme.
    if (code >= 128 || kept[code] === 0 || code === 0x27) return -1
  }
  return text.length
}

/** The fragment is thrown away; only what `new URL` strips from the ends of the text could matter. */
function plainFragment(text: string, at: number): boolean {
  for (let i = at; i < text.length; i++) if (text.charCodeAt(i) <= 0x20) return false
  return true
}

/** Untrusted text for a message: short, and without what could disturb a log. */
function shown(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}
