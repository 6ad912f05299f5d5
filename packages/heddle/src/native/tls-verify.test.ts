import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { describe, test } from 'node:test'
import { UsageError } from '../http/index.ts'
import { makeAuthority, makeCertificate } from '../testing/certificate.ts'
import { authority, clientContext, localhost, openssl, Pair, serverContext, skip, withPair, type PairOptions } from './tls-pair.test.ts'

function clientFault(options: PairOptions): { alert: number | undefined; message: string } {
  return withPair(options, ({ client }) => {
    assert.equal(client.open.complete, false)
    assert.deepEqual(client.secretOrder, ['2w', '2r'])
    return { alert: client.fault?.alert, message: client.fault?.message ?? '' }
  })
}

describe("a server's certificate", { skip }, () => {
  test('of another name: alert 42, error 62', () => {
    assert.deepEqual(clientFault({ session: { host: 'other.test' } }), {
      alert: 42,
      message: 'the certificate of other.test is not valid: hostname mismatch (62) (alert 42, bad_certificate)',
    })
  })

  test('of another address: alert 42, error 64', () => {
    for (const host of ['127.0.0.2', '[::2]']) {
      const { alert, message } = clientFault({ session: { host } })
      assert.equal(alert, 42)
      assert.match(message, /IP address mismatch \(64\)/)
    }
  })

  test('of an unknown authority: alert 48, error 20', () => {
    const { alert, message } = clientFault({ client: { ca: makeAuthority('another').cert } })
    assert.equal(alert, 48)
    assert.match(message, /unable to get local issuer certificate \(20\) \(alert 48, unknown_ca\)/)
  })

  test('that has expired: alert 45, error 10', () => {
    const { cert, key } = makeCertificate({ names: ['localhost'], ca: authority, days: -1 })
    const { alert, message } = clientFault({ server: { cert, key } })
    assert.equal(alert, 45)
    assert.match(message, /certificate has expired \(10\)/)
  })

  test('is not trusted by public authorities, in whatever list of theirs', () => {
    for (const ca of ['default', 'bundled', 'system'] as const) {
      const { alert, message } = clientFault({ client: { ca } })
      assert.equal(alert, 48, ca)
      assert.match(message, /\(20\)/)
    }
  })

  test('is not for a name that is only its common name (RFC 9110 §4.3.4)', () => {
    for (const names of [[], ['other.test']]) {
      const { cert, key } = makeCertificate({ names, commonName: 'localhost', ca: authority })
      assert.match(clientFault({ server: { cert, key } }).message, /hostname mismatch/)
    }
  })

  for (const host of ['localhost', 'LOCALHOST', 'localhost.', 'a.example.org', '127.0.0.1', '::1', '[::1]']) {
    test(`is good for ${host}`, () => {
      withPair({ session: { host } }, (pair) => {
        assert.ok(pair.complete)
        const { authorized, peerCertificate, serverName } = pair.client.open.facts()
        assert.ok(authorized)
        assert.ok(peerCertificate !== undefined && peerCertificate.length > 300)
        const name = /^[\d[:]/.test(host) ? undefined : host.toLowerCase().replace(/\.$/, '')
        assert.equal(serverName, name)
        assert.equal(pair.server.open.facts().serverName, name)
      })
    })
  }

  for (const host of ['a.b.example.org', 'example.org', 'xexample.org']) {
    test(`with a wildcard is not good for ${host} (RFC 9525 §6.3)`, () => {
      assert.match(clientFault({ session: { host } }).message, /hostname mismatch/)
    })
  }

  test('is taken whatever it says if rejectUnauthorized is false, and facts tell', () => {
    for (const options of [{ session: { host: 'other.test' } }, { client: { ca: [] } }]) {
      withPair({ ...options, client: { ...options.client, rejectUnauthorized: false } }, (pair) => {
        assert.ok(pair.complete)
        assert.equal(pair.client.open.facts().authorized, false)
        assert.ok(pair.client.open.facts().peerCertificate)
      })
    }
  })

  test('that signs itself is good for whoever has it as authority', () => {
    const { cert, key } = makeCertificate({ names: ['localhost'] })
    withPair({ server: { cert, key }, client: { ca: cert } }, (pair) => assert.ok(pair.complete))
  })

  test('of an intermediate authority comes with it', () => {
    const middle = makeAuthority('middle', 30, authority)
    const leaf = makeCertificate({ names: ['localhost'], ca: middle })
    withPair({ server: { cert: leaf.cert + middle.cert, key: leaf.key } }, (pair) => {
      assert.deepEqual(pair.faults, [undefined, undefined])
      assert.ok(pair.client.open.facts().authorized)
    })
    assert.match(clientFault({ server: { cert: leaf.cert, key: leaf.key } }).message, /unable to get local issuer certificate/)
    // In bytes, and the leaf's issuer known to the client.
    withPair(
      { server: { cert: Buffer.from(leaf.cert), key: Buffer.from(leaf.key) }, client: { ca: [authority.cert, middle.cert] } },
      (pair) => assert.ok(pair.complete),
    )
  })
})

describe('a host', { skip }, () => {
  test('that C would take for another, or that is none, is a UsageError', () => {
    const context = clientContext()
    for (const host of ['', 'localhost\0.evil.test', 'a b', 'ü.test', 'x'.repeat(256), '.example.org', 'a..b', '.', '[]']) {
      assert.throws(() => new Pair({ clientContext: context, session: { host } }), UsageError, host)
    }
    context.close()
  })
})

describe('an identity', { skip }, () => {
  const { cert, key } = localhost

  function unusable(options: Parameters<typeof serverContext>[0], expected: RegExp): void {
    assert.throws(
      () => serverContext(options),
      (error) => {
        assert.ok(error instanceof UsageError)
        assert.match(error.message, expected)
        return true
      },
    )
  }

  test('with an encrypted key opens with its passphrase only', () => {
    const encrypted = createPrivateKey(key).export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' }) as string
    withPair({ server: { key: encrypted, passphrase: 'secret' } }, (pair) => assert.ok(pair.complete))
    unusable({ key: encrypted, passphrase: 'wrong' }, /the TLS identity cannot be used: the key cannot be read/)
    unusable({ key: encrypted }, /the key cannot be read/)
  })

  test('takes a KeyObject', () => {
    withPair({ server: { key: createPrivateKey(key) } }, (pair) => assert.ok(pair.complete))
    unusable({ key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey }, /the key cannot be read/)
  })

  test('says what is wrong with it', () => {
    unusable({ cert: 'no certificate' }, /the TLS identity: cert holds no certificate in PEM/)
    unusable({ key: 'no key' }, /the key cannot be read/)
    unusable({ key: makeCertificate({ names: ['x'] }).key }, /key values mismatch/)
    unusable({ cert: [cert, cert], key: [key, key] }, /2 certificates of 1 kinds of keys/)
    unusable({ key: undefined }, /1 certificates and 0 keys/)
    unusable({ cert: undefined, key: undefined }, /tls needs a certificate/)
    unusable({ cert: cert + cert.replace(/M/, '*') }, /certificate 2 of 2 is broken/)
    unusable({ groups: 'P-9999' }, /groups "P-9999" cannot be used/)
    unusable({ ciphers: ['TLS_AES_128_CCM_SHA256' as 'TLS_AES_128_GCM_SHA256'] }, /QUIC has no cipher suite/)
    unusable({ ciphers: [] }, /ciphers is empty/)
    unusable({ alpn: [] }, /alpn is empty/)
    unusable({ alpn: [''] }, /no ALPN protocol/)
    unusable({ requestCert: true }, /requestCert needs ca/)
    unusable({ ca: 'garbage', requestCert: true }, /ca holds no certificate/)
    unusable({ ticketKeys: new Uint8Array(47) }, /ticketKeys/)
    unusable({ certs: cert } as object, /there is no option certs; did you mean cert\?/)
    unusable({ pfx: new Uint8Array(10), cert: undefined, key: undefined }, /the pfx cannot be read/)
    assert.throws(() => clientContext({ requestCert: true }), /requestCert is for servers/)
    assert.throws(() => clientContext({ side: 'both' as 'client' }), /side must be/)
    assert.throws(() => clientContext({ ca: '' }), /ca holds no certificate/)
  })

  test('can be a PKCS #12 archive', () => {
    const middle = makeAuthority('middle', 30, authority)
    const leaf = makeCertificate({ names: ['localhost'], ca: middle })
    const pfx = makePfx(leaf.cert, leaf.key, middle.cert, 'secret')
    withPair({ server: { cert: undefined, key: undefined, pfx, passphrase: 'secret' } }, (pair) => {
      assert.deepEqual(pair.faults, [undefined, undefined])
      assert.ok(pair.complete)
    })
    unusable({ cert: undefined, key: undefined, pfx, passphrase: 'wrong' }, /the pfx cannot be opened: mac verify failure/)
    unusable({ cert: undefined, key: undefined, pfx: pfx.subarray(0, 100), passphrase: 'secret' }, /the pfx cannot be read/)
  })
})

/** Node has no way to make an archive. */
function makePfx(cert: string, key: string, issuer: string, passphrase: string): Uint8Array {
  const { f, ffi, library, out } = openssl()
  const made = library.getFunctions({
    PKCS12_create: {
      return: 'pointer',
      arguments: ['pointer', 'pointer', 'pointer', 'pointer', 'pointer', 'i32', 'i32', 'i32', 'i32', 'i32'],
    },
    i2d_PKCS12: { return: 'i32', arguments: ['pointer', 'pointer'] },
    OPENSSL_sk_new_null: { return: 'pointer' },
    OPENSSL_sk_push: { return: 'i32', arguments: ['pointer', 'pointer'] },
  })
  const read = (pem: string): bigint => {
    const bytes = Buffer.from(pem)
    const bio = f.BIO_new_mem_buf(bytes, bytes.length)
    const certificate = f.PEM_read_bio_X509(bio, null, null, null)
    f.BIO_free(bio)
    return certificate
  }
  const der = createPrivateKey(key).export({ type: 'pkcs8', format: 'der' })
  out[0] = ffi.getRawPointer(der)
  const privateKey = f.d2i_AutoPrivateKey(null, out, BigInt(der.length))
  const stack = made.OPENSSL_sk_new_null()
  made.OPENSSL_sk_push(stack, read(issuer))
  const archive = made.PKCS12_create(passphrase, 'test', privateKey, read(cert), stack, 0, 0, 0, 0, 0)
  const bytes = Buffer.alloc(made.i2d_PKCS12(archive, null))
  out[0] = ffi.getRawPointer(bytes)
  made.i2d_PKCS12(archive, out)
  return bytes
}
