import { noFields, type Fields } from './fields.ts'

/**
 * The head of a request or of a response, of any HTTP version: one class, so every engine and face
 * sees one object shape. In a request `status` is 0; in a response the request's words are empty.
 *
 * `content-length` in `fields` states the length of the content; without it the engine frames the
 * message by itself (chunked, DATA frames, or close for HTTP/1.0). `host` is never in `fields`: it
 * is `authority`.
 *
 * A tunnel request is `method: 'CONNECT'`. With a `protocol` it is an HTTP/1.1 Upgrade or an extended
 * CONNECT (RFC 8441), and a 2xx answer opens the tunnel on every version (HTTP/1.1 writes it as 101).
 */
export class Head {
  declare readonly method: string
  /** `http` or `https`; empty for a plain CONNECT. */
  declare readonly scheme: string
  /** Host and optional port. Empty only for an HTTP/1.0 request without Host. */
  declare readonly authority: string
  /** Path and query, or `*` for OPTIONS; empty for a plain CONNECT. */
  declare readonly path: string
  /** The tunnel's protocol (`websocket`), or empty. */
  declare readonly protocol: string
  /** 100–599 in a response, 0 in a request. */
  declare readonly status: number
  declare readonly fields: Fields

  constructor(method: string, scheme: string, authority: string, path: string, protocol: string, status: number, fields: Fields) {
    this.method = method
    this.scheme = scheme
    this.authority = authority
    this.path = path
    this.protocol = protocol
    this.status = status
    this.fields = fields
  }
}

/** The head of a request. `protocol` only with CONNECT. */
export function requestHead(
  method: string,
  scheme: string,
  authority: string,
  path: string,
  fields: Fields = noFields,
  protocol = '',
): Head {
  return new Head(method, scheme, authority, path, protocol, 0, fields)
}

/** The head of a response; `status` 100–599. */
export function responseHead(status: number, fields: Fields = noFields): Head {
  return new Head('', '', '', '', '', status, fields)
}
