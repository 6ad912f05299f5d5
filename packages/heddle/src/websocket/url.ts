/** Where a WebSocket goes, as its handshake and its face want to know it. */
export interface WebSocketTarget {
  /** The URL, normalised: `wss://example.org/chat`. */
  readonly href: string
  /** Of the handshake: `http` or `https`. */
  readonly scheme: 'http' | 'https'
  /** Host and, unless it is the scheme's default, port. */
  readonly authority: string
  /** Path and query. */
  readonly path: string
  /** `wss://example.org`: what a message event calls its origin. */
  readonly origin: string
  /** `authorization` of the user information in the URL, or undefined. */
  readonly authorization: string | undefined
}

/**
 * Reads an absolute ws, wss, http or https URL. Throws a SyntaxError (DOMException) for anything else, and
 * for a fragment (WHATWG WebSockets, get a URL record).
 */
export function webSocketTarget(given: string | URL): WebSocketTarget {
  const text = String(given)
  if (!URL.canParse(text)) throw syntaxError(`${JSON.stringify(text.slice(0, 200))} is not an absolute URL`)
  const url = new URL(text)
  if (url.protocol === 'http:') url.protocol = 'ws:'
  else if (url.protocol === 'https:') url.protocol = 'wss:'
  const { protocol, host, pathname, search, href, username, password } = url
  if (protocol !== 'ws:' && protocol !== 'wss:') throw syntaxError(`the URL must be ws, wss, http or https, not ${protocol.slice(0, -1)}`)
  // An empty fragment is one, too, and shows in the text only.
  if (href.includes('#')) throw syntaxError('the URL must have no fragment')
  return {
    href,
    scheme: protocol === 'wss:' ? 'https' : 'http',
    authority: host,
    path: pathname + search,
    origin: `${protocol}//${host}`,
    authorization: username === '' && password === '' ? undefined : basic(username, password),
  }
}

/** `href` as messages show it: without user information and query, which may be secret. */
export function labelOf(href: string): string {
  if (!URL.canParse(href)) return href
  const { protocol, host, pathname } = new URL(href)
  return `${protocol}//${host}${pathname}`
}

/** What the constructor of WebSocket throws for arguments that make no sense. */
export function syntaxError(what: string): DOMException {
  return new DOMException(`WebSocket: ${what}`, 'SyntaxError')
}

/** RFC 7617 §2: user-id and password as UTF-8. */
function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${percentDecoded(username)}:${percentDecoded(password)}`).toString('base64')}`
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
