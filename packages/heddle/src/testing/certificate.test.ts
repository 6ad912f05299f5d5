import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { connect, createServer, type ConnectionOptions, type TlsOptions } from 'node:tls'
import { makeAuthority, makeCertificate } from './certificate.ts'

/** Shakes hands on loopback; resolves with the client's verdict. */
async function handshake(server: TlsOptions, client: ConnectionOptions): Promise<string> {
  const listener = createServer(server, (socket) => socket.on('error', () => {}).end())
  listener.on('tlsClientError', () => {})
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const socket = connect({ host: '127.0.0.1', port: (listener.address() as AddressInfo).port, ...client })
  try {
    await once(socket, 'secureConnect')
    return 'ok'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'no code'
  } finally {
    socket.destroy()
    listener.close()
  }
}

test('a self-signed certificate carries its names, addresses and dates', () => {
  const { cert, key, name } = makeCertificate({
    names: ['a.example', '*.b.example'],
    ipAddresses: ['127.0.0.1', '::1', '2001:db8::8:1'],
    days: 2,
  })
  const parsed = new X509Certificate(cert)
  assert.equal(name, 'a.example')
  assert.equal(
    parsed.subjectAltName,
    'DNS:a.example, DNS:*.b.example, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:2001:DB8:0:0:0:0:8:1',
  )
  assert.equal(parsed.checkHost('x.b.example'), '*.b.example')
  assert.equal(parsed.checkIP('::1'), '::1')
  assert.equal(parsed.ca, false)
  assert.ok(parsed.verify(parsed.publicKey))
  assert.match(key, /BEGIN PRIVATE KEY/)
  const days = (Date.parse(parsed.validTo) - Date.now()) / 86_400_000
  assert.ok(days > 1.9 && days <= 2, `${days} days`)
})

test('a leaf chains to its authority', () => {
  const authority = makeAuthority()
  const leaf = makeCertificate({ names: ['localhost'], ca: authority })
  const parsed = new X509Certificate(leaf.cert)
  const issuer = new X509Certificate(authority.cert)
  assert.equal(issuer.ca, true)
  assert.ok(parsed.checkIssued(issuer))
  assert.ok(parsed.verify(issuer.publicKey))
})

test('a certificate can be spread into TLS options, and its copy can sign', () => {
  const authority = makeAuthority('a copied authority')
  assert.deepEqual(Object.keys(authority), ['cert', 'key'])
  const leaf = makeCertificate({ names: ['localhost'], ca: { ...authority } })
  assert.equal(new X509Certificate(leaf.cert).issuer, 'CN=a copied authority')
})

test('node:tls accepts what is right and names what is wrong', async () => {
  const authority = makeAuthority()
  const leaf = makeCertificate({ names: ['localhost'], ca: authority })
  const old = makeCertificate({ names: ['localhost'], ca: authority, days: -1 })
  const own = makeCertificate({ names: ['localhost'] })
  const trusted = { ca: authority.cert, servername: 'localhost' }
  assert.equal(await handshake(leaf, trusted), 'ok')
  assert.equal(await handshake(own, { ca: own.cert, servername: 'localhost' }), 'ok')
  assert.equal(await handshake(leaf, { ...trusted, servername: 'other.example' }), 'ERR_TLS_CERT_ALTNAME_INVALID')
  assert.equal(await handshake(old, trusted), 'CERT_HAS_EXPIRED')
  assert.equal(await handshake(own, trusted), 'DEPTH_ZERO_SELF_SIGNED_CERT')
  assert.equal(await handshake({ ...leaf, requestCert: true, ca: authority.cert }, { ...trusted, ...leaf }), 'ok')
})
