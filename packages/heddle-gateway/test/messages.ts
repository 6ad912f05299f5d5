import type { ScriptedPeer } from 'heddle/testing'

/** A head as it stood on the wire. */
export interface WireHead {
  /** Request line or status line. */
  readonly line: string
  /** Names in lower case, in their order. */
  readonly fields: readonly (readonly [string, string])[]
  /** All values of a field, joined; undefined if it is not there. */
  field(name: string): string | undefined
}

/** Takes one head off what `peer` received. */
export function wantHead(peer: ScriptedPeer, why: string): WireHead {
  const text = peer.want(why, /[^]*?\r\n\r\n/).toString('latin1')
  const [line = '', ...lines] = text.trimEnd().split('\r\n')
  const fields = lines.map((fieldLine) => {
    const colon = fieldLine.indexOf(':')
    return [fieldLine.slice(0, colon).toLowerCase(), fieldLine.slice(colon + 1).trim()] as const
  })
  return {
    line,
    fields,
    field(name) {
      const values = fields.filter(([own]) => own === name).map(([, value]) => value)
      return values.length === 0 ? undefined : values.join(', ')
    },
  }
}

/** A message: lines joined with CRLF, an empty line, and the content. */
export function message(lines: readonly string[], content = ''): string {
  return `${lines.join('\r\n')}\r\n\r\n${content}`
}

/** `GET /path` with a host and more field lines. */
export function get(path = '/', ...fields: string[]): string {
  return message([`GET ${path} HTTP/1.1`, 'Host: example.org', ...fields])
}

/** A request with content of known length. */
export function post(content: string, ...fields: string[]): string {
  return message(['POST / HTTP/1.1', 'Host: example.org', `Content-Length: ${content.length}`, ...fields], content)
}

/** A response with content of known length. */
export function ok(content = 'hello', ...fields: string[]): string {
  return message(['HTTP/1.1 200 OK', `Content-Length: ${content.length}`, ...fields], content)
}
