/**
 * How a path is read for routing. The gateway sends paths on as they came, so it must not route by
 * one reading what the upstream then reads otherwise: `/public/..%2fadmin` must not slip through a
 * rule for `/public`.
 */
export interface PathReadings {
  /**
   * RFC 3986 §6.2.2 normal form, what every upstream may be expected to see: escaped unreserved
   * octets and printable ASCII other than separators are decoded, other escapes are upper case.
   */
  readonly strict: string
  /**
   * What a lax upstream may see on top of that: `%2F`, `%5C` and `\` are `/`, `//` is `/`,
   * and a segment's parameters (`;…`, RFC 3986 §3.3) do not count.
   */
  readonly loose: string
}

const slash = 0x2f
const dot = 0x2e

/** True when both readings of `path` are `path` itself up to its query: nothing escaped, no `\`, no `;`, no `//`, no `/.`. No allocation. */
export function isPlainPath(path: string): boolean {
  let previous = 0
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i)
    if (code === 0x3f) return true
    if (code === 0x25 || code === 0x5c || code === 0x3b) return false
    if (previous === slash && (code === slash || code === dot)) return false
    previous = code
  }
  return true
}

/** True for a path a rule may be written with: it has one reading and no query. */
export function isNormalPath(path: string): boolean {
  const readings = readPath(path)
  return readings !== undefined && readings.strict === path && readings.loose === path
}

/**
 * Both readings of a path, without its query; undefined if it must not be served at all:
 * - a dot segment however it is written (`/../`, `/%2e%2E/`, `/..%2f`, `/..;x/`). Clients remove
 *   them before they send (RFC 3986 §5.2.4), so what is left of them is an attempt to leave a rule;
 * - an escaped NUL, where C programs end the path.
 */
export function readPath(path: string): PathReadings | undefined {
  const query = path.indexOf('?')
  const sent = query < 0 ? path : path.slice(0, query)
  if (/%00/.test(sent)) return undefined
  const strict = sent.replace(/%[0-9A-Fa-f]{2}/g, (escape) => {
    const code = Number.parseInt(escape.slice(1), 16)
    // A decoded separator, `%`, `?` or `#` would change what the path means: they stay escaped.
    return code > 0x20 && code < 0x7f && !'/\\%?#'.includes(String.fromCharCode(code)) ? String.fromCharCode(code) : escape.toUpperCase()
  })
  const loose = strict
    .replace(/%2F|%5C|\\/g, '/')
    .replace(/;[^/]*/g, '')
    .replace(/\/{2,}/g, '/')
  return /(?:^|\/)\.{1,2}(?:\/|$)/.test(loose) ? undefined : { strict, loose }
}
