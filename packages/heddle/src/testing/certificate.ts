import { createHash, createPublicKey, generateKeyPairSync, randomBytes, sign, X509Certificate, type KeyObject } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { checkOptionNames, type OptionNames } from '../http/index.ts'

/** A certificate and its key, both PEM: what `tls` options take, as it is or spread. */
export interface Certificate {
  readonly cert: string
  readonly key: string
  /** The common name of its subject. Not enumerable: it is no TLS option. */
  readonly name: string
}

/** What a certificate of tests shall say. */
export interface CertificateOptions {
  /** DNS names, `*.example.org` included; the first is the common name. */
  readonly names: readonly string[]
  /** Who signs it (see {@link makeAuthority}). Default: itself. */
  readonly ca?: Certificate | undefined
  readonly ipAddresses?: readonly string[] | undefined
  /** Days from now until it ends; negative: it has ended already. Default 30. */
  readonly days?: number | undefined
  /** Its subject, which no client takes for a host's name. Default: the first of `names`. */
  readonly commonName?: string | undefined
}

const optionNames: OptionNames<CertificateOptions> = { names: true, ca: true, ipAddresses: true, days: true, commonName: true }

/** Makes a P-256 certificate for servers and clients of tests; self-signed unless `ca` is given. About 1 ms. Throws UsageError for an option that is unknown. */
export function makeCertificate(options: CertificateOptions): Certificate {
  checkOptionNames('makeCertificate', '', options, optionNames)
  return make(options, false)
}

/** Makes the certificate of a test authority: give it as `ca` to {@link makeCertificate}, and its `cert` to whoever shall trust. With `issuer` it is an intermediate one. */
export function makeAuthority(name = 'heddle test authority', days = 30, issuer?: Certificate): Certificate {
  return make({ names: [name], days, ca: issuer }, true)
}

const day = 24 * 60 * 60 * 1000

// Object identifiers, already in DER.
const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'))
const commonName = oid('550403')
const subjectKeyIdentifier = oid('551d0e')
const keyUsage = oid('551d0f')
const subjectAltName = oid('551d11')
const basicConstraints = oid('551d13')
const authorityKeyIdentifier = oid('551d23')
const extendedKeyUsage = oid('551d25')
const serverAuth = oid('2b06010505070301')
const clientAuth = oid('2b06010505070302')

/** RFC 5280 §4.1: tbsCertificate, its signature algorithm and its signature. */
function make(options: CertificateOptions, authority: boolean): Certificate {
  const name = options.commonName ?? options.names[0] ?? options.ipAddresses?.[0] ?? 'heddle test'
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { ca } = options
  const end = Date.now() + (options.days ?? 30) * day
  const start = Math.min(Date.now() - day, end - day)
  const body = sequence(
    context(0, integer(Buffer.from([2]))), // v3
    integer(serialNumber()),
    ecdsaWithSha256,
    distinguishedName(ca === undefined ? name : commonNameOf(ca)),
    sequence(time(start), time(end)),
    distinguishedName(name),
    publicKey.export({ format: 'der', type: 'spki' }),
    context(3, sequence(...extensions(options, authority, publicKey, ca))),
  )
  const signature = sign('sha256', body, ca?.key ?? privateKey)
  const der = sequence(body, ecdsaWithSha256, bitString(signature, 0))
  const made = { cert: pem(der), key: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string }
  return Object.defineProperty(made, 'name', { value: name }) as Certificate
}

/** From the certificate itself, since a copy may lack the `name`. */
function commonNameOf({ cert }: Certificate): string {
  return String((new X509Certificate(cert).toLegacyObject().subject as unknown as { CN: string }).CN)
}

function extensions(options: CertificateOptions, authority: boolean, publicKey: KeyObject, ca: Certificate | undefined): Buffer[] {
  const issuerKey = ca === undefined ? publicKey : createPublicKey(ca.cert)
  const list = [
    extension(basicConstraints, true, authority ? sequence(boolean(true)) : sequence()),
    // keyCertSign and cRLSign, or digitalSignature.
    extension(keyUsage, true, authority ? bitString(Buffer.from([0x06]), 1) : bitString(Buffer.from([0x80]), 7)),
    extension(subjectKeyIdentifier, false, octetString(keyIdentifier(publicKey))),
    extension(authorityKeyIdentifier, false, sequence(tagged(0x80, keyIdentifier(issuerKey)))),
  ]
  if (authority) return list
  list.push(extension(extendedKeyUsage, false, sequence(serverAuth, clientAuth)))
  const names = options.names.map((name) => tagged(0x82, Buffer.from(name, 'latin1')))
  const addresses = (options.ipAddresses ?? []).map((address) => tagged(0x87, addressBytes(address)))
  if (names.length + addresses.length > 0) list.push(extension(subjectAltName, false, sequence(...names, ...addresses)))
  return list
}

function extension(id: Buffer, critical: boolean, value: Buffer): Buffer {
  return critical ? sequence(id, boolean(true), octetString(value)) : sequence(id, octetString(value))
}

/** RFC 5280 §4.2.1.2 (1): SHA-1 of the key's bits, which are the last 65 octets of a P-256 key's SPKI. */
function keyIdentifier(key: KeyObject): Buffer {
  const bits = key.export({ format: 'der', type: 'spki' }).subarray(-65)
  return createHash('sha1').update(bits).digest()
}

/** Positive, 16 octets, no leading zero octet (RFC 5280 §4.1.2.2). */
function serialNumber(): Buffer {
  const serial = randomBytes(16)
  serial[0] = ((serial[0] as number) & 0x3f) | 0x40
  return serial
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  if (!isIPv6(address)) throw new TypeError(`not an IP address: ${address}`)
  const [head = '', tail] = address.split('::')
  const groups = (text: string): number[] => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const first = groups(head)
  const last = groups(tail ?? '')
  const bytes = Buffer.alloc(16)
  first.forEach((group, i) => bytes.writeUInt16BE(group, i * 2))
  last.forEach((group, i) => bytes.writeUInt16BE(group, 16 - (last.length - i) * 2))
  return bytes
}

function distinguishedName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(commonName, tagged(0x0c, Buffer.from(name)))))
}

/** RFC 5280 §4.1.2.5: UTCTime, which is right until 2049. */
function time(instant: number): Buffer {
  const text = new Date(instant).toISOString().replaceAll(/[-:T]|\.\d+/g, '')
  return tagged(0x17, Buffer.from(text.slice(2), 'latin1'))
}

function tagged(tag: number, ...parts: Buffer[]): Buffer {
  const value = Buffer.concat(parts)
  const { length } = value
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), value])
  if (length < 0x100) return Buffer.concat([Buffer.from([tag, 0x81, length]), value])
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 0xff]), value])
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, ...parts)
}

function context(number: number, value: Buffer): Buffer {
  return tagged(0xa0 + number, value)
}

function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes)
}

function boolean(value: boolean): Buffer {
  return tagged(0x01, Buffer.from([value ? 0xff : 0]))
}

function octetString(bytes: Buffer): Buffer {
  return tagged(0x04, bytes)
}

function bitString(bytes: Buffer, unused: number): Buffer {
  return tagged(0x03, Buffer.from([unused]), bytes)
}

function oid(hex: string): Buffer {
  return tagged(0x06, Buffer.from(hex, 'hex'))
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}
