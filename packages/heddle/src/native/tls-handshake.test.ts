import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Pair, parameters, skip, withPair, type End } from './tls-pair.test.ts'
import type { SessionFacts } from './tls-facts.ts'
import { Level, type CipherSuite } from './types.ts'

function message(type: number, length: number, content: readonly number[] = []): Uint8Array {
  return new Uint8Array([type, length >> 16, (length >> 8) & 0xff, length & 0xff, ...content])
}

function assertSameSecrets(client: End, server: End): void {
  for (const [mine, other] of [
    ['2w', '2r'],
    ['2r', '2w'],
    ['3w', '3r'],
    ['3r', '3w'],
  ] as const) {
    assert.deepEqual(client.secrets.get(mine), server.secrets.get(other), mine)
    assert.ok(client.secrets.get(mine))
  }
}

describe('a TLS handshake', { skip }, () => {
  test('agrees on secrets, parameters and a protocol', () => {
    withPair({}, (pair) => {
      const { client, server } = pair
      assert.deepEqual(pair.faults, [undefined, undefined])
      assert.ok(pair.complete)
      // RFC 9001 §4.1.4
      assert.deepEqual(client.secretOrder, ['2w', '2r', '3w', '3r'])
      assert.deepEqual(server.secretOrder, ['2w', '2r', '3w', '3r'])
      assertSameSecrets(client, server)
      assert.deepEqual(Buffer.from(client.parameters ?? []), Buffer.from(parameters))
      assert.deepEqual(Buffer.from(server.parameters ?? []), Buffer.from(parameters))
      const facts = server.open.facts()
      assert.equal(facts.version, 'TLSv1.3')
      assert.equal(facts.cipher, 'TLS_AES_128_GCM_SHA256')
      assert.equal(facts.alpn, 'h3')
      assert.equal(facts.serverName, 'localhost')
      assert.equal(facts.authorized, false)
      assert.equal(facts.peerCertificate, undefined)
      assert.equal(client.open.facts().authorized, true)
      assert.equal(client.open.facts().alpn, 'h3')
      assert.equal(client.open.earlyData, 'none')
      assert.equal(server.open.earlyData, 'none')
      assert.equal(client.tickets.length, 2)
    })
  })

  test('by default is safe from quantum computers, and takes two packets for it', () => {
    const pair = new Pair({ client: { groups: undefined } })
    pair.client.open.start()
    const [hello] = pair.client.flights
    assert.ok(hello !== undefined && hello.bytes.length > 1200)
    pair.run()
    assert.ok(pair.complete)
    assert.equal((pair.client.open.facts() as SessionFacts).group, 'X25519MLKEM768')
    pair.close()
  })

  test('with a server that lacks the first group needs no second ClientHello', () => {
    withPair({ client: { groups: undefined }, server: { groups: 'X25519' } }, (pair) => {
      assert.ok(pair.complete)
      assert.equal((pair.client.open.facts() as SessionFacts).group?.toUpperCase(), 'X25519')
    })
  })

  for (const pieceSize of [Infinity, 1, 3, 100]) {
    test(`with a HelloRetryRequest, ${pieceSize} octets at a time`, () => {
      const pair = new Pair({ client: { groups: 'X25519:P-256' }, server: { groups: 'P-256' } })
      pair.pieceSize = pieceSize
      const hellos: number[] = []
      pair.client.during = (what) => {
        if (what === 'onCrypto') hellos.push(pair.client.secretOrder.length)
      }
      pair.run()
      assert.deepEqual(pair.faults, [undefined, undefined])
      assert.ok(pair.complete)
      // Two ClientHellos before any secret, and a Finished.
      assert.deepEqual(hellos, [0, 0, 2])
      assertSameSecrets(pair.client, pair.server)
      assert.equal((pair.server.open.facts() as SessionFacts).group, 'secp256r1')
      pair.close()
    })

    test(`${pieceSize} octets at a time`, () => {
      const pair = new Pair()
      pair.pieceSize = pieceSize
      pair.run()
      assert.deepEqual(pair.faults, [undefined, undefined])
      assert.ok(pair.complete)
      assert.equal(pair.client.tickets.length, 2)
      pair.close()
    })
  }

  test('several messages of one level in one piece', () => {
    const pair = new Pair()
    pair.client.open.start()
    for (const { level, bytes } of pair.client.flights.splice(0)) pair.server.receive(level, bytes)
    const flights = pair.server.flights.splice(0)
    const [hello] = flights
    assert.ok(hello)
    pair.client.receive(hello.level, hello.bytes)
    pair.client.receive(Level.handshake, Buffer.concat(flights.slice(1).map(({ bytes }) => bytes)))
    assert.ok(pair.client.open.complete)
    pair.run()
    assert.ok(pair.complete)
    pair.close()
  })

  test('levels that come too early wait for theirs', () => {
    const pair = new Pair()
    pair.client.open.start()
    for (const { level, bytes } of pair.client.flights.splice(0)) pair.server.receive(level, bytes)
    const flights = pair.server.flights.splice(0)
    const [hello, ...later] = flights
    assert.ok(hello)
    for (const { level, bytes } of later) pair.client.receive(level, bytes)
    assert.equal(pair.client.fault, undefined)
    assert.equal(pair.client.open.complete, false)
    pair.client.receive(hello.level, hello.bytes)
    pair.run()
    assert.ok(pair.complete)
    pair.close()
  })

  const suites: readonly CipherSuite[] = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256']
  for (const suite of suites) {
    test(`with ${suite}`, () => {
      withPair({ client: { ciphers: [suite] } }, (pair) => {
        assert.ok(pair.complete)
        assert.equal(pair.client.open.facts().cipher, suite)
        const { secrets } = pair.server
        assert.deepEqual(
          [...secrets.values()].map((entry) => entry.suite),
          [suite, suite, suite, suite],
        )
        assert.equal(secrets.get('3w')?.secret.length, suite.endsWith('384') ? 48 : 32)
        assertSameSecrets(pair.client, pair.server)
      })
    })
  }

  test('without a cipher suite in common fails with alert 40', () => {
    withPair({ client: { ciphers: ['TLS_AES_256_GCM_SHA384'] }, server: { ciphers: ['TLS_AES_128_GCM_SHA256'] } }, (pair) => {
      assert.equal(pair.server.fault?.alert, 40)
      assert.equal(pair.server.fault?.code, 0x128)
      assert.match(pair.server.fault.message, /no shared cipher.*alert 40, handshake_failure/)
    })
  })

  test('without a group in common fails with alert 40', () => {
    withPair({ client: { groups: 'X25519' }, server: { groups: 'P-256' } }, (pair) => assert.equal(pair.server.fault?.alert, 40))
  })

  test('without a protocol in common fails with alert 120 (RFC 9001 §8.1)', () => {
    withPair({ client: { alpn: ['h3-99', 'h3x'] }, server: { alpn: ['h3'] } }, (pair) => {
      assert.equal(pair.server.fault?.alert, 120)
      assert.match(pair.server.fault.message, /no_application_protocol/)
    })
  })

  test('the server chooses the protocol', () => {
    withPair({ client: { alpn: ['a', 'hq-interop', 'h3'] }, server: { alpn: ['h3', 'hq-interop'] } }, (pair) => {
      assert.equal(pair.client.open.facts().alpn, 'h3')
    })
  })

  test('the keylog gets the lines of both sides', () => {
    const lines: string[][] = [[], []]
    const log = (side: number) => (line: string) => void lines[side]?.push(line)
    withPair({ client: { keylog: log(0) }, server: { keylog: log(1) } }, ({ client }) => {
      // The secrets that the handlers got are those that are logged.
      for (const [label, secret] of [
        ['CLIENT_HANDSHAKE_TRAFFIC_SECRET', '2w'],
        ['SERVER_HANDSHAKE_TRAFFIC_SECRET', '2r'],
        ['CLIENT_TRAFFIC_SECRET_0', '3w'],
        ['SERVER_TRAFFIC_SECRET_0', '3r'],
      ] as const) {
        const line = lines[0]?.find((text) => text.startsWith(`${label} `))
        assert.equal(line?.split(' ')[2], Buffer.from(client.secrets.get(secret)?.secret ?? []).toString('hex'))
      }
    })
    assert.deepEqual(lines[0]?.toSorted(), lines[1]?.toSorted())
    assert.ok(lines[0]?.some((line) => /^SERVER_TRAFFIC_SECRET_0 [0-9a-f]{64} [0-9a-f]{64}$/.test(line)))
  })

  test('facts before the end, and after the session', () => {
    const pair = new Pair()
    assert.equal(pair.client.open.facts().alpn, undefined)
    pair.run()
    pair.close()
    assert.equal(pair.client.open.facts().alpn, 'h3')
    const unfinished = new Pair()
    unfinished.close()
    assert.equal(unfinished.client.open.facts().serverName, 'localhost')
  })
})

describe('a TLS peer that breaks the rules', { skip }, () => {
  test('garbage instead of a ClientHello', () => {
    const pair = new Pair()
    pair.server.receive(Level.initial, new Uint8Array(100).fill(0x55))
    assert.equal(pair.server.fault?.alert, 10)
    assert.equal(pair.server.open.receive(Level.initial, new Uint8Array(4)), undefined)
    pair.close()
  })

  test('a message of enormous length is refused at its header', () => {
    const pair = new Pair()
    pair.server.receive(Level.initial, message(1, 0xff_ffff, [3, 3]))
    assert.equal(pair.server.fault?.alert, 47)
    pair.close()
  })

  test('a ClientHello that ends anywhere waits, and faults nowhere', () => {
    const { bytes } = firstFlight()
    for (let length = 0; length < bytes.length; length++) {
      const pair = new Pair()
      pair.server.receive(Level.initial, bytes.subarray(0, length))
      assert.equal(pair.server.fault, undefined)
      assert.deepEqual(pair.server.flights, [])
      pair.close()
    }
  })

  test('a ClientHello with any octet changed makes a fault or a handshake, and never a throw', () => {
    const { bytes } = firstFlight()
    let faults = 0
    for (let at = 0; at < bytes.length; at++) {
      const changed = Uint8Array.from(bytes)
      changed[at] = (changed[at] as number) ^ 0xff
      const pair = new Pair()
      pair.server.receive(Level.initial, changed)
      if (pair.server.fault !== undefined) faults++
      pair.close()
    }
    assert.ok(faults > 40)
  })

  test("a server's flight with any octet changed never completes", () => {
    const pair = new Pair()
    pair.client.open.start()
    for (const { level, bytes } of pair.client.flights) pair.server.receive(level, bytes)
    const flights = pair.server.flights.filter(({ level }) => level === Level.handshake)
    const whole = Buffer.concat(flights.map(({ bytes }) => bytes))
    pair.close()
    for (let at = 0; at < whole.length; at += 7) {
      const next = new Pair()
      next.client.open.start()
      for (const { level, bytes } of next.client.flights.splice(0)) next.server.receive(level, bytes)
      const [hello, ...rest] = next.server.flights.splice(0)
      assert.ok(hello)
      next.client.receive(hello.level, hello.bytes)
      const changed = Buffer.concat(rest.map(({ bytes }) => bytes))
      const place = at % changed.length
      changed[place] = (changed[place] as number) ^ 1
      next.client.receive(Level.handshake, changed)
      assert.equal(next.client.open.complete, false, `octet ${place}`)
      next.close()
    }
  })

  test('CRYPTO octets in 0-RTT, or at a level that is over, are a PROTOCOL_VIOLATION (RFC 9001 §4.1.3)', () => {
    for (const level of [Level.early, Level.initial, Level.handshake]) {
      withPair({}, (pair) => {
        pair.server.receive(level, message(20, 0))
        assert.equal(pair.server.fault?.code, 0x0a)
        assert.match(pair.server.fault.message, /level of encryption/)
      })
    }
  })

  test('octets behind the last message of a level are a fault', () => {
    const pair = new Pair()
    pair.client.open.start()
    for (const { level, bytes } of pair.client.flights.splice(0)) pair.server.receive(level, bytes)
    const [hello] = pair.server.flights
    assert.ok(hello)
    pair.client.receive(Level.initial, Buffer.concat([hello.bytes, message(8, 2, [0, 0])]))
    assert.ok(pair.client.fault)
    assert.equal(pair.client.open.complete, false)
    pair.close()
  })

  test('a KeyUpdate of TLS is alert 10 (RFC 9001 §6)', () => {
    withPair({}, (pair) => {
      pair.client.receive(Level.application, message(24, 1, [0]))
      assert.equal(pair.client.fault?.code, 0x10a)
      pair.server.receive(Level.application, message(24, 1, [0]))
      assert.equal(pair.server.fault?.code, 0x10a)
    })
  })

  test('a certificate request after the handshake, and an EndOfEarlyData, are refused', () => {
    withPair({}, (pair) => {
      pair.client.receive(Level.application, message(13, 3, [0, 0, 0]))
      assert.equal(pair.client.fault?.alert, 10)
      pair.server.receive(Level.application, message(5, 0))
      assert.equal(pair.server.fault?.alert, 10)
    })
  })

  test('nothing is an empty piece', () => {
    const pair = new Pair()
    pair.server.receive(Level.early, new Uint8Array(0))
    pair.run()
    assert.ok(pair.complete)
    pair.close()
  })
})

function firstFlight(): { readonly bytes: Uint8Array } {
  const pair = new Pair()
  pair.client.open.start()
  pair.close()
  const [flight] = pair.client.flights
  if (flight === undefined) throw new Error('no ClientHello')
  // RFC 9001 §8.4: no legacy_session_id.
  assert.equal(flight.bytes[38], 0)
  return flight
}
