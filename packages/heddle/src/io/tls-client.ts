import type { PeerCertificate, SecureVersion } from 'node:tls'

type Pem = string | Uint8Array

/** TLS towards a server. Keep one object for one set of options: contexts are cached by its identity. */
export interface TlsClientOptions {
  /** Server name for SNI and for the certificate check. Default: the target's host. */
  readonly servername?: string | undefined
  /** ALPN protocols, best first. Default `['http/1.1']`. */
  readonly alpn?: readonly string[] | undefined
  /** Certificates to trust instead of Node's. */
  readonly ca?: Pem | readonly Pem[] | undefined
  /** Client certificate (PEM) and its key. */
  readonly cert?: Pem | readonly Pem[] | undefined
  readonly key?: Pem | readonly Pem[] | undefined
  readonly pfx?: Uint8Array | undefined
  readonly passphrase?: string | undefined
  /** False accepts any certificate. Default true. */
  readonly rejectUnauthorized?: boolean | undefined
  /** In place of `tls.checkServerIdentity`. */
  readonly checkServerIdentity?: ((host: string, certificate: PeerCertificate) => Error | undefined) | undefined
  readonly minVersion?: SecureVersion | undefined
  readonly maxVersion?: SecureVersion | undefined
  readonly ciphers?: string | undefined
  /** Gets each line of NSS key log. The environment's SSLKEYLOGFILE is obeyed besides. */
  readonly keylog?: ((line: Uint8Array) => void) | undefined
  /** Sessions kept for resumption. */
  readonly sessions?: TlsSessions | undefined
}

/** TLS sessions for resumption, at most `most`, each used once (RFC 8446 appendix C.4). */
export class TlsSessions {
  readonly #most: number
  readonly #sessions = new Map<string, Buffer>()

  constructor(most = 100) {
    this.#most = most
  }

  /** Keeps the newest session of `name`. */
  put(name: string, session: Buffer): void {
    this.#sessions.delete(name)
    this.#sessions.set(name, session)
    if (this.#sessions.size <= this.#most) return
    const [oldest] = this.#sessions.keys()
    if (oldest !== undefined) this.#sessions.delete(oldest)
  }

  /** Takes the session of `name` out. */
  take(name: string): Buffer | undefined {
    const session = this.#sessions.get(name)
    if (session !== undefined) this.#sessions.delete(name)
    return session
  }
}
