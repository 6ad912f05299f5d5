/** Scheme, host and port that requests go to, and the connections and waiting requests of it. Made by `client.origin()`. */
export class Origin {
  /** `http` or `https`. */
  readonly scheme: string
  /** What goes into a head: host, and the port where it is not the scheme's. */
  readonly authority: string
  /** Host without port; an IPv6 address without brackets. */
  readonly host: string
  readonly port: number

  constructor(scheme: string, authority: string, host: string, port: number) {
    this.scheme = scheme
    this.authority = authority
    this.host = host
    this.port = port
  }

  /** `https://example.org`, with the port where it is not the scheme's. */
  toString(): string {
    return `${this.scheme}://${this.authority}`
  }
}
