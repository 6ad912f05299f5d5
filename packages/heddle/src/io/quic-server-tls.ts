import { UsageError } from '../http/index.ts'
import type { Native, TlsContext, TlsIdentity as QuicIdentity, TlsSession, TlsSessionHandler, TlsUpdate } from '../native/index.ts'
import { ClientTrust } from './client-trust.ts'
import { keylogWanted, writeKeylog } from './keylog.ts'
import type { TlsIdentity } from './tls-identity.ts'
import { checkGivenIdentity, checkTlsServerOptions, isPromise, updatedTls, type TlsServerOptions } from './tls-server.ts'

/** TLS of the QUIC connections that come in by one port: the options are those of TCP, and mean the same. */
export class QuicServerTls {
  readonly #context: TlsContext
  #options: TlsServerOptions
  #trust: ClientTrust
  /** What identities of the callback became. One is the same object each time, or it would be made ready anew. */
  readonly #given: WeakMap<TlsIdentity, QuicIdentity>

  /** Throws UsageError for options that cannot be used. */
  constructor(native: Native, options: TlsServerOptions, alpn: readonly string[], onCallbackFailed: (error: unknown) => void) {
    check(options)
    const { requestCert, rejectUnauthorized, ticketKeys } = options
    this.#options = options
    this.#trust = new ClientTrust(options)
    this.#given = new WeakMap()
    this.#context = native.tls({
      side: 'server',
      alpn,
      ...this.#identities(options),
      requestCert: requestCert ?? undefined,
      rejectUnauthorized: rejectUnauthorized ?? undefined,
      ticketKeys: ticketKeys ?? undefined,
      onCallbackFailed,
      keylog: keylogWanted() ? (line) => writeKeylog(Buffer.from(`${line}\n`, 'latin1')) : undefined,
    })
  }

  open(transportParameters: Uint8Array, handler: TlsSessionHandler): TlsSession {
    return this.#context.server({ transportParameters }, handler)
  }

  /** For handshakes to come. Throws UsageError and changes nothing for what cannot be used. */
  update(change: TlsServerOptions): void {
    const next = updatedTls(this.#options, change)
    check(next)
    this.#context.update(this.#identities(next))
    this.#options = next
    this.#trust = new ClientTrust(next)
  }

  /** For a connection to `serverName`, which hosts its client's certificate is good for; undefined: none was asked for. */
  coverageOf(serverName: string | undefined): ((host: string) => boolean) | undefined {
    return this.#options.requestCert === true ? (host) => this.#trust.covers(serverName, host) : undefined
  }

  close(): void {
    this.#context.close()
  }

  #identities(tls: TlsServerOptions): TlsUpdate {
    const { names, sniCallback } = tls
    return {
      ...identityFor(tls),
      names: names && Object.fromEntries(Object.entries(names).map(([name, identity]) => [name, identityFor(identity)])),
      sniCallback:
        sniCallback &&
        ((serverName) => {
          const found = sniCallback(serverName)
          return isPromise(found)
            ? Promise.resolve(found).then((identity) => this.#givenFor(identity, serverName))
            : this.#givenFor(found, serverName)
        }),
    }
  }

  #givenFor(identity: TlsIdentity | null | undefined, serverName: string): QuicIdentity | undefined {
    if (identity === undefined || identity === null) return undefined
    let ready = this.#given.get(identity)
    if (ready === undefined) {
      checkGivenIdentity(identity, this.#options, serverName)
      ready = identityFor(identity)
      this.#given.set(identity, ready)
    }
    return ready
  }
}

function check(tls: TlsServerOptions): void {
  checkTlsServerOptions(tls)
  // RFC 9001 §4.2
  if ((tls.maxVersion ?? 'TLSv1.3') !== 'TLSv1.3') throw new UsageError(`HTTP/3 needs TLS 1.3, and tls.maxVersion is ${tls.maxVersion}`)
}

/** What QUIC has of an identity: TLS 1.3 and its ciphers are its own affair. */
function identityFor({ cert, key, pfx, passphrase, ca }: TlsIdentity): QuicIdentity {
  return {
    cert: cert ?? undefined,
    key: key ?? undefined,
    pfx: pfx ?? undefined,
    passphrase: passphrase ?? undefined,
    ca: ca ?? undefined,
  }
}
