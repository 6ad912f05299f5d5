import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Pair, skip, withPair } from './tls-pair.test.ts'
import { Level, type TlsFault } from './types.ts'

/* ClientHellos that no OpenSSL makes. RFC 8446 §4.1.2: version 2, random 32, session id, suites, compression, extensions. */

interface Hello {
  readonly version: number
  readonly random: Buffer
  sessionId: Buffer
  readonly suites: Buffer
  readonly compression: Buffer
  extensions: { readonly type: number; content: Buffer }[]
}

function read(bytes: Uint8Array): Hello {
  const buffer = Buffer.from(bytes)
  let at = 4
  const take = (count: number): Buffer => buffer.subarray(at, (at += count))
  const number = (size: number): number => take(size).readUIntBE(0, size)
  const version = number(2)
  const random = take(32)
  const sessionId = take(number(1))
  const suites = take(number(2))
  const compression = take(number(1))
  const extensions: Hello['extensions'] = []
  const limit = number(2) + at
  while (at < limit) extensions.push({ type: number(2), content: take(number(2)) })
  assert.equal(at, buffer.length)
  return { version, random, sessionId, suites, compression, extensions }
}

function vector(size: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const length = Buffer.alloc(size)
  length.writeUIntBE(content.length, 0, size)
  return Buffer.concat([length, content])
}

function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff])
}

function write({ version, random, sessionId, suites, compression, extensions }: Hello): Uint8Array {
  const list = extensions.map(({ type, content }) => Buffer.concat([uint16(type), vector(2, content)]))
  const body = [uint16(version), random, vector(1, sessionId), vector(2, suites), vector(1, compression), vector(2, ...list)]
  return Buffer.concat([Buffer.from([1]), vector(3, ...body)])
}

/** What a server finds of a ClientHello that is changed, which nothing is answered to. */
function faultOf(change: (hello: Hello) => void): TlsFault | undefined {
  const pair = new Pair()
  pair.client.open.start()
  const [flight] = pair.client.flights.splice(0)
  assert.ok(flight)
  const hello = read(flight.bytes)
  change(hello)
  pair.server.receive(Level.initial, write(hello))
  pair.close()
  assert.equal(pair.server.flights.length > 0, pair.server.fault === undefined)
  return pair.server.fault
}

function without(type: number): (hello: Hello) => void {
  return (hello) => {
    const { length } = hello.extensions
    hello.extensions = hello.extensions.filter((extension) => extension.type !== type)
    assert.equal(hello.extensions.length, length - 1)
  }
}

describe('a ClientHello', { skip }, () => {
  test('that is only read and written again is well', () => {
    assert.equal(
      faultOf(() => {}),
      undefined,
    )
  })

  test('without ALPN is refused with no_application_protocol (RFC 9001 §8.1)', () => {
    const fault = faultOf(without(16))
    assert.equal(fault?.code, 0x178)
    assert.match(fault.message, /offers no application protocol/)
  })

  test('without transport parameters is refused with missing_extension (RFC 9001 §8.2)', () => {
    const fault = faultOf(without(57))
    assert.equal(fault?.code, 0x16d)
    assert.match(fault.message, /no transport parameters/)
  })

  test('with a legacy_session_id is a PROTOCOL_VIOLATION (RFC 9001 §8.4)', () => {
    const fault = faultOf((hello) => {
      hello.sessionId = Buffer.alloc(32, 7)
    })
    assert.equal(fault?.code, 0x0a)
    assert.match(fault.message, /legacy_session_id/)
  })

  test('of TLS 1.2 is refused with protocol_version (RFC 9001 §4.2)', () => {
    assert.equal(faultOf(without(43))?.code, 0x146)
  })

  test('without groups or key shares is refused', () => {
    for (const type of [10, 51, 13]) assert.equal(faultOf(without(type))?.code, 0x16d, String(type))
  })

  test('without a server name is one without a server name', () => {
    assert.equal(faultOf(without(0)), undefined)
  })

  test('with an extension twice, or one that is cut, is refused', () => {
    const twice = faultOf((hello) => hello.extensions.push({ type: 16, content: Buffer.from([0, 3, 2, 104, 51]) }))
    assert.ok(twice !== undefined && twice.code > 0x100)
    for (const type of [0, 10, 13, 16, 43, 51]) {
      const cut = faultOf((hello) => {
        for (const extension of hello.extensions) {
          if (extension.type === type) extension.content = extension.content.subarray(0, extension.content.length - 1)
        }
      })
      assert.ok(cut !== undefined && cut.code > 0x100, String(type))
    }
  })

  test('with protocols that lie about their length is refused', () => {
    for (const content of [[], [0, 0], [0, 1, 0], [0, 3, 9, 104, 51], [0, 4, 2, 104, 51], [255, 255]]) {
      const fault = faultOf((hello) => {
        for (const extension of hello.extensions) if (extension.type === 16) extension.content = Buffer.from(content)
      })
      assert.ok(fault !== undefined && fault.code > 0x100, String(content))
    }
  })

  test('after a HelloRetryRequest has the same transport parameters, or is refused', () => {
    const pair = new Pair({ client: { groups: 'X25519:P-256' }, server: { groups: 'P-256' } })
    pair.client.open.start()
    for (const { level, bytes } of pair.client.flights.splice(0)) pair.server.receive(level, bytes)
    for (const { level, bytes } of pair.server.flights.splice(0)) pair.client.receive(level, bytes)
    const [second] = pair.client.flights
    assert.ok(second)
    const hello = read(second.bytes)
    for (const extension of hello.extensions) if (extension.type === 57) extension.content = Buffer.from([9])
    pair.server.receive(Level.initial, write(hello))
    assert.equal(pair.server.fault?.code, 0x12f)
    assert.match(pair.server.fault.message, /other transport parameters/)
    pair.close()
  })

  test('whose parameters are long is taken whole', () => {
    const transportParameters = new Uint8Array(4_000).map((_, i) => i)
    withPair({ session: { transportParameters }, serverSession: { transportParameters } }, (pair) => {
      assert.ok(pair.complete)
      for (const end of [pair.client, pair.server]) assert.ok(Buffer.from(transportParameters).equals(end.parameters ?? new Uint8Array(0)))
    })
  })
})
