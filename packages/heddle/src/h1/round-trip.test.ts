import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Outbox } from '../bytes/index.ts'
import { requestHead, responseHead, type Exchange } from '../http/index.ts'
import type { ClientConnection, ServerConnection } from './index.ts'
import { client, Log, server, type Bench } from './transcript.test.ts'

/*
 * A client and a server engine, back to back: whatever the pieces, what one sends is what the other
 * gets. Both ends choose lengths, framings, pieces and pauses by the property's seed.
 */

interface Message {
  readonly pieces: readonly number[]
  readonly owned: boolean
  readonly framing: 'length' | 'chunked' | 'trailers'
  readonly fields: readonly [string, string][]
}

const message: fc.Arbitrary<Message> = fc.record({
  pieces: fc.array(fc.oneof(fc.nat(10), fc.nat(5000), fc.nat(150_000)), { maxLength: 6 }),
  owned: fc.boolean(),
  framing: fc.constantFrom('length', 'chunked', 'trailers'),
  fields: fc.array(fc.tuple(fc.constantFrom('x-a', 'x-b', 'cookie', 'accept'), fc.constantFrom('', '1', 'caf\xe9', 'v'.repeat(300))), {
    maxLength: 4,
  }),
})

/** Sends the content of `plan` on `exchange`, waiting whenever it is told to. */
function sender(plan: Message, log: Log, exchange: Exchange): () => void {
  let i = 0
  let blocked = false
  const { framing, owned } = plan
  const pieces = plan.pieces.map((size, n) => Buffer.alloc(size, 0x61 + (n % 26)))
  const go = (): void => {
    while (!blocked && i <= pieces.length && log.closed === 0) {
      const piece = pieces[i++]
      if (piece === undefined) {
        if (framing === 'trailers') exchange.sendTrailers(['x-sum', '1'])
        else exchange.sendData(Buffer.alloc(0), 0, 0, true)
        return
      }
      blocked = !(owned ? exchange.sendOwned(Buffer.from(piece), false) : exchange.sendData(piece, 0, piece.length, false))
    }
  }
  const { onSent } = log.on
  log.on.onSent = (byteCount, writable) => {
    onSent?.(byteCount, writable)
    if (!writable) return
    blocked = false
    go()
  }
  return go
}

const length = (plan: Message): number => plan.pieces.reduce((a, b) => a + b, 0)
const fieldsOf = (plan: Message): string[] => [
  ...plan.fields.flat(),
  ...(plan.framing === 'length' ? ['content-length', String(length(plan))] : []),
]
const joined = (fields: readonly string[]): string[] => {
  // The client joins the crumbs of Cookie.
  const crumbs = fields.filter((_, i) => fields[i - 1] === 'cookie' && i % 2 === 1)
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] !== 'cookie') kept.push(fields[i] as string, fields[i + 1] as string)
    else if (crumbs.length > 0)
      kept.push(
        'cookie',
        crumbs
          .splice(0)
          .filter((crumb) => crumb !== '')
          .join('; '),
      )
  }
  return kept
}
const content = (plan: Message): string => plan.pieces.map((size, n) => String.fromCharCode(0x61 + (n % 26)).repeat(size)).join('')

/** Moves up to `size` bytes from one engine to the other. Returns false if there was nothing to do. */
function move(
  from: Bench<ClientConnection> | Bench<ServerConnection>,
  to: Bench<ClientConnection> | Bench<ServerConnection>,
  room: number,
  cut: number,
): boolean {
  if (!to.engine.wantsInput) return false
  const out = new Outbox(Buffer.alloc(16), room)
  from.engine.transmit(out, 0)
  for (let at = 0; at < out.length; at += cut) {
    const limit = Math.min(at + cut, out.length)
    const piece = Buffer.from(out.buffer.subarray(at, limit))
    to.engine.receive(piece, 0, piece.length, 0)
    piece.fill(0xdb)
    to.engine.transmit(new Outbox(Buffer.alloc(16), 0), 0)
  }
  return out.length > 0
}

test('random messages, pieces and rooms', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(message, message, fc.boolean()), { minLength: 1, maxLength: 3 }),
      fc.constantFrom(1, 7, 100, 16_384, 65_536),
      fc.constantFrom(3, 997, 65_536),
      (exchanges, roomSeed, cutSeed) => {
        // Tiny pieces of large messages would take all day.
        const total = exchanges.reduce((sum, [a, b]) => sum + length(a) + length(b), 0)
        const room = Math.max(roomSeed, total >> 9)
        const cut = Math.max(cutSeed, total >> 9)
        let current: [Message, Message, boolean]
        const origin = server({}, (log, exchange) => {
          const [, response, early] = current
          const go = sender(response, log, exchange)
          const answer = (): void => {
            exchange.sendHead(responseHead(200, fieldsOf(response)), false)
            go()
          }
          log.on = {
            ...log.on,
            onHead(_head, end) {
              if (early || end) answer()
            },
            onData(_buffer, _start, _limit, end) {
              if (end && !early) answer()
            },
            onTrailers() {
              if (!early) answer()
            },
          }
        })
        const asker = client()
        for (const planned of exchanges) {
          current = planned
          const [request, response] = planned
          const log = new Log()
          const exchange = asker.engine.open(log) as Exchange
          assert.ok(exchange !== undefined)
          log.exchange = exchange
          const go = sender(request, log, exchange)
          exchange.sendHead(requestHead('POST', 'http', 'a.test', '/', fieldsOf(request)), false)
          go()
          let rounds = 0
          while (log.closed === 0) {
            const there = move(asker, origin, room, cut)
            const back = move(origin, asker, room, cut)
            assert.ok(there || back, 'something moves')
            assert.ok(++rounds < 20_000, 'it ends')
          }
          const served = origin.log.exchanges.at(-1) as Log
          assert.equal(log.error, undefined)
          assert.equal(served.closed, 1)
          assert.equal(served.error, undefined)
          for (const [receiver, plan, fields] of [
            [served, request, joined(fieldsOf(request))],
            [log, response, fieldsOf(response)],
          ] as const) {
            assert.deepEqual(receiver.head?.fields, fields)
            assert.equal(receiver.received, length(plan))
            const expected = [
              ...(content(plan) === '' ? [] : [`data ${JSON.stringify(content(plan))}`]),
              ...(plan.framing === 'trailers' ? ['trailers x-sum 1'] : []),
              'end',
              'close',
            ]
            assert.deepEqual(receiver.lines.slice(-expected.length), expected)
          }
          assert.equal(log.sent, length(request))
          assert.equal(served.sent, length(response))
          assert.equal(asker.engine.openable, 1)
        }
      },
    ),
    { numRuns: 60 },
  )
})
