import { isIPv6 } from 'node:net'

/** A service over HTTP/3 that an Alt-Svc field names (RFC 7838 §3). */
export interface OfferedService {
  /** Undefined: the origin's own. An IPv6 address without brackets. */
  readonly host: string | undefined
  readonly port: number
  /** How long it is good from the response's making on, ms. */
  readonly maxAge: number
}

const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
const quoted = '"(?:[^"\\\\]|\\\\.)*"'
const alternative = new RegExp(`(${token})=(${quoted})`, 'y')
const parameter = new RegExp(`[ \\t]*;[ \\t]*(${token})=(${token}|${quoted})`, 'y')
const separator = /[ \t]*,[ \t,]*/y
const blanks = /[ \t,]*/y

/** RFC 7838 §3.1: a day. */
const defaultAge = 86_400
/** More is taken for this much, s: what a network was a year ago tells little. */
const longestAge = 31_536_000

/**
 * The services over HTTP/3 in an Alt-Svc field's value, best first; `clear` is none. Undefined: the value is malformed,
 * and says nothing. Services of other protocols, and such as have an authority or age that is none, are left out.
 */
export function readAltSvc(value: string): readonly OfferedService[] | undefined {
  const text = value.trim()
  // RFC 7838 §3: in this case only.
  if (text === 'clear') return []
  const services: OfferedService[] = []
  let at = skip(blanks, text, 0)
  if (at === text.length) return undefined
  while (at < text.length) {
    const named = match(alternative, text, at)
    if (named === undefined) return undefined
    at = alternative.lastIndex
    let maxAge = defaultAge
    for (let found = match(parameter, text, at); found !== undefined; found = match(parameter, text, at)) {
      at = parameter.lastIndex
      // RFC 7838 §3.1: parameters that nobody knows are ignored.
      if (found[1]?.toLowerCase() === 'ma') maxAge = seconds(unquoted(found[2] as string))
    }
    // RFC 7838 §3: an ALPN name as a token; octets that a token can hold are not percent-encoded.
    const service = named[1] === 'h3' && maxAge >= 0 ? serviceAt(unquoted(named[2] as string), maxAge) : undefined
    if (service !== undefined) services.push(service)
    if (at === text.length) break
    const next = skip(separator, text, at)
    if (next === at) return undefined
    at = next
  }
  return services
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}

function skip(pattern: RegExp, text: string, at: number): number {
  return match(pattern, text, at) === undefined ? at : pattern.lastIndex
}

/** RFC 9110 §5.6.4 */
function unquoted(text: string): string {
  return text.startsWith('"') ? text.slice(1, -1).replaceAll(/\\(.)/g, '$1') : text
}

/** −1: not a number of seconds. */
function seconds(text: string): number {
  return /^\d+$/.test(text) ? Math.min(Number(text), longestAge) : -1
}

/** `[uri-host] ":" port`; undefined: it is none, or none that a client could connect to. */
function serviceAt(authority: string, maxAge: number): OfferedService | undefined {
  const colon = authority.lastIndexOf(':')
  const digits = authority.slice(colon + 1)
  const port = /^\d{1,5}$/.test(digits) ? Number(digits) : 0
  if (colon < 0 || port < 1 || port > 65_535) return undefined
  const host = hostIn(authority.slice(0, colon))
  return host === undefined ? undefined : { host: host === '' ? undefined : host, port, maxAge: maxAge * 1000 }
}

function hostIn(text: string): string | undefined {
  if (text.startsWith('[') && text.endsWith(']')) {
    const address = text.slice(1, -1)
    return isIPv6(address) && !address.includes('%') ? address : undefined
  }
  return /^[0-9A-Za-z._-]{0,255}$/.test(text) ? text.toLowerCase() : undefined
}
