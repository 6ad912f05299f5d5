import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TlsCallbacks } from './tls-callbacks.ts'
import { authority, clientContext, End, localhost, openssl, parameters, skip } from './tls-pair.test.ts'
import { tlsSettings } from './tls-options.ts'
import type { SessionOwner } from './tls-identity-choice.ts'
import { OpenSslSession } from './tls-session.ts'
import { makeSslContext } from './tls-ssl-context.ts'

/* A server that leaves out what QUIC asks for: `omit` is done by hand what a context never does. */
function clientOf(omit: 'alpn' | 'parameters' | 'nothing'): End {
  const { f } = openssl()
  const settings = tlsSettings({ side: 'server', cert: localhost.cert, key: localhost.key })
  const callbacks = new TlsCallbacks(openssl())
  const context = makeSslContext(openssl(), callbacks, settings, settings, 'the test')
  if (omit === 'alpn') f.SSL_CTX_set_alpn_select_cb(context, null, null)
  const ssl = f.SSL_new(context)
  f.SSL_set_accept_state(ssl)
  f.SSL_set_quic_tls_cbs(ssl, callbacks.dispatch, null)
  f.SSL_set_quic_tls_transport_params(ssl, parameters, BigInt(parameters.length))
  const owner: SessionOwner = {
    openssl: openssl(),
    callbacks,
    settings,
    identityOf: () => ({ context, trust: '', usable: true }),
    callbackFailed: () => {},
  }
  const server = new End()
  server.session = new OpenSslSession(owner, ssl, server, {
    host: '',
    transportParameters: parameters,
    binding: undefined,
    resumptionContext: '',
  })
  const clients = clientContext({ ca: authority.cert })
  const client = new End()
  client.session = clients.client({ host: 'localhost', transportParameters: parameters }, client)
  // OpenSSL sends the extension always, if empty: what is not told was not there.
  if (omit === 'parameters') (client.open as OpenSslSession).transportParameters = () => true
  client.open.start()
  for (let moved = true; moved;) {
    const flights = [client.flights.splice(0), server.flights.splice(0)] as const
    for (const { level, bytes } of flights[0]) server.receive(level, bytes)
    for (const { level, bytes } of flights[1]) client.receive(level, bytes)
    moved = flights[0].length + flights[1].length > 0
  }
  for (const end of [client, server]) end.open.close()
  clients.close()
  f.SSL_CTX_free(context)
  return client
}

describe('a server', { skip }, () => {
  test('that leaves nothing out is well', () => {
    const client = clientOf('nothing')
    assert.equal(client.fault, undefined)
    assert.ok(client.open.complete)
  })

  test('that chooses no protocol is refused with no_application_protocol (RFC 9001 §8.1)', () => {
    const client = clientOf('alpn')
    assert.equal(client.fault?.code, 0x178)
    assert.match(client.fault.message, /chose no application protocol/)
    assert.equal(client.open.complete, false)
  })

  test('that sends no transport parameters is refused with missing_extension (RFC 9001 §8.2)', () => {
    const client = clientOf('parameters')
    assert.equal(client.fault?.code, 0x16d)
    assert.match(client.fault.message, /sent no transport parameters/)
    assert.equal(client.open.complete, false)
  })
})
