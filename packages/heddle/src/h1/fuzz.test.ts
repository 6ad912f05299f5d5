import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { requestHead, responseHead } from '../http/index.ts'
import type { ClientConnection, ServerConnection } from './index.ts'
import { client, request, server, type Bench } from './transcript.test.ts'

/*
 * Bytes nobody should send: cases and mutations of them. Whatever comes, the engine does not throw,
 * tells every exchange its end once, holds no more than it may, and comes to an end itself.
 */

const inputs = (file: string): string[] =>
  [...readFileSync(new URL(`cases/${file}`, import.meta.url), 'utf8').matchAll(/^```http\n([^]*?)^```/gm)].map((match) =>
    (match[1] as string).replace('<FIN>\n', '').replaceAll('\n', '\r\n').replaceAll('\\\r\n', ''),
  )

const requests = [...inputs('requests.md'), ...inputs('request-content.md')]
const responses = inputs('responses.md')
const noise = [
  '\r',
  '\n',
  '\r\n',
  '\0',
  ' ',
  ':',
  ';',
  ',',
  '0',
  '-1',
  'fffffffffffff',
  '\xff',
  'Content-Length: 5\r\n',
  'Transfer-Encoding: chunked\r\n',
  'HTTP/1.1 ',
  'x'.repeat(3000),
]

type Mutation = { readonly at: number; readonly remove: number; readonly insert: string }
const mutation: fc.Arbitrary<Mutation> = fc.record({ at: fc.nat(300), remove: fc.nat(5), insert: fc.constantFrom('', ...noise) })

function mutate(text: string, mutations: readonly Mutation[]): string {
  let result = text
  for (const { at, remove, insert } of mutations) {
    const place = at % (result.length + 1)
    result = result.slice(0, place) + insert + result.slice(place + remove)
  }
  return result
}

/** Octets an engine holds of what it received: unfinished lines, and input that waits. */
function held(engine: object): number {
  const inside = engine as { backlogLength: number; heads: { carry: { bytes: Buffer } } }
  return inside.backlogLength + inside.heads.carry.bytes.length
}

function survive(bench: Bench<ClientConnection> | Bench<ServerConnection>, text: string, cuts: readonly number[]): void {
  const bytes = Buffer.from(text, 'latin1')
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  bench.feed(bytes, ...places)
  assert.ok(held(bench.engine) <= 65_536 + 2 * 16_384)
  assert.ok(['no', 'end', 'close', 'reset'].includes(bench.closing))
  bench.feedEnd()
  for (let i = 0; i < 5 && bench.log.closed === 0; i++) bench.advance(1_000_000)
  assert.equal(bench.log.closed, 1)
  assert.equal(bench.engine.openExchanges, 0)
  assert.equal(bench.engine.deadline, Infinity)
  assert.equal(held(bench.engine), 0)
  for (const log of bench.log.exchanges) assert.equal(log.closed, 1)
}

const cuts = fc.array(fc.nat(1000), { maxLength: 5 })

test('a server survives mutated requests', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...requests), { minLength: 1, maxLength: 3 }),
      fc.array(mutation, { maxLength: 4 }),
      cuts,
      fc.constantFrom('end', 'head', 'never'),
      (parts, mutations, places, when) => {
        const bench = server({ upgrades: ['h2c', 'websocket'] }, (log, exchange) => {
          if (when === 'never') return
          const answer = (): void => exchange.sendHead(responseHead(200), log.head?.method !== 'CONNECT')
          log.on = {
            onHead(head, end) {
              if (end || when === 'head' || head.method === 'CONNECT') answer()
            },
            onData(_buffer, _start, _limit, end) {
              if (!end) return
              if (log.head?.method === 'CONNECT') exchange.sendData(Buffer.alloc(0), 0, 0, true)
              else if (when === 'end') answer()
            },
            onTrailers() {
              if (when === 'end') answer()
            },
          }
        })
        survive(bench, mutate(parts.join(''), mutations), places.length === 0 ? [] : places)
      },
    ),
    { numRuns: 1500 },
  )
})

test('a client survives mutated responses', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...responses), { minLength: 1, maxLength: 2 }),
      fc.array(mutation, { maxLength: 4 }),
      cuts,
      fc.constantFrom('GET', 'HEAD', 'POST'),
      (parts, mutations, places, method) => {
        const bench = client()
        request(bench, requestHead(method, 'http', 'a.test', '/'), true)
        survive(bench.flush(), mutate(parts.join(''), mutations), places)
      },
    ),
    { numRuns: 1500 },
  )
})

test('random bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), cuts, (bytes, places) => {
      const text = Buffer.from(bytes).toString('latin1')
      survive(server(), text, places)
      const bench = client()
      request(bench)
      survive(bench.flush(), text, places)
    }),
    { numRuns: 300 },
  )
})
