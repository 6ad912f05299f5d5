import { createSecureContext, type SecureContext, type SecureVersion } from 'node:tls'
import { checkOptionNames, UsageError, type OptionNames } from '../http/index.ts'
import { describe } from './errors.ts'

/** A certificate, key or list of authorities in PEM, as text or bytes. */
export type Pem = string | Uint8Array

/**
 * One certificate with its key, and what goes with it. An identity in `names` or from `sniCallback`
 * has what it lacks from the options around it: certificate and key together, the rest one by one.
 */
export interface TlsIdentity {
  /** PEM; the leaf first, then its issuers. */
  readonly cert?: Pem | readonly Pem[] | undefined
  /** PEM, of the leaf. */
  readonly key?: Pem | readonly Pem[] | undefined
  /** Certificate and key as PKCS #12, instead of `cert` and `key`. */
  readonly pfx?: Uint8Array | undefined
  /** Opens the `key` or the `pfx`. */
  readonly passphrase?: string | undefined
  /** PEM: whose client certificates are accepted. Needed with `requestCert`; an empty list accepts nobody's. */
  readonly ca?: Pem | readonly Pem[] | undefined
  /** Default Node's: TLSv1.2. This and the next two are the server's for all names: an identity by name cannot have others. */
  readonly minVersion?: SecureVersion | undefined
  /** Default Node's: TLSv1.3. */
  readonly maxVersion?: SecureVersion | undefined
  /** In OpenSSL's form. Default Node's. */
  readonly ciphers?: string | undefined
}

/** Every member of {@link TlsIdentity}. */
export const identityNames: OptionNames<TlsIdentity> = {
  cert: true,
  key: true,
  pfx: true,
  passphrase: true,
  ca: true,
  minVersion: true,
  maxVersion: true,
  ciphers: true,
}
const identityMembers = Object.keys(identityNames) as readonly (keyof TlsIdentity)[]
const credentials: readonly (keyof TlsIdentity)[] = ['cert', 'key', 'pfx', 'passphrase']
/** What is PEM, how the first line of its kind ends, and what that is. */
const pemMembers = [
  ['cert', 'CERTIFICATE-----', 'certificate'],
  ['key', 'PRIVATE KEY-----', 'private key'],
  ['ca', 'CERTIFICATE-----', 'certificate'],
] as const
const manners = identityMembers.filter((name) => !credentials.includes(name))

/** Those of `names` that are set: Node does not take undefined for absent everywhere. */
export function given<T extends object>(options: T, names: readonly (keyof T)[]): Record<string, unknown> {
  const chosen: Record<string, unknown> = {}
  for (const name of names) if (options[name] !== undefined && options[name] !== null) chosen[name as string] = options[name]
  return chosen
}

/** Of `options` what belongs to an identity. */
export function identityOf(options: TlsIdentity): TlsIdentity {
  return given(options, identityMembers)
}

/**
 * `identity` with what it lacks from `outer`. Authorities above all: without any, Node would accept
 * client certificates of every public one.
 */
export function completed(identity: TlsIdentity, outer: TlsIdentity): TlsIdentity {
  return { ...given(outer, hasCredentials(identity) ? manners : identityMembers), ...identityOf(identity) }
}

/** `identity` after an update: what `change` gives replaces, what it does not give stays. */
export function replaced<T extends TlsIdentity>(identity: T, change: T): T {
  const kept = { ...identity } as Record<string, unknown>
  // One pair of certificate and key takes the place of the other, in whatever form.
  if (change.pfx !== undefined) for (const name of ['cert', 'key']) delete kept[name]
  else if (change.cert !== undefined || change.key !== undefined) delete kept['pfx']
  return { ...kept, ...given(change, Object.keys(change) as (keyof T)[]) } as unknown as T
}

/** True for an identity with a certificate of its own, or a part of one. */
export function hasCredentials({ cert, key, pfx }: TlsIdentity): boolean {
  return [cert, key, pfx].some((value) => value !== undefined && value !== null)
}

/** Throws UsageError for what is chosen before the server name is known (OpenSSL takes it from where the handshake began), if it differs. */
export function checkShared(identity: TlsIdentity, outer: TlsIdentity, what: string): void {
  for (const name of ['minVersion', 'maxVersion', 'ciphers'] as const) {
    if (identity[name] !== undefined && identity[name] !== outer[name]) {
      throw new UsageError(`${what} cannot be used: ${name} is the same for all names; give it beside them`)
    }
  }
}

/**
 * What node:tls needs for handshakes with `identity`, which is complete. Throws UsageError for one
 * that cannot be used; `what` names it. `verifies`: clients are asked for a certificate.
 */
export function makeContext(identity: TlsIdentity, what: string, verifies: boolean): SecureContext {
  checkNotEmpty(what, identity)
  const { cert, key, pfx, ca } = identity
  if (pfx === undefined && (cert === undefined) !== (key === undefined)) {
    throw new UsageError(
      `${what} cannot be used: it has a ${cert === undefined ? 'key' : 'certificate'} without a ${cert === undefined ? 'certificate' : 'key'}`,
    )
  }
  if (verifies && ca === undefined) {
    throw new UsageError(
      `${what} cannot be used: requestCert needs ca, the authorities whose client certificates are accepted ` +
        '(never those that Node trusts; an empty list: none, so that with rejectUnauthorized: false the program judges by itself)',
    )
  }
  checkPem(what, identity)
  try {
    return createSecureContext(identity as object)
  } catch (cause) {
    throw new UsageError(`${what} cannot be used: ${describe(cause)}`, { cause })
  }
}

/**
 * Throws UsageError for what is not PEM of its kind. Of such authorities Node would take none, or its
 * own; of certificates and keys OpenSSL says "no start line" and "unsupported", and not which it means.
 */
export function checkPem(what: string, identity: TlsIdentity): void {
  for (const [name, label, kind] of pemMembers) {
    for (const pem of pems(identity[name])) {
      if (!pemText(pem).includes(label)) throw new UsageError(`${what} cannot be used: ${name} holds no ${kind} in PEM`)
    }
  }
}

function pemText(pem: unknown): string {
  if (typeof pem === 'string') return pem
  return ArrayBuffer.isView(pem) ? Buffer.from(pem.buffer, pem.byteOffset, pem.byteLength).toString('latin1') : ''
}

/** Throws UsageError for members of `identity` that are none. */
export function checkIdentityNames(face: string, path: string, identity: TlsIdentity): void {
  checkOptionNames(face, path, identity, identityNames)
}

/**
 * Throws UsageError for an empty member of `identity`: Node takes an empty text for an option that is
 * not given, so that an empty file of authorities would stand for the public ones.
 */
export function checkNotEmpty(what: string, identity: TlsIdentity): void {
  for (const name of identityMembers) {
    const value: unknown = identity[name]
    for (const part of Array.isArray(value) ? (value as readonly unknown[]) : [value]) {
      if ((part === '' && name !== 'passphrase') || (part instanceof Uint8Array && part.length === 0)) {
        throw new UsageError(`${what} cannot be used: ${name} is empty`)
      }
    }
  }
}

/** One PEM or a list of them as a list. */
export function pems(value: TlsIdentity['ca']): readonly Pem[] {
  if (value === undefined || value === null) return []
  return typeof value === 'string' || value instanceof Uint8Array ? [value] : value
}
