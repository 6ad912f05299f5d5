import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { makeAuthority, makeCertificate, type Certificate } from '../testing/certificate.ts'
import { serverNameIn } from './tls-client-hello.ts'
import { authority, clientContext, localhost, Pair, serverContext, skip, withPair } from './tls-pair.test.ts'
import type { TlsIdentity } from './tls-options.ts'

/** Certificates that each are good for one name only, so that success says which was shown. */
function identity(...names: string[]): TlsIdentity {
  const { cert, key }: Certificate = makeCertificate({ names, ca: authority })
  return { cert, key }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('the identity of a server', { skip }, () => {
  const names = { 'one.test': identity('one.test'), '*.two.test': identity('*.two.test'), 'Three.test': identity('three.test') }

  for (const host of ['one.test', 'a.two.test', 'THREE.test', 'localhost']) {
    test(`is the one of ${host}`, () => {
      withPair({ server: { names }, session: { host } }, (pair) => {
        assert.deepEqual(pair.faults, [undefined, undefined])
        assert.equal(pair.server.open.facts().serverName, host.toLowerCase())
      })
    })
  }

  test('is the own one without a name, or for one nobody knows', () => {
    withPair({ server: { names }, session: { host: '127.0.0.1' } }, (pair) => assert.ok(pair.complete))
    withPair({ server: { names }, session: { host: 'two.test' } }, (pair) => {
      assert.match(pair.client.fault?.message ?? '', /hostname mismatch/)
      assert.equal(pair.server.fault, undefined)
    })
  })

  test('is refused with alert 112 where there is none', () => {
    const server = { names, cert: undefined, key: undefined }
    withPair({ server, session: { host: 'one.test' } }, (pair) => assert.ok(pair.complete))
    for (const [host, words] of [
      ['other.test', /no certificate for other\.test.*unrecognized_name/],
      ['127.0.0.1', /clients that name no host/],
    ] as const) {
      withPair({ server, session: { host } }, (pair) => {
        assert.equal(pair.server.fault?.code, 0x170)
        assert.match(pair.server.fault.message, words)
      })
    }
  })

  test('is found after a HelloRetryRequest too, and asked for once', () => {
    const asked: string[] = []
    const one = identity('one.test')
    const server = {
      groups: 'P-256',
      sniCallback: (name: string) => {
        asked.push(name)
        return one
      },
    }
    withPair({ server, client: { groups: 'X25519:P-256' }, session: { host: 'one.test' } }, (pair) => assert.ok(pair.complete))
    assert.deepEqual(asked, ['one.test'])
  })

  test('comes from the callback for names that are not listed', () => {
    const four = identity('four.test')
    const sniCallback = (name: string): TlsIdentity | undefined => (name === 'four.test' ? four : undefined)
    const servers = serverContext({ names, sniCallback })
    for (const host of ['one.test', 'four.test', 'four.test', 'localhost']) {
      withPair({ serverContext: servers, session: { host } }, (pair) => assert.ok(pair.complete, host))
    }
    servers.close()
  })

  test('may be new each time, and hundreds of them are let go', () => {
    const shared = identity('four.test')
    const servers = serverContext({ sniCallback: () => ({ ...shared }) })
    const clients = clientContext()
    for (let i = 0; i < 300; i++) {
      withPair({ serverContext: servers, clientContext: clients, session: { host: 'four.test' } }, (pair) => assert.ok(pair.complete))
    }
    servers.close()
    clients.close()
  })

  test('that cannot be used, or whose callback throws, fails that handshake only', () => {
    const failures: unknown[] = []
    const wrong = new Error('no database')
    const answers: (() => TlsIdentity | undefined)[] = [
      () => {
        throw wrong
      },
      () => ({ cert: 'garbage', key: 'garbage' }),
      () => ({ cert: localhost.cert, key: localhost.key, minVersion: 'TLSv1.2' }) as TlsIdentity,
      () => undefined,
    ]
    const servers = serverContext({ sniCallback: () => answers.shift()?.(), onCallbackFailed: (error) => failures.push(error) })
    for (let i = 0; i < 3; i++) {
      withPair({ serverContext: servers }, (pair) => {
        assert.equal(pair.server.fault?.code, 0x150)
        assert.match(pair.server.fault.message, /the SNI callback failed/)
      })
    }
    withPair({ serverContext: servers }, (pair) => assert.ok(pair.complete))
    assert.equal(failures[0], wrong)
    assert.match(String(failures[1]), /the identity of localhost.*cannot be used|holds no certificate/)
    assert.match(String(failures[2]), /there is no option sniCallback\(\)\.minVersion/)
    servers.close()
  })

  test('may be promised', async () => {
    const four = identity('four.test')
    const servers = serverContext({ sniCallback: async (name) => (name === 'four.test' ? four : undefined) })
    for (const host of ['four.test', 'localhost']) {
      const pair = new Pair({ serverContext: servers, session: { host } })
      pair.run()
      assert.deepEqual(pair.server.flights, [])
      assert.deepEqual(pair.server.secretOrder, [])
      // What comes meanwhile, if only again, waits.
      assert.equal(pair.server.open.resume(), undefined)
      await turn()
      pair.run()
      assert.deepEqual(pair.faults, [undefined, undefined])
      assert.ok(pair.complete)
      pair.close()
    }
    servers.close()
  })

  test('may be promised by what is no Promise of this realm', async () => {
    const four = identity('four.test')
    const foreign = runInNewContext('Promise.resolve(four)', { four }) as Promise<TlsIdentity>
    assert.ok(!(foreign instanceof Promise))
    const pair = new Pair({ server: { sniCallback: () => foreign }, session: { host: 'four.test' } })
    pair.run()
    await turn()
    assert.ok(pair.run().complete)
    pair.close()
  })

  test('that is promised and then refused fails that handshake only', async () => {
    const failures: unknown[] = []
    const servers = serverContext({
      sniCallback: () => Promise.reject(new Error('gone')),
      onCallbackFailed: (error) => failures.push(error),
    })
    const pair = new Pair({ serverContext: servers })
    pair.run()
    await turn()
    assert.equal(pair.server.fault?.code, 0x150)
    assert.match(String(failures[0]), /gone/)
    pair.close()
    servers.close()
  })

  test('that comes when session or context are closed is of no use, and does no harm', async () => {
    const release: (() => void)[] = []
    const servers = serverContext({
      sniCallback: () => new Promise((resolve) => release.push(() => resolve({ cert: localhost.cert, key: localhost.key }))),
    })
    const [closed, orphan] = [new Pair({ serverContext: servers }).run(), new Pair({ serverContext: servers }).run()]
    closed.close()
    servers.close()
    for (const resolve of release) resolve()
    await turn()
    assert.equal(closed.server.fault, undefined)
    assert.equal(orphan.server.fault?.alert, 112)
    orphan.close()
  })

  test('changes with an update, for handshakes to come', () => {
    const servers = serverContext({ names })
    const started = new Pair({ serverContext: servers })
    const running = new Pair({ serverContext: servers })
    started.client.open.start()
    const half = new Pair({ serverContext: servers })
    half.client.open.start()
    for (const { level, bytes } of half.client.flights.splice(0)) half.server.receive(level, bytes)
    const second = makeAuthority('second')
    const next = makeCertificate({ names: ['localhost'], ca: second })
    servers.update({ cert: next.cert, key: next.key, names: {} })
    // The ClientHello decides.
    assert.ok(half.run().complete)
    assert.match(started.run().client.fault?.message ?? '', /\(20\)/)
    running.run()
    assert.equal(running.complete, false)
    withPair({ serverContext: servers, client: { ca: second.cert } }, (pair) => assert.ok(pair.complete))
    withPair({ serverContext: servers, client: { ca: second.cert }, session: { host: 'one.test' } }, (pair) =>
      assert.equal(pair.complete, false),
    )
    assert.throws(() => servers.update({ cert: 'garbage' }), /holds no certificate/)
    assert.throws(() => servers.update({ alpn: ['x'] } as object), /there is no option alpn/)
    withPair({ serverContext: servers, client: { ca: second.cert } }, (pair) => assert.ok(pair.complete))
    for (const pair of [started, running, half]) pair.close()
    servers.close()
    assert.throws(() => servers.update({}), /closed/)
  })
})

describe('the server name of a ClientHello', () => {
  const extension = (name: string, type = 0): Uint8Array =>
    Uint8Array.from([0, name.length + 3, type, 0, name.length, ...Buffer.from(name, 'latin1')])

  test('is read in lower case', () => {
    assert.equal(serverNameIn(extension('Example.ORG')), 'example.org')
  })

  test('is none where it is cut, empty, of another type or no name', () => {
    const whole = extension('a.test')
    for (let length = 0; length < whole.length; length++) assert.equal(serverNameIn(whole.subarray(0, length)), undefined)
    assert.equal(serverNameIn(Uint8Array.from([...whole, 0])), undefined)
    for (const bytes of [extension(''), extension('a.test', 1), extension('a\0b'), extension('ü')])
      assert.equal(serverNameIn(bytes), undefined)
  })
})
