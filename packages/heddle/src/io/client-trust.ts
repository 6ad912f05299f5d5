import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { completed, pems, type TlsIdentity } from './tls-identity.ts'
import type { TlsServerOptions } from './tls-server.ts'

/** Whose client certificates a server accepts, by the name it is asked for under. */
export class ClientTrust {
  /** By server name; '' for all other names. Undefined: the same under every name. */
  readonly #trusts: ReadonlyMap<string, string> | undefined
  /** The callback may trust others under every name that is not among these. */
  readonly #asksCallback: boolean
  readonly #requestCert: boolean

  constructor(tls: TlsServerOptions) {
    const trusts = new Map([['', fingerprint(tls)]])
    for (const [name, identity] of Object.entries(tls.names ?? {})) trusts.set(name.toLowerCase(), fingerprint(completed(identity, tls)))
    this.#trusts = new Set(trusts.values()).size > 1 ? trusts : undefined
    this.#asksCallback = (tls.sniCallback ?? undefined) !== undefined
    this.#requestCert = tls.requestCert ?? false
  }

  /**
   * False: client certificates for `host` are checked against other authorities than those a handshake for
   * `serverName` was checked against, or may be.
   */
  covers(serverName: string | undefined, host: string): boolean {
    if (!this.#requestCert || (this.#trusts === undefined && !this.#asksCallback)) return true
    // No server name is an address (RFC 6066 §3): what is asked for without a name is the options' own.
    const name = serverName?.toLowerCase() ?? ''
    const wanted = isIP(host.replace(/^\[|\]$/g, '')) === 0 ? host : ''
    return name === wanted || this.#trustUnder(name) === this.#trustUnder(wanted)
  }

  /** Tells the authorities for one server name from those for another. */
  #trustUnder(name: string): string {
    const trusts = this.#trusts ?? noTrusts
    if (name === '') return trusts.get('') ?? ''
    const known = byName(trusts, name)
    // Whom the callback trusts under a name is known in its handshake only.
    return known ?? (this.#asksCallback ? `of ${name}` : (trusts.get('') ?? ''))
  }
}

const noTrusts: ReadonlyMap<string, string> = new Map()

/** Tells the authorities of one identity from those of another. */
function fingerprint({ ca }: TlsIdentity): string {
  const hash = createHash('sha256')
  for (const pem of pems(ca)) hash.update(pem).update('\0')
  return hash.digest('hex')
}

/** The exact name, else the wildcard for its left-most label (RFC 9525 §6.3). */
export function byName<T>(names: ReadonlyMap<string, T>, name: string): T | undefined {
  if (names.size === 0) return undefined
  const lower = name.toLowerCase()
  const exact = names.get(lower)
  if (exact !== undefined) return exact
  const dot = lower.indexOf('.')
  return dot < 0 ? undefined : names.get(`*${lower.slice(dot)}`)
}
