import { isAuthority } from '../http/index.ts'

/** 1: may stand in a path and a query as it is. 2: only in a path. 3: `.` and `%`, which may be the start of a dot segment. */
const plain = new Uint8Array(128)
for (const char of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~!$&()*+,;=:@/[]|') plain[char.charCodeAt(0)] = 1
plain[0x27] = 2
plain[0x2e] = 3
plain[0x25] = 3

/**
 * The URL of a received request, in the form the URL standard serializes: what `new Request` would
 * say. Nearly always that is the parts as they came, which is seen without parsing.
 * `origin` is from {@link originFrom}.
 */
export function targetUrl(origin: string, path: string): string {
  // RFC 9112 §3.3: asterisk-form and authority-form have no path.
  if (path === '*' || path === '') return `${origin}/`
  let inQuery = false
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i)
    const kind = code < 128 ? (plain[code] as number) : 0
    if (kind === 1) continue
    if (code === 0x3f) inQuery = true
    else if (inQuery ? kind !== 3 : kind !== 2) {
      if (kind === 3 && !startsDots(path, i)) continue
      return new URL(origin + path).href
    }
  }
  return origin + path
}

/** True for `.` behind a slash, and for `%2` (an encoded dot is one too): rare enough to leave to the parser. */
function startsDots(path: string, at: number): boolean {
  return path.charCodeAt(at) === 0x2e ? path.charCodeAt(at - 1) === 0x2f : path.charCodeAt(at + 1) === 0x32
}

const origins = new Map<string, string>()
const originsMost = 256
let lastScheme = ''
let lastAuthority = ' '
let lastOrigin = ''

/** `scheme://authority` as the URL standard serializes it, or undefined if `authority` is none it takes. */
export function originFrom(scheme: string, authority: string): string | undefined {
  // Most requests name the host the last one named.
  if (authority === lastAuthority && scheme === lastScheme) return lastOrigin
  const text = `${scheme}://${authority}`
  const found = origins.get(text) ?? parsedOrigin(authority, text)
  if (found === undefined) return undefined
  lastScheme = scheme
  lastAuthority = authority
  lastOrigin = found
  return found
}

function parsedOrigin(authority: string, text: string): string | undefined {
  if (!isAuthority(authority)) return undefined
  const url = URL.parse(text)
  if (url === null) return undefined
  const origin = `${url.protocol}//${url.host}`
  // Clients choose the names: bounded, and begun anew when it is full.
  if (origins.size >= originsMost) origins.clear()
  origins.set(text, origin)
  return origin
}
