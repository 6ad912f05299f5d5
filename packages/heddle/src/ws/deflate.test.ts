import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { UsageError } from '../http/index.ts'
import {
  acceptDeflate,
  codecSettings,
  readDeflateAnswer,
  writeDeflateOffer,
  type DeflateOffer,
  type DeflateParameters,
  type DeflatePolicy,
} from './deflate.ts'
import { parseExtensions, type Extension } from './extension.ts'

function accept(offers: string, policy: DeflatePolicy = {}): string | undefined {
  return acceptDeflate(parseExtensions(offers) as Extension[], policy)?.text.replace('permessage-deflate', 'ok')
}

const p = 'permessage-deflate'

test('a server agrees to the first offer it can keep to', () => {
  assert.equal(accept('mux'), undefined)
  assert.equal(accept(p), 'ok')
  assert.equal(accept(`mux, ${p}`), 'ok')
  assert.equal(accept(`${p}; client_max_window_bits`), 'ok')
  assert.equal(
    accept(`${p}; server_no_context_takeover; client_no_context_takeover`),
    'ok; server_no_context_takeover; client_no_context_takeover',
  )
  assert.equal(accept(`${p}; server_max_window_bits=10`), 'ok; server_max_window_bits=10')
  assert.equal(accept(`${p}; server_max_window_bits="10"`), 'ok; server_max_window_bits=10')
  assert.equal(accept(`${p}; server_max_window_bits=15`), 'ok; server_max_window_bits=15')
  assert.equal(accept(`${p}; client_max_window_bits=10`), 'ok; client_max_window_bits=10')
  assert.equal(accept(`${p}; client_max_window_bits=8`), 'ok; client_max_window_bits=8')
  assert.equal(accept(`${p}; unknown, ${p}; server_max_window_bits=9, ${p}`), 'ok; server_max_window_bits=9')
})

test('an offer is declined, and the next looked at', () => {
  for (const parameters of [
    'unknown',
    'unknown=1',
    'server_no_context_takeover=1',
    'client_no_context_takeover=true',
    'server_no_context_takeover; server_no_context_takeover',
    'client_max_window_bits; client_max_window_bits',
    'client_max_window_bits=10; client_max_window_bits=10',
    'server_max_window_bits',
    'server_max_window_bits=7',
    'server_max_window_bits=16',
    'server_max_window_bits=08',
    'server_max_window_bits=9.5',
    'server_max_window_bits=0x9',
    'server_max_window_bits=-9',
    'client_max_window_bits=7',
    'client_max_window_bits=16',
    'client_max_window_bits=010',
    // zlib would use a window the client cannot inflate.
    'server_max_window_bits=8',
  ]) {
    assert.equal(accept(`${p}; ${parameters}`), undefined, parameters)
    assert.equal(accept(`${p}; ${parameters}, ${p}`), 'ok', parameters)
  }
})

test('what a server wants itself', () => {
  assert.equal(accept(p, { serverNoContextTakeover: true }), 'ok; server_no_context_takeover')
  assert.equal(accept(p, { clientNoContextTakeover: true }), 'ok; client_no_context_takeover')
  assert.equal(accept(p, { serverMaxWindowBits: 11 }), 'ok; server_max_window_bits=11')
  assert.equal(accept(`${p}; server_max_window_bits=10`, { serverMaxWindowBits: 11 }), 'ok; server_max_window_bits=10')
  assert.equal(accept(`${p}; server_max_window_bits=12`, { serverMaxWindowBits: 11 }), 'ok; server_max_window_bits=11')
  assert.equal(accept(`${p}; client_max_window_bits`, { clientMaxWindowBits: 11 }), 'ok; client_max_window_bits=11')
  assert.equal(accept(`${p}; client_max_window_bits=10`, { clientMaxWindowBits: 11 }), 'ok; client_max_window_bits=10')
  // RFC 7692 §7.1.2.2: a client that did not offer it cannot be told.
  assert.equal(accept(p, { clientMaxWindowBits: 11 }), undefined)
  assert.throws(() => accept(p, { serverMaxWindowBits: 8 }), UsageError)
  assert.throws(() => accept(p, { clientMaxWindowBits: 16 }), UsageError)
})

test('what a client offers', () => {
  assert.equal(writeDeflateOffer({}), `${p}; client_max_window_bits`)
  assert.equal(
    writeDeflateOffer({ serverNoContextTakeover: true, clientNoContextTakeover: true, serverMaxWindowBits: 10, clientMaxWindowBits: 9 }),
    `${p}; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=10; client_max_window_bits=9`,
  )
  for (const bits of [8, 16, 9.5, Number.NaN]) {
    assert.throws(() => writeDeflateOffer({ serverMaxWindowBits: bits }), UsageError)
    assert.throws(() => writeDeflateOffer({ clientMaxWindowBits: bits }), UsageError)
  }
})

function answer(parameters: string, offer: DeflateOffer = {}): DeflateParameters | string {
  return readDeflateAnswer((parseExtensions(`${p}${parameters}`) as Extension[])[0] as Extension, offer)
}

test('what a client makes of the answer', () => {
  const nothing = { serverNoContextTakeover: false, clientNoContextTakeover: false, serverMaxWindowBits: 15, clientMaxWindowBits: 15 }
  assert.deepEqual(answer(''), nothing)
  // RFC 7692 §7.1: the server may say these although nobody asked.
  assert.deepEqual(answer('; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=8'), {
    ...nothing,
    serverNoContextTakeover: true,
    clientNoContextTakeover: true,
    serverMaxWindowBits: 8,
  })
  assert.deepEqual(answer('; client_max_window_bits=8'), { ...nothing, clientMaxWindowBits: 8 })
  assert.deepEqual(answer('', { clientMaxWindowBits: 10, clientNoContextTakeover: true }), {
    ...nothing,
    clientMaxWindowBits: 10,
    clientNoContextTakeover: true,
  })
  assert.deepEqual(answer('; server_max_window_bits=9', { serverMaxWindowBits: 10 }), { ...nothing, serverMaxWindowBits: 9 })
})

test('answers that fail the handshake', () => {
  const faults: readonly [string, DeflateOffer][] = [
    ['; unknown', {}],
    ['; client_max_window_bits', {}],
    ['; client_max_window_bits=11', { clientMaxWindowBits: 10 }],
    ['; client_max_window_bits=16', {}],
    ['; server_max_window_bits', {}],
    ['; server_max_window_bits=11', { serverMaxWindowBits: 10 }],
    ['', { serverMaxWindowBits: 10 }],
    ['', { serverNoContextTakeover: true }],
    ['; server_no_context_takeover=1', {}],
    ['; server_no_context_takeover; server_no_context_takeover', {}],
    ['; server_max_window_bits=9; server_max_window_bits=9', {}],
  ]
  for (const [parameters, offer] of faults) assert.equal(typeof answer(parameters, offer), 'string', parameters)
})

test('whatever a client offers and a server wants, both come to the same', () => {
  const flag = fc.option(fc.boolean(), { nil: undefined })
  const bits = fc.option(fc.integer({ min: 9, max: 15 }), { nil: undefined })
  const sides = fc.record({
    serverNoContextTakeover: flag,
    clientNoContextTakeover: flag,
    serverMaxWindowBits: bits,
    clientMaxWindowBits: bits,
  })
  fc.assert(
    fc.property(sides, sides, (offer, policy) => {
      const agreed = acceptDeflate(parseExtensions(writeDeflateOffer(offer)) as Extension[], policy)
      assert.ok(agreed !== undefined)
      const read = readDeflateAnswer((parseExtensions(agreed.text) as Extension[])[0] as Extension, offer)
      assert.deepEqual(read, agreed.parameters)
      const client = codecSettings('client', agreed.parameters)
      const server = codecSettings('server', agreed.parameters)
      assert.ok(client.inflateWindowBits >= server.deflateWindowBits && server.inflateWindowBits >= client.deflateWindowBits)
      assert.equal(client.inflateTakeover, server.deflateTakeover)
      assert.equal(server.inflateTakeover, client.deflateTakeover)
    }),
  )
})

test('a side that cannot compress with the window agreed on does not', () => {
  const parameters = { serverNoContextTakeover: false, clientNoContextTakeover: true, serverMaxWindowBits: 12, clientMaxWindowBits: 8 }
  assert.deepEqual(codecSettings('client', parameters), {
    deflateWindowBits: 0,
    deflateTakeover: false,
    inflateWindowBits: 12,
    inflateTakeover: true,
  })
  assert.deepEqual(codecSettings('server', parameters), {
    deflateWindowBits: 12,
    deflateTakeover: true,
    inflateWindowBits: 9,
    inflateTakeover: false,
  })
})
