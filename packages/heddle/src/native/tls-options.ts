import { randomBytes, type KeyObject } from 'node:crypto'
import { checkOptionNames, UsageError, type OptionNames } from '../http/index.ts'
import type { CipherSuite } from './types.ts'

/** PEM, as text or bytes. */
export type Pem = string | Uint8Array

/** One certificate with its key, and whose client certificates are accepted under it. */
export interface TlsIdentity {
  /** PEM; the leaf first, then its issuers. A list: certificates of several kinds (ECDSA and RSA), each with its issuers. */
  readonly cert?: Pem | readonly Pem[] | undefined
  /** PEM or a private KeyObject, one for each certificate. */
  readonly key?: Pem | KeyObject | readonly (Pem | KeyObject)[] | undefined
  /** Certificate, issuers and key as PKCS #12, instead of `cert` and `key`. */
  readonly pfx?: Uint8Array | undefined
  /** Opens the `key` or the `pfx`. */
  readonly passphrase?: string | undefined
  /**
   * Who is trusted: PEM, or for clients Node's choice ('default': its own list, and what
   * NODE_EXTRA_CA_CERTS and --use-system-ca add), 'bundled' or 'system'. Servers need it with `requestCert`.
   */
  readonly ca?: 'default' | 'bundled' | 'system' | Pem | readonly Pem[] | undefined
}

/** What all sessions of a context share. */
export interface TlsContextOptions extends TlsIdentity {
  /** Which end the sessions are. */
  readonly side: 'client' | 'server'
  /** ALPN protocols, best first. Default `['h3']`. QUIC needs one in common (RFC 9001 §8.1). */
  readonly alpn?: readonly string[] | undefined
  /**
   * Key exchange groups, best first, in OpenSSL's form: a client sends a key share for those with `*`. Default
   * `*X25519MLKEM768:*X25519:P-256:P-384`, with which a ClientHello takes two packets.
   */
  readonly groups?: string | undefined
  /** Default AES-128-GCM, AES-256-GCM, ChaCha20-Poly1305; a server prefers the last for clients that do. */
  readonly ciphers?: readonly CipherSuite[] | undefined
  /** Client: false accepts any certificate. Server, with `requestCert`: false accepts clients without a valid one. Default true. */
  readonly rejectUnauthorized?: boolean | undefined
  /** Server: asks clients for a certificate, and checks it against `ca`. Default false. */
  readonly requestCert?: boolean | undefined
  /**
   * Server: identities by server name: `example.org` or `*.example.org`. The options' own is for all other
   * names, and completes these with its `ca`.
   */
  readonly names?: Readonly<Record<string, TlsIdentity>> | undefined
  /**
   * Server: asked for names that `names` lacks; undefined means the options' own. A throw or rejection, and an
   * identity that cannot be used, fail that handshake only. A promise needs the session handler's `onWake`.
   */
  readonly sniCallback?: ((serverName: string) => TlsIdentity | undefined | Promise<TlsIdentity | undefined>) | undefined
  /** Told what `sniCallback` or `keylog` threw. */
  readonly onCallbackFailed?: ((error: unknown) => void) | undefined
  /** Server: sessions can be resumed. Default true. */
  readonly tickets?: boolean | undefined
  /** Server: 48 octets or more, the same in every worker, so that sessions resume across them; not those with early data. */
  readonly ticketKeys?: Uint8Array | undefined
  /**
   * Server: accepts early data (RFC 9001 §4.6). Tickets are then kept in this context's memory and used once
   * (RFC 8446 §8.1), so no early data is taken twice. Default false.
   */
  readonly earlyData?: boolean | undefined
  /** Gets each line of NSS key log. */
  readonly keylog?: ((line: string) => void) | undefined
}

/** What {@link TlsContext.update} can change. */
export type TlsUpdate = Pick<TlsContextOptions, 'cert' | 'key' | 'pfx' | 'passphrase' | 'ca' | 'names' | 'sniCallback'>

const identityNames: OptionNames<TlsIdentity> = { cert: true, key: true, pfx: true, passphrase: true, ca: true }

const optionNames: OptionNames<TlsContextOptions> = {
  ...identityNames,
  side: true,
  alpn: true,
  groups: true,
  ciphers: true,
  rejectUnauthorized: true,
  requestCert: true,
  names: true,
  sniCallback: true,
  onCallbackFailed: true,
  tickets: true,
  ticketKeys: true,
  earlyData: true,
  keylog: true,
}
const updateNames: OptionNames<TlsUpdate> = { ...identityNames, names: true, sniCallback: true }

const suites: readonly CipherSuite[] = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256']
/** What has a meaning on one side only. */
const serverOnly = ['requestCert', 'names', 'sniCallback', 'tickets', 'ticketKeys', 'earlyData'] as const

/** Options with every default in its place. */
export interface TlsSettings extends TlsContextOptions {
  readonly alpn: readonly string[]
  readonly groups: string
  readonly ciphers: readonly CipherSuite[]
  readonly rejectUnauthorized: boolean
  readonly requestCert: boolean
  readonly tickets: boolean
  readonly ticketKeys: Uint8Array
  readonly earlyData: boolean
}

/** Throws UsageError for options that are unknown or cannot be. */
export function tlsSettings(options: TlsContextOptions): TlsSettings {
  checkOptionNames('tls', '', options, optionNames)
  const { side, alpn = ['h3'], ciphers = suites } = options
  if (side !== 'client' && side !== 'server') throw new UsageError("tls: side must be 'client' or 'server'")
  if (side === 'client') {
    for (const name of serverOnly) if (options[name] !== undefined) throw new UsageError(`tls: ${name} is for servers`)
  }
  checkAlpn(alpn)
  if (ciphers.length === 0) throw new UsageError('tls: ciphers is empty')
  for (const name of ciphers) {
    if (!suites.includes(name)) throw new UsageError(`tls: QUIC has no cipher suite ${name} (it has ${suites.join(', ')})`)
  }
  // Their own ones stay the same through updates of the certificates.
  const { ticketKeys = randomBytes(48) } = options
  if (!(ticketKeys instanceof Uint8Array && ticketKeys.length >= 48)) {
    throw new UsageError('tls: ticketKeys must be 48 octets or more')
  }
  return {
    ...options,
    alpn,
    groups: options.groups ?? '*X25519MLKEM768:*X25519:P-256:P-384',
    ciphers,
    rejectUnauthorized: options.rejectUnauthorized ?? true,
    requestCert: options.requestCert ?? false,
    tickets: options.tickets ?? true,
    ticketKeys,
    earlyData: options.earlyData ?? false,
  }
}

/** RFC 7301 §3.1: a protocol's name has 1 to 255 octets. */
function checkAlpn(protocols: readonly string[]): void {
  if (protocols.length === 0) throw new UsageError('tls: alpn is empty; QUIC needs a protocol')
  for (const protocol of protocols) {
    // oxlint-disable-next-line no-control-regex
    if (!/^[\0-\xff]{1,255}$/.test(protocol)) throw new UsageError(`tls: ${JSON.stringify(protocol)} is no ALPN protocol`)
  }
}

/** `settings` for handshakes after an update: what `change` gives replaces, what it does not give stays. */
export function updatedSettings(settings: TlsSettings, change: TlsUpdate): TlsSettings {
  checkOptionNames('updateTls', '', change, updateNames)
  const kept = { ...settings } as Record<string, unknown>
  // One pair of certificate and key takes the place of the other, in whatever form, with its passphrase.
  if (change.pfx !== undefined || change.cert !== undefined || change.key !== undefined) {
    for (const name of ['pfx', 'passphrase', ...(change.pfx === undefined ? [] : ['cert', 'key'])]) delete kept[name]
  }
  for (const [name, value] of Object.entries(change)) if (value !== undefined) kept[name] = value
  return kept as unknown as TlsSettings
}

/** Throws UsageError for members of an identity that are none. */
export function checkIdentity(path: string, identity: TlsIdentity): void {
  checkOptionNames('tls', path, identity, identityNames)
}

/** An identity of a name with what it lacks from the options around it. */
export function completedIdentity(identity: TlsIdentity, outer: TlsIdentity): TlsIdentity {
  const ca = identity.ca ?? outer.ca
  const own = hasCertificate(identity) ? identity : { ...outer, ca: undefined }
  const { cert, key, pfx, passphrase } = own
  return { cert, key, pfx, passphrase, ca }
}

export function hasCertificate({ cert, key, pfx }: TlsIdentity): boolean {
  return [cert, key, pfx].some((value) => value !== undefined && value !== null)
}

/** One value or a list of them as a list. */
export function listOf<T extends object | string>(value: T | readonly T[] | undefined): readonly T[] {
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? (value as readonly T[]) : [value as T]
}
