/** Which connections tunnels go to, and what they count for. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { CancelReason, responseHead, UsageError, type TlsFacts } from '../http/index.ts'
import { makeCertificate } from '../testing/index.ts'
import { Client } from './client.ts'
import { Bench, type DoubleEngine, type DoubleStreams, type Sent } from './double.test.ts'
import type { ClientOptions } from './options.ts'

function tunnel(bench: Bench, name: string, replayable = true, origin = bench.secure): Sent {
  return bench.request(name, (handler) => void (handler.replayable = replayable), origin, { tunnel: true })
}

/** A bench with one HTTP/2 connection to `secure`, idle, whose server allows tunnels. */
function allowing(most = 10, options: ClientOptions = {}): { bench: Bench; streams: DoubleStreams } {
  const bench = new Bench(options)
  bench.request('first', undefined, bench.secure)
  bench.turn()
  const streams = bench.dials[0]?.acceptStreams(most) as DoubleStreams
  streams.respond()
  streams.allow(most, true)
  return { bench, streams }
}

/** The server switches protocols. */
function open(engine: DoubleEngine | undefined): void {
  engine?.exchange?.handler.onHead(responseHead(200), false)
}

const protocolOf = ({ handler }: Sent): string | undefined => handler.opened.at(-1)?.protocol

test('an origin nobody knows: a tunnel goes straight to HTTP/1.1, also while a connection is made for others', () => {
  const bench = new Bench()
  const first = tunnel(bench, 'first')
  bench.request('page', undefined, bench.secure)
  const second = tunnel(bench, 'second')
  bench.turn()
  assert.deepEqual(
    bench.dials.map(({ options }) => options.tls?.alpn),
    [['http/1.1'], ['h2', 'http/1.1'], ['http/1.1']],
  )
  bench.dials[1]?.acceptStreams().allow(10, true)
  assert.deepEqual([protocolOf(first), protocolOf(second)], [undefined, undefined])
  bench.dials[0]?.accept()
  bench.dials[2]?.accept()
  assert.deepEqual([protocolOf(first), protocolOf(second)], ['h1', 'h1'])
  assert.equal(protocolOf(tunnel(bench, 'third')), 'h2')
})

test('an origin known to speak HTTP/1.1 might speak HTTP/2 now: its tunnels do not offer that', () => {
  const bench = new Bench()
  bench.request('page', undefined, bench.secure)
  bench.turn()
  bench.dials[0]?.accept().respond()
  const sent = tunnel(bench, 'tunnel')
  assert.equal(sent.handler.opened.length, 0, 'the idle connection is for requests')
  bench.turn()
  assert.deepEqual(bench.dials[1]?.options.tls?.alpn, ['http/1.1'])
  bench.dials[1]?.accept()
  assert.equal(protocolOf(sent), 'h1')
})

test('of several HTTP/2 connections it takes the newest whose server allows tunnels', () => {
  const { bench, streams } = allowing(1, { whenFull: 'connect' })
  bench.request('a', undefined, bench.secure)
  bench.request('b', undefined, bench.secure)
  bench.turn()
  const other = bench.dials[1]?.acceptStreams(5) as DoubleStreams
  streams.respond()
  const sent = tunnel(bench, 'tunnel')
  assert.deepEqual([streams.openExchanges, other.openExchanges, protocolOf(sent)], [1, 1, 'h2'])
})

test('when every stream is taken a tunnel does not wait for one: they may be tunnels too', () => {
  const { bench, streams } = allowing(2)
  const sent = ['a', 'b', 'c'].map((name) => tunnel(bench, name))
  bench.turn()
  bench.dials[1]?.accept()
  assert.deepEqual(sent.map(protocolOf), ['h2', 'h2', 'h1'])
  streams.respond()
  assert.equal(protocolOf(tunnel(bench, 'd')), 'h2')
})

test('a stream that is refused, or that GOAWAY leaves out, moves on to HTTP/1.1', () => {
  const { bench, streams } = allowing()
  const refused = tunnel(bench, 'refused')
  streams.reset(0, 7)
  const left = tunnel(bench, 'left')
  const stubborn = tunnel(bench, 'stubborn', false)
  streams.goAway(0)
  bench.turn()
  assert.deepEqual([stubborn.handler.closes, stubborn.handler.error?.unprocessed], [1, true])
  assert.deepEqual(
    bench.dials.slice(1).map(({ options }) => options.tls?.alpn),
    [['http/1.1'], ['http/1.1']],
  )
  for (const dial of bench.dials.slice(1)) dial.accept()
  assert.deepEqual([protocolOf(refused), protocolOf(left)], ['h1', 'h1'])
  assert.deepEqual([refused.ticket.moves, refused.handler.opened.length, refused.handler.closes], [1, 2, 0])
})

test('a stream the server may have acted on does not move', () => {
  const { bench, streams } = allowing()
  const acted = tunnel(bench, 'acted')
  streams.reset(0, 2)
  const answered = tunnel(bench, 'answered')
  streams.exchanges[0]?.handler.onHead(responseHead(200), false)
  streams.reset(0, 7)
  bench.turn()
  assert.deepEqual([acted.handler.error?.code, answered.handler.error?.code, bench.dials.length], ['PEER_RESET', 'PEER_RESET', 1])
})

test('HTTP_1_1_REQUIRED for a tunnel moves the tunnel, and nothing else', () => {
  const { bench, streams } = allowing()
  const sent = tunnel(bench, 'tunnel')
  streams.reset(0, 0xd)
  bench.turn()
  bench.dials[1]?.accept()
  assert.equal(protocolOf(sent), 'h1')
  assert.deepEqual([streams.draining, bench.secure.protocol], [false, 'h2'])
  assert.equal(protocolOf(bench.request('page', undefined, bench.secure)), 'h2')
})

test('a connection on which the server refused a tunnel is closed: no other tunnel takes it', () => {
  const bench = new Bench()
  tunnel(bench, 'refused')
  bench.turn()
  const engine = bench.dials[0]?.accept() as DoubleEngine
  const waiting = tunnel(bench, 'waiting')
  engine.respond()
  assert.equal(waiting.handler.opened.length, 0)
  bench.turn()
  assert.equal(engine.closed, true)
  bench.dials[1]?.accept()
  assert.equal(protocolOf(waiting), 'h1')
})

test('a connection made for a tunnel that was cancelled serves the next one', () => {
  const bench = new Bench()
  const { ticket } = tunnel(bench, 'gone')
  tunnel(bench, 'other')
  bench.turn()
  ticket.cancel(CancelReason.Cancelled)
  bench.turn()
  bench.dials[0]?.accept()
  bench.dials[1]?.accept()
  const next = tunnel(bench, 'next')
  assert.deepEqual([protocolOf(next), bench.dials.length], ['h1', 2])
})

test('one that had died unseen while it was idle costs no tunnel', () => {
  const bench = new Bench()
  const { ticket } = tunnel(bench, 'gone')
  bench.turn()
  ticket.cancel(CancelReason.Cancelled)
  const engine = bench.dials[0]?.accept() as DoubleEngine
  bench.turn()
  engine.dead = true
  const sent = tunnel(bench, 'sent')
  bench.turn()
  bench.dials[1]?.accept()
  assert.equal(protocolOf(sent), 'h1')
})

test('open tunnels do not count for maxConnectionsPerOrigin, those that are being opened do', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 2 })
  const sent = Array.from({ length: 5 }, (_, i) => tunnel(bench, `t${i}`, true, bench.origin))
  for (let done = 0; done < 4; done++) {
    bench.turn()
    assert.equal(bench.dials.length, done + 2)
    bench.dials[done]?.accept()
    bench.turn()
    assert.equal(bench.dials.length, done + 2, 'not open yet')
    open(bench.engines[done])
  }
  bench.dials[4]?.accept()
  open(bench.engines[4])
  assert.ok(sent.every(({ handler }) => handler.opened.length === 1))
  // Nor do requests to the same origin wait for them.
  bench.request('page')
  bench.request('another')
  bench.turn()
  assert.equal(bench.dials.length, 7)
  for (const engine of bench.engines) engine.close()
  bench.dials[5]?.refuse()
  bench.dials[6]?.refuse()
  bench.turn()
  bench.assertEmpty()
})

test('maxTunnelsPerOrigin: the rest waits for the end of one', () => {
  const bench = new Bench({ maxTunnelsPerOrigin: 2 })
  const sent = ['a', 'b', 'c'].map((name) => tunnel(bench, name))
  bench.turn()
  for (const dial of bench.dials) dial.accept()
  for (const engine of bench.engines) open(engine)
  bench.turn()
  assert.deepEqual([bench.dials.length, sent[2]?.handler.opened.length], [2, 0])
  bench.request('page', undefined, bench.secure)
  bench.turn()
  assert.equal(bench.dials.length, 3, 'requests are not concerned')
  bench.engines[0]?.close()
  bench.turn()
  bench.dials[3]?.accept()
  assert.equal(sent[2]?.handler.opened.length, 1)
  assert.throws(() => new Client({ maxTunnelsPerOrigin: 0 }), UsageError)
})

test('maxConnections counts them all', () => {
  const bench = new Bench({ maxConnections: 1 })
  tunnel(bench, 'a')
  bench.turn()
  bench.dials[0]?.accept()
  open(bench.engines[0])
  const page = bench.request('page')
  bench.turn()
  assert.equal(bench.dials.length, 1)
  bench.engines[0]?.close()
  bench.turn()
  bench.dials[1]?.accept()
  assert.equal(page.handler.opened.length, 1)
})

test('no open tunnel is hoped for: when connecting fails, those that wait are told at once', () => {
  const bench = new Bench()
  tunnel(bench, 'open')
  bench.turn()
  bench.dials[0]?.accept()
  open(bench.engines[0])
  const sent = tunnel(bench, 'fails')
  bench.turn()
  bench.dials[1]?.refuse()
  bench.turn()
  assert.deepEqual([sent.handler.error?.code, bench.dials.length], ['CONNECT_FAILED', 2])
})

test('a client of HTTP/2 only has a tunnel wait like any request', () => {
  const { bench, streams } = allowing(1, { protocols: ['h2'] })
  tunnel(bench, 'a')
  const waiting = tunnel(bench, 'b')
  bench.turn()
  assert.deepEqual([bench.dials.length, waiting.handler.opened.length], [1, 0])
  streams.respond()
  streams.handler.onCapacity(1)
  assert.equal(protocolOf(waiting), 'h2')
  streams.reset(0, 7)
  assert.deepEqual([waiting.ticket.moves, protocolOf(waiting), bench.dials.length], [1, 'h2', 1])
})

test("another origin's connection that serves this one takes its tunnels, if the server allows them", () => {
  const { cert } = makeCertificate({ names: ['secure.test', 'guest.test'] })
  const peerCertificate = new X509Certificate(cert).raw
  const tls: TlsFacts = { version: 'TLSv1.3', cipher: '', alpn: 'h2', serverName: undefined, authorized: true, peerCertificate }
  const bench = new Bench({ coalesce: true })
  const guest = bench.pool.directory.find('https://guest.test')
  bench.request('page', undefined, bench.secure)
  bench.turn()
  const streams = bench.dials[0]?.acceptStreams(10, tls) as DoubleStreams
  streams.originSet = new Set(['https://guest.test'])
  bench.request('page', undefined, guest)
  bench.turn()
  assert.equal(streams.openExchanges, 2)
  const early = tunnel(bench, 'early', true, guest)
  assert.equal(early.handler.opened.length, 0)
  streams.allow(10, true)
  const sent = tunnel(bench, 'tunnel', true, guest)
  assert.equal(protocolOf(sent), 'h2')
  // RFC 9110 §15.5.20: the wrong place, after all.
  streams.exchanges.at(-1)?.handler.onHead(responseHead(421), true)
  bench.turn()
  for (const dial of bench.dials.slice(1)) dial.accept()
  assert.deepEqual([protocolOf(sent), protocolOf(early)], ['h1', 'h1'])
})

test('close: what has no end of its own is told, once, whether it runs or waits; what it begins to end is waited for', async () => {
  const { bench, streams } = allowing(1, { maxTunnelsPerOrigin: 1 })
  const told: string[] = []
  const [a, b, c] = ['a', 'b', 'c'].map((name) => tunnel(bench, name)) as [Sent, Sent, Sent]
  for (const { handler } of [a, b, c]) Object.assign(handler, { onShutdown: () => void told.push(handler.name) })
  bench.turn()
  bench.dials[1]?.accept()
  open(bench.engines[0])
  const closing = bench.pool.close()
  assert.deepEqual(told, [], 'not within close()')
  bench.turn()
  assert.deepEqual(told.toSorted(), ['a', 'b', 'c'])
  void bench.pool.close()
  bench.turn()
  assert.equal(told.length, 3)
  assert.deepEqual([protocolOf(a), protocolOf(b), protocolOf(c)], ['h2', 'h1', undefined])
  c.ticket.cancel(CancelReason.Cancelled)
  streams.respond()
  bench.engines[0]?.respond()
  bench.turn()
  streams.close()
  await bench.world.complete(closing)
  bench.assertEmpty()
})

test('close: a handler that throws when told is left alone; destroy tells nobody, it ends them', () => {
  const { bench } = allowing()
  const sent = tunnel(bench, 'a')
  Object.assign(sent.handler, {
    onShutdown: () => {
      throw new Error('the handler fails')
    },
  })
  void bench.pool.close()
  bench.turn()
  assert.equal(sent.handler.closes, 0)
  bench.pool.destroy(new UsageError('over'))
  bench.turn()
  assert.deepEqual([sent.handler.closes, sent.handler.error?.message], [1, 'over'])
})

test('of several tunnels with handlers of their own, the one that is over is forgotten, and no other', () => {
  const { bench, streams } = allowing()
  const sent = ['a', 'b', 'c'].map((name) => tunnel(bench, name))
  const taker = bench.request('taker', undefined, bench.origin).handler
  for (const exchange of streams.exchanges) {
    exchange.handler = taker
    // A field of the engine's own.
    Object.assign(exchange, { closed: false })
  }
  Object.assign(streams.exchanges[1] as object, { closed: true })
  streams.respond(1)
  streams.handler.onCapacity(streams.openable)
  assert.equal(bench.pool.directory.stats().http2.streams, 2)
  const [a, , c] = sent as [Sent, Sent, Sent]
  c.ticket.handedBack(undefined)
  c.ticket.handedBack(undefined)
  assert.equal(bench.pool.directory.stats().http2.streams, 1)
  a.ticket.cancel(CancelReason.Cancelled)
  assert.equal(streams.exchanges[0]?.cancelled, CancelReason.Cancelled)
})

test('who was given another handler is over when it says so, though its server allows any number of streams', () => {
  const { bench, streams } = allowing(Infinity)
  const { ticket, handler } = tunnel(bench, 'a')
  const taker = bench.request('taker', undefined, bench.origin).handler
  const [exchange] = streams.exchanges
  if (exchange !== undefined) exchange.handler = taker
  streams.respond()
  ticket.handedBack(new UsageError('why'))
  const { http2, idle, errors } = bench.pool.directory.stats()
  assert.deepEqual([http2.streams, idle, errors, handler.closes], [0, 1, { USAGE: 1 }, 0])
})
