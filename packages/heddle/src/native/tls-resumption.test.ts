import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { makeAuthority, makeCertificate } from '../testing/certificate.ts'
import type { SessionFacts } from './tls-facts.ts'
import { authority, clientContext, Pair, serverContext, skip, withPair, type PairOptions } from './tls-pair.test.ts'
import { Level } from './types.ts'

function ticketOf(options: PairOptions): Uint8Array {
  return withPair(options, (pair) => {
    assert.deepEqual(pair.faults, [undefined, undefined])
    const [ticket] = pair.client.tickets
    assert.ok(ticket)
    return ticket
  })
}

function resumed(pair: Pair): boolean {
  assert.deepEqual(pair.faults, [undefined, undefined])
  assert.ok(pair.complete)
  const both = [pair.client, pair.server].map((end) => (end.open.facts() as SessionFacts).resumed)
  assert.equal(both[0], both[1])
  return both[0] === true
}

describe('a ticket', { skip }, () => {
  test('resumes a session, certificate and all', () => {
    const both = { clientContext: clientContext(), serverContext: serverContext() }
    const ticket = ticketOf(both)
    withPair({ ...both, session: { ticket } }, (pair) => {
      assert.ok(resumed(pair))
      assert.ok(pair.client.open.facts().authorized)
      assert.ok(pair.client.open.facts().peerCertificate)
      assert.equal(pair.client.open.earlyData, 'none')
      assert.equal(pair.client.tickets.length > 0, true)
    })
    both.clientContext.close()
    both.serverContext.close()
  })

  test('of octets that are none, cut or changed makes a whole handshake', () => {
    const both = { clientContext: clientContext(), serverContext: serverContext() }
    const ticket = ticketOf(both)
    const changed = Uint8Array.from(ticket)
    changed[changed.length >> 1] = (changed[changed.length >> 1] as number) ^ 1
    const others = [new Uint8Array(0), randomBytes(200), ticket.subarray(0, 33), ticket.subarray(0, ticket.length - 1), changed]
    for (let length = 0; length < ticket.length; length += 50) others.push(ticket.subarray(0, length))
    for (const bad of others) {
      withPair({ ...both, session: { ticket: bad } }, (pair) => {
        assert.deepEqual(pair.faults, [undefined, undefined])
        assert.ok(pair.complete)
      })
    }
    both.clientContext.close()
    both.serverContext.close()
  })

  test('is for the host, trust and strictness it was made with', () => {
    const servers = serverContext()
    const lax = clientContext({ rejectUnauthorized: false, ca: [] })
    const ticket = ticketOf({ serverContext: servers, clientContext: lax })
    withPair({ serverContext: servers, session: { ticket } }, (pair) => assert.equal(resumed(pair), false))
    withPair({ serverContext: servers, clientContext: lax, session: { ticket, host: '127.0.0.1' } }, (pair) =>
      assert.equal(resumed(pair), false),
    )
    withPair({ serverContext: servers, clientContext: lax, session: { ticket } }, (pair) => {
      assert.ok(resumed(pair))
      assert.equal(pair.client.open.facts().authorized, false)
    })
    lax.close()
    servers.close()
  })

  test('of clients with certificates keeps them, and is no way around another authority', () => {
    const mine = makeCertificate({ names: ['client'], ca: authority })
    const servers = serverContext({
      requestCert: true,
      ca: authority.cert,
      names: { 'a.example.org': { ca: makeAuthority('second').cert } },
    })
    const clients = clientContext({ cert: mine.cert, key: mine.key })
    const ticket = ticketOf({ serverContext: servers, clientContext: clients })
    withPair({ serverContext: servers, clientContext: clients, session: { ticket } }, (pair) => {
      assert.ok(resumed(pair))
      assert.ok(pair.server.open.facts().authorized)
      assert.ok(pair.server.open.facts().peerCertificate)
    })
    // After an update that trusts others it is worth nothing.
    servers.update({ ca: makeAuthority('third').cert })
    withPair({ serverContext: servers, clientContext: clients, session: { ticket } }, (pair) => assert.equal(pair.server.fault?.alert, 48))
    clients.close()
    servers.close()
  })

  test('outlives an update of the certificate, and goes to other workers with common keys', () => {
    const ticketKeys = randomBytes(48)
    const clients = clientContext()
    const first = serverContext({ ticketKeys })
    const ticket = ticketOf({ serverContext: first, clientContext: clients })
    const next = makeCertificate({ names: ['localhost'], ca: authority })
    first.update({ cert: next.cert, key: next.key })
    withPair({ serverContext: first, clientContext: clients, session: { ticket } }, (pair) => assert.ok(resumed(pair)))
    const second = serverContext({ ticketKeys })
    withPair({ serverContext: second, clientContext: clients, session: { ticket } }, (pair) => assert.ok(resumed(pair)))
    const stranger = serverContext()
    withPair({ serverContext: stranger, clientContext: clients, session: { ticket } }, (pair) => assert.equal(resumed(pair), false))
    for (const context of [clients, first, second, stranger]) context.close()
  })

  test('comes not from a server without tickets', () => {
    withPair({ server: { tickets: false } }, (pair) => {
      assert.ok(pair.complete)
      assert.deepEqual(pair.client.tickets, [])
    })
  })

  test('two in one piece are two', () => {
    withPair({}, (pair) => {
      assert.equal(pair.client.tickets.length, 2)
      const count = pair.client.tickets.length
      pair.client.receive(Level.application, new Uint8Array([...sessionTicket(1), ...sessionTicket(2)]))
      assert.equal(pair.client.fault, undefined)
      assert.equal(pair.client.tickets.length, count + 2)
    })
  })

  test('with a limit of early data, which QUIC has not, is a PROTOCOL_VIOLATION (RFC 9001 §4.6.1)', () => {
    withPair({}, (pair) => {
      pair.client.receive(Level.application, new Uint8Array(sessionTicket(1, [0, 42, 0, 4, 255, 255, 255, 255])))
      assert.deepEqual(pair.faults, [undefined, undefined])
      pair.client.receive(Level.application, new Uint8Array(sessionTicket(1, [0, 42, 0, 4, 0, 0, 64, 0])))
      assert.equal(pair.client.fault?.code, 0x0a)
      assert.match(pair.client.fault.message, /max early data/)
      assert.equal(pair.client.tickets.length, 3)
    })
  })
})

/** RFC 8446 §4.6.1, with one octet of ticket. */
function sessionTicket(content: number, extensions: readonly number[] = []): readonly number[] {
  const body = [0, 0, 0, 60, 1, 2, 3, 4, 1, content, 0, 1, content, 0, extensions.length, ...extensions]
  return [4, 0, 0, body.length, ...body]
}

describe('early data', { skip }, () => {
  const early = { earlyData: true }

  function both(): { clientContext: ReturnType<typeof clientContext>; serverContext: ReturnType<typeof serverContext>; close(): void } {
    const clients = clientContext()
    const servers = serverContext(early)
    return {
      clientContext: clients,
      serverContext: servers,
      close: () => {
        clients.close()
        servers.close()
      },
    }
  }

  test('is accepted once, with secrets before the handshake is done', () => {
    const contexts = both()
    const ticket = ticketOf(contexts)
    withPair({ ...contexts, session: { ticket, ...early } }, (pair) => {
      assert.ok(resumed(pair))
      assert.equal(pair.client.open.earlyData, 'accepted')
      assert.equal(pair.server.open.earlyData, 'accepted')
      assert.deepEqual(pair.client.secretOrder, ['1w', '2w', '2r', '3w', '3r'])
      assert.deepEqual(pair.server.secretOrder, ['1r', '2w', '3w', '2r', '3r'])
      assert.deepEqual(pair.client.secrets.get('1w'), pair.server.secrets.get('1r'))
      assert.equal(pair.client.tickets.length > 0, true)
    })
    // RFC 8446 §8.1: the same ticket again.
    withPair({ ...contexts, session: { ticket, ...early } }, (pair) => {
      assert.equal(resumed(pair), false)
      assert.equal(pair.client.open.earlyData, 'rejected')
      assert.equal(pair.server.open.earlyData, 'rejected')
    })
    contexts.close()
  })

  test('is read before the client is done, and then the server is not', () => {
    const contexts = both()
    const pair = new Pair({ ...contexts, session: { ticket: ticketOf(contexts), ...early } })
    pair.client.open.start()
    assert.equal(pair.client.open.earlyData, 'offered')
    for (const { level, bytes } of pair.client.flights.splice(0)) pair.server.receive(level, bytes)
    assert.equal(pair.server.open.earlyData, 'accepted')
    assert.ok(pair.server.secrets.has('1r') && pair.server.secrets.has('3w'))
    assert.equal(pair.server.open.complete, false)
    assert.equal(pair.client.open.complete, false)
    pair.run()
    assert.ok(pair.complete)
    pair.close()
    contexts.close()
  })

  test('is rejected where the limits are others, by a server without, and with a HelloRetryRequest', () => {
    const ticketKeys = randomBytes(48)
    const contexts = both()
    const clients = contexts.clientContext
    const ticket = ticketOf({ ...contexts, serverSession: { resumptionContext: 'a' } })
    withPair({ ...contexts, session: { ticket, ...early }, serverSession: { resumptionContext: 'b' } }, (pair) => {
      assert.equal(resumed(pair), false)
      assert.equal(pair.client.open.earlyData, 'rejected')
    })
    const plain = serverContext({ ticketKeys })
    withPair({ clientContext: clients, serverContext: plain, session: { ticket: ticketOf(contexts), ...early } }, (pair) => {
      assert.equal(resumed(pair), false)
      assert.equal(pair.client.open.earlyData, 'rejected')
    })
    const otherGroup = serverContext({ ...early, groups: 'P-256' })
    const twoGroups = clientContext({ groups: 'X25519:P-256' })
    const other = ticketOf({ clientContext: twoGroups, serverContext: otherGroup })
    withPair({ clientContext: twoGroups, serverContext: otherGroup, session: { ticket: other, ...early } }, (pair) => {
      assert.equal(pair.client.open.earlyData, 'rejected')
      assert.equal(pair.server.open.earlyData, 'rejected')
      assert.ok(pair.complete)
      assert.deepEqual(pair.client.secretOrder, ['1w', '2w', '2r', '3w', '3r'])
    })
    twoGroups.close()
    otherGroup.close()
    plain.close()
    contexts.close()
  })

  test('is not offered unless asked for, nor with a ticket that does not allow it', () => {
    const contexts = both()
    withPair({ ...contexts, session: { ticket: ticketOf(contexts) } }, (pair) => {
      assert.equal(pair.client.open.earlyData, 'none')
      assert.equal(pair.client.secretOrder[0], '2w')
    })
    contexts.close()
    const plain = { clientContext: clientContext(), serverContext: serverContext() }
    withPair({ ...plain, session: { ticket: ticketOf(plain), ...early } }, (pair) => {
      assert.ok(resumed(pair))
      assert.equal(pair.client.open.earlyData, 'none')
    })
    plain.clientContext.close()
    plain.serverContext.close()
  })
})
