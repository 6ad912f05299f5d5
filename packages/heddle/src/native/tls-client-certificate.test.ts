import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { describe, test } from 'node:test'
import { makeAuthority, makeCertificate } from '../testing/certificate.ts'
import { authority, skip, withPair } from './tls-pair.test.ts'

describe('client certificates', { skip }, () => {
  const mine = makeCertificate({ names: ['client'], ca: authority })
  const identity = { cert: mine.cert, key: mine.key }
  const strict = { requestCert: true, ca: authority.cert }

  test('are not asked for by default', () => {
    withPair({ client: identity }, (pair) => {
      assert.ok(pair.complete)
      assert.equal(pair.server.open.facts().peerCertificate, undefined)
    })
  })

  test('one that is good authorizes', () => {
    withPair({ client: identity, server: strict }, (pair) => {
      assert.ok(pair.complete)
      const { authorized, peerCertificate } = pair.server.open.facts()
      assert.ok(authorized)
      assert.equal(new X509Certificate(peerCertificate ?? '').subject, 'CN=client')
    })
  })

  test('none at all is alert 116', () => {
    withPair({ server: strict }, (pair) => {
      assert.equal(pair.server.fault?.code, 0x174)
      assert.match(pair.server.fault.message, /peer did not return a certificate.*certificate_required/)
      assert.equal(pair.server.open.complete, false)
    })
  })

  test('one of another authority is alert 48, with the reason', () => {
    const stranger = makeCertificate({ names: ['stranger'], ca: makeAuthority('another') })
    withPair({ client: { cert: stranger.cert, key: stranger.key }, server: strict }, (pair) => {
      assert.equal(pair.server.fault?.alert, 48)
      assert.match(pair.server.fault.message, /^the client's certificate is not valid: unable to get local issuer certificate \(20\)/)
      assert.equal(pair.server.open.complete, false)
    })
  })

  test('with rejectUnauthorized false all may come in, and facts tell', () => {
    const stranger = makeCertificate({ names: ['stranger'], ca: makeAuthority('another') })
    const lax = { ...strict, rejectUnauthorized: false }
    for (const [client, authorized] of [
      [{}, false],
      [{ cert: stranger.cert, key: stranger.key }, false],
      [identity, true],
    ] as const) {
      withPair({ client, server: lax }, (pair) => {
        assert.ok(pair.complete)
        assert.equal(pair.server.open.facts().authorized, authorized)
        assert.equal(pair.server.open.facts().peerCertificate === undefined, client === undefined || !('cert' in client))
      })
    }
  })

  test('each name may trust others', () => {
    const second = makeAuthority('second')
    const other = makeCertificate({ names: ['other client'], ca: second })
    const server = { ...strict, names: { 'a.example.org': { ca: second.cert } } }
    const identities = [identity, { cert: other.cert, key: other.key }]
    for (const [host, good] of [
      ['localhost', 0],
      ['a.example.org', 1],
    ] as const) {
      for (const [i, client] of identities.entries()) {
        withPair({ client, server, session: { host } }, (pair) => assert.equal(pair.server.open.complete, i === good, `${host} ${i}`))
      }
    }
  })
})
