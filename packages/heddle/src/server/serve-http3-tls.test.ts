/** TLS of a server is the same over QUIC as over TCP: identities, callbacks, client certificates, updates. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test, type TestContext, type TestOptions } from 'node:test'
import { runInNewContext } from 'node:vm'
import { NetworkError, UsageError } from '../http/index.ts'
import { makeAuthority, makeCertificate, type Certificate } from '../testing/index.ts'
import { Http3Client, noHttp3, type Http3ClientOptions } from '../../test/h3-client.ts'
import { authority, localhost, serveHttp3, until, type Http3Scene } from '../../test/h3-scene.ts'
import { Response, type RequestContext, type ServeOptions, type TlsIdentity, type TlsServerOptions } from './index.ts'

const quick: TestOptions = { timeout: 30_000, skip: noHttp3 }
const other = makeCertificate({ names: ['other.test', '*.wild.test'], ca: authority })
const members = makeAuthority('members')
const guests = makeAuthority('guests')
const ada = makeCertificate({ names: ['ada'], ca: members })
const guest = makeCertificate({ names: ['guest'], ca: guests })

function whoIsIt(_request: unknown, { tls }: RequestContext): Response {
  const certificate = tls?.peerCertificate
  const subject = certificate === undefined ? 'nobody' : new X509Certificate(certificate).subject
  return Response.json([tls?.version, tls?.alpn, tls?.serverName ?? '', tls?.authorized, subject])
}

function serving(t: TestContext, tls: Partial<TlsServerOptions>, options: Partial<ServeOptions> = {}): Promise<Http3Scene> {
  return serveHttp3(t, whoIsIt, { tls: { cert: localhost.cert, key: localhost.key, ...tls }, ...options })
}

/** Common names of certificates that the server shows to those who ask for a name. */
async function shownFor(scene: Http3Scene, host: string): Promise<string> {
  const client = scene.connect({ host })
  await client.ready
  const certificate = client.quic?.handshake.session.facts().peerCertificate as Uint8Array
  await client.close()
  return new X509Certificate(certificate).subject.replace('CN=', '')
}

test('what TLS agreed on is known to handlers', quick, async (t) => {
  const scene = await serving(t, {})
  assert.deepEqual(JSON.parse((await scene.connect().ask()).text), ['TLSv1.3', 'h3', 'localhost', false, 'nobody'])
  assert.deepEqual(JSON.parse((await scene.connect({ host: '127.0.0.1' }).ask()).text), ['TLSv1.3', 'h3', '', false, 'nobody'])
})

test('identities by name, by a callback, and by one that needs time', quick, async (t) => {
  let asked = 0
  const made: Record<string, TlsIdentity> = {}
  for (const name of ['given.test', 'late.test', 'foreign.test']) {
    const { cert, key } = makeCertificate({ names: [name], ca: authority })
    made[name] = { cert, key }
  }
  const scene = await serving(t, {
    names: { 'other.test': { cert: other.cert, key: other.key }, '*.wild.test': { cert: other.cert, key: other.key } },
    sniCallback: (name) => {
      asked++
      const identity = made[name] as TlsIdentity
      if (name === 'late.test') return new Promise((resolve) => setTimeout(resolve, 20, identity))
      if (name === 'foreign.test') return runInNewContext('Promise.resolve(identity)', { identity }) as Promise<TlsIdentity>
      return identity
    },
  })
  for (const [host, name] of [
    ['localhost', 'localhost'],
    ['other.test', 'other.test'],
    ['a.wild.test', 'other.test'],
    ['127.0.0.1', 'localhost'],
    ['given.test', 'given.test'],
    ['late.test', 'late.test'],
    ['foreign.test', 'foreign.test'],
  ] as const) {
    assert.equal(await shownFor(scene, host), name)
  }
  assert.equal(asked, 4, 'names that are known, and addresses, are not asked for')
  assert.deepEqual(scene.told, [])
})

test('a callback that fails, and identities that cannot be used, fail their handshake only', quick, async (t) => {
  const scene = await serving(t, {
    sniCallback: (name): TlsIdentity | undefined | Promise<TlsIdentity | undefined> => {
      if (name === 'throws.test') throw new Error('thrown')
      if (name === 'rejects.test') return Promise.reject(new Error('rejected'))
      if (name === 'misspelt.test') return { cert: other.cert, kye: other.key } as TlsIdentity
      if (name === 'slower.test') return { ...other, minVersion: 'TLSv1.2' }
      return undefined
    },
  })
  for (const host of ['throws.test', 'rejects.test', 'misspelt.test', 'slower.test']) {
    await assert.rejects(scene.connect({ host }).ready, { code: 'TLS_FAILED' }, host)
  }
  assert.equal((await scene.connect().ask()).status, 200)
  const told = scene.told.filter((error) => !(error instanceof NetworkError)).map((error) => (error as Error).message)
  assert.equal(told.length, 4)
  assert.deepEqual(told.slice(0, 2), ['thrown', 'rejected'])
  assert.match(String(told[2]), /there is no option sniCallback\(\)\.kye/)
  assert.match(String(told[3]), /minVersion is the same for all names/)
  assert.equal(scene.server.stats().handshakesFailed, 4)
  assert.equal(scene.server.stats().handshakes, 0)
})

test('clients that refuse the certificate, and those that speak another protocol, are counted', quick, async (t) => {
  const scene = await serving(t, {})
  await assert.rejects(scene.connect({ host: 'elsewhere.test' }).ready, { code: 'TLS_FAILED' })
  await until(() => scene.server.stats().handshakesFailed === 1, 'the failure is noticed')
  assert.deepEqual([scene.server.stats().handshakes, scene.server.stats().connections], [0, 0])
  assert.ok(scene.told.every((error) => error instanceof NetworkError))
})

test('updateTls is for handshakes to come, by TCP and QUIC, or for none', quick, async (t) => {
  const scene = await serving(t, { names: { 'other.test': { cert: other.cert, key: other.key } } })
  const standing = scene.connect()
  assert.equal((await standing.ask()).status, 200)
  const renewed = makeCertificate({ names: ['localhost'], commonName: 'renewed', ca: authority })
  scene.server.updateTls({ cert: renewed.cert, key: renewed.key })
  assert.equal(await shownFor(scene, 'localhost'), 'renewed')
  assert.equal(await shownFor(scene, 'other.test'), 'other.test')
  for (const change of [
    { cert: localhost.cert, key: other.key },
    { crt: localhost.cert },
    { requestCert: true },
    { maxVersion: 'TLSv1.2' },
    { names: { 'x.test': {} as TlsIdentity, 'y.test': { cert: 'no PEM', key: 'either' } } },
  ]) {
    assert.throws(() => scene.server.updateTls(change as TlsServerOptions), UsageError, JSON.stringify(change))
    assert.equal(await shownFor(scene, 'localhost'), 'renewed')
  }
  scene.server.updateTls({ names: {} })
  assert.equal((await standing.ask()).status, 200)
  await assert.rejects(shownFor(scene, 'other.test'), { code: 'TLS_FAILED' }, 'it has the certificate of localhost')
})

test('client certificates: who is let in', quick, async (t) => {
  const as = ({ cert, key }: Certificate): Partial<Http3ClientOptions> => ({ cert, key })
  const strict = await serving(t, { requestCert: true, ca: members.cert })
  assert.deepEqual(JSON.parse((await strict.connect(as(ada)).ask()).text).slice(3), [true, 'CN=ada'])
  // TLS 1.3: the client has finished before the server judges, so its first request may be what fails.
  await assert.rejects(strict.connect(as(guest)).ask(), { code: 'TLS_FAILED' })
  await assert.rejects(strict.connect().ask(), { code: 'TLS_FAILED' })
  await until(() => strict.server.stats().handshakesFailed === 2, 'both')
  assert.equal(strict.server.stats().http3.accepted, 1)
  const lenient = await serving(t, { requestCert: true, rejectUnauthorized: false, ca: members.cert })
  assert.deepEqual(JSON.parse((await lenient.connect(as(guest)).ask()).text).slice(3), [false, 'CN=guest'])
  assert.deepEqual(JSON.parse((await lenient.connect().ask()).text).slice(3), [false, 'nobody'])
  // Only the certificate asked for under an address: no name, and no 421.
  const byAddress = await strict.connect({ ...as(ada), host: '127.0.0.1' }).ask()
  assert.equal(byAddress.status, 200)
})

test('a client certificate opens no host that others may enter', quick, async (t) => {
  const cert = { cert: ada.cert, key: ada.key }
  const scene = await serving(t, {
    requestCert: true,
    ca: members.cert,
    names: { 'other.test': { cert: other.cert, key: other.key, ca: guests.cert } },
  })
  const client = scene.connect(cert)
  const status = async (from: Http3Client, host: string): Promise<number> => (await from.ask({ headers: { host } })).status
  assert.deepEqual(
    [
      await status(client, 'localhost'),
      await status(client, 'third.test:443'),
      await status(client, 'OTHER.test'),
      await status(client, '[::1]:1'),
    ],
    [200, 200, 421, 200],
  )
  const theirs = scene.connect({ host: 'other.test', cert: guest.cert, key: guest.key })
  assert.deepEqual([await status(theirs, 'other.test'), await status(theirs, 'localhost')], [200, 421])
  const asked = await serving(t, { requestCert: true, ca: members.cert, sniCallback: () => undefined })
  const sure = asked.connect(cert)
  assert.deepEqual([await status(sure, 'localhost'), await status(sure, 'third.test')], [200, 421])
})

test('identities of a callback are made ready once', quick, async (t) => {
  const identity = { cert: other.cert, key: other.key }
  let reads = 0
  const watched = new Proxy(identity, {
    get(target, name, receiver): unknown {
      if (name === 'cert') reads++
      return Reflect.get(target, name, receiver)
    },
  })
  const scene = await serving(t, { sniCallback: () => watched })
  assert.equal(await shownFor(scene, 'other.test'), 'other.test')
  const first = reads
  for (let i = 0; i < 3; i++) assert.equal(await shownFor(scene, 'other.test'), 'other.test')
  assert.equal(reads, first)
})
