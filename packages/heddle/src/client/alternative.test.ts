/** HTTP/3 beside other versions: when connections go over QUIC, and what happens when they cannot. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { responseHead, type ConnectionHandler, type Fields } from '../http/index.ts'
import { connectionInfo } from '../testing/index.ts'
import { Bench, verified, type DoubleStreams } from './double.test.ts'
import { makeEngine, type AnyDialled, type EngineOptions } from './engine.ts'
import type { ClientOptions } from './options.ts'

const minute = 60_000
const here: Fields = ['alt-svc', 'h3=":443"; ma=3600']

/** Speaks all three versions, and never forgets an origin. */
function benchOf(options: ClientOptions = {}): Bench {
  return new Bench({ protocols: ['h3', 'h2', 'h1'], originLifetime: Infinity, ...options })
}

/** The origin speaks HTTP/2 and says, with the answer to the first request, that it speaks HTTP/3 too. */
function learn(bench: Bench, fields: Fields = here): DoubleStreams {
  bench.request('first', undefined, bench.secure)
  bench.turn()
  const streams = bench.dials.at(-1)?.acceptStreams(100, verified) as DoubleStreams
  streams.respond(0, responseHead(200, fields))
  bench.turn()
  bench.takeLog()
  return streams
}

/** The same, and the HTTP/2 connection is gone. */
function learnAndClose(bench: Bench, fields: Fields = here): void {
  learn(bench, fields).close()
  bench.turn()
}

const states = (bench: Bench): string[] => bench.quicDials.map(({ state }) => state)

test('nothing goes over QUIC before the server has said that it may', () => {
  const bench = benchOf()
  const streams = learn(bench, [])
  bench.request('a', undefined, bench.secure)
  bench.turn()
  streams.respond()
  streams.close()
  bench.request('b', undefined, bench.secure)
  bench.turn()
  assert.deepEqual([bench.dials.length, bench.quicDials.length], [2, 0])
})

test('the next connection is by QUIC, to where the server said, with the certificate of the origin', () => {
  const bench = benchOf()
  learnAndClose(bench, ['alt-svc', 'h2=":443", h3="edge.test:8443"'])
  bench.request('a', undefined, bench.secure)
  bench.turn()
  assert.deepEqual([bench.dials.length, states(bench)], [1, ['dialling']])
  assert.deepEqual(bench.quicDials[0]?.target, { host: 'edge.test', port: 8443 })
  assert.equal(bench.quicDials[0]?.options.servername, 'secure.test')
  const streams = bench.quicDials[0]?.accept() as DoubleStreams
  assert.deepEqual(bench.takeLog(), ['a opened'])
  assert.equal(streams.exchanges[0]?.protocol, 'h3')
  bench.world.advance(10 * minute)
  assert.equal(bench.dials.length, 1, 'TCP is not needed')
  const { http3, http2 } = bench.pool.directory.stats()
  assert.deepEqual([http3, http2.connections], [{ connections: 1, streams: 1, dialled: 1, requests: 1 }, 0])
  assert.equal(bench.secure.protocol, 'h3')
})

test('a burst to an origin of HTTP/1.1 waits for one connection by QUIC', () => {
  const bench = benchOf()
  bench.request('first', undefined, bench.secure)
  bench.turn()
  const first = bench.dials[0]?.acceptHttp1(verified)
  first?.respond(true, responseHead(200, here))
  first?.close()
  bench.turn()
  bench.takeLog()
  for (const name of ['a', 'b', 'c']) bench.request(name, undefined, bench.secure)
  bench.turn()
  assert.deepEqual([bench.dials.length, states(bench)], [1, ['dialling']])
  bench.quicDials[0]?.accept()
  assert.deepEqual(bench.takeLog(), ['a opened', 'b opened', 'c opened'])
})

test('requests go on over TCP while QUIC is tried beside it; then they move over, and TCP ends when it is done', () => {
  const bench = benchOf()
  const old = learn(bench)
  assert.equal(bench.quicDials.length, 0, 'nobody asked for anything since')
  bench.request('a', undefined, bench.secure)
  assert.deepEqual(bench.takeLog(), ['a opened'])
  bench.turn()
  assert.deepEqual([bench.dials.length, states(bench)], [1, ['dialling']])
  bench.request('b', undefined, bench.secure)
  bench.turn()
  assert.equal(bench.quicDials.length, 1)
  const streams = bench.quicDials[0]?.accept() as DoubleStreams
  bench.request('c', undefined, bench.secure)
  bench.turn()
  assert.deepEqual([old.exchanges.length, streams.exchanges.length], [2, 1])
  assert.deepEqual([old.draining, old.closed], [true, false])
  old.respond()
  old.respond()
  old.close()
  assert.deepEqual(bench.takeLog(), ['b opened', 'c opened', 'a closed', 'b closed'])
  streams.respond()
  streams.close()
  bench.assertEmpty()
})

test('QUIC is silent: TCP follows after 300 ms and serves; QUIC has its time, and is left alone then', () => {
  const bench = benchOf()
  learnAndClose(bench)
  for (const name of ['a', 'b']) bench.request(name, undefined, bench.secure)
  bench.turn()
  bench.world.advance(299)
  assert.equal(bench.dials.length, 1)
  bench.world.advance(1)
  assert.equal(bench.dials.length, 2)
  const streams = bench.dials[1]?.acceptStreams(100, verified) as DoubleStreams
  assert.deepEqual(bench.takeLog(), ['a opened', 'b opened'])
  assert.deepEqual(states(bench), ['dialling'])
  // Another attempt is not begun beside this one.
  bench.request('c', undefined, bench.secure)
  bench.turn()
  assert.equal(bench.quicDials.length, 1)
  bench.quicDials[0]?.refuse()
  for (let i = 0; i < 3; i++) streams.respond()
  streams.close()
  bench.request('d', undefined, bench.secure)
  bench.turn()
  assert.deepEqual([bench.dials.length, bench.quicDials.length], [3, 1], 'straight to TCP')
  assert.deepEqual(bench.pool.directory.stats().errors, { CONNECT_FAILED: 1 })
})

test('QUIC comes late: it takes over, and what TCP has is done to its end', () => {
  const bench = benchOf()
  learnAndClose(bench)
  bench.request('a', undefined, bench.secure)
  bench.turn()
  bench.world.advance(300)
  const tcp = bench.dials[1]?.acceptStreams(100, verified) as DoubleStreams
  const quic = bench.quicDials[0]?.accept() as DoubleStreams
  bench.turn()
  bench.request('b', undefined, bench.secure)
  assert.deepEqual([tcp.exchanges.length, tcp.draining, quic.exchanges.length], [1, true, 1])
  tcp.respond()
  tcp.close()
  quic.respond()
  quic.close()
  bench.assertEmpty()
})

test('a late connection by QUIC for which there is no room is closed', () => {
  const bench = benchOf({ maxConnections: 1 })
  learnAndClose(bench)
  bench.request('a', undefined, bench.secure)
  bench.turn()
  bench.world.advance(300)
  bench.dials[1]?.acceptStreams(100, verified)
  bench.quicDials[0]?.accept()
  assert.deepEqual(states(bench), ['destroyed'])
  assert.equal(bench.pool.room.taken, 1)
})

test('QUIC fails: TCP follows at once; how long it is left alone doubles, and success forgets', () => {
  const bench = benchOf()
  learnAndClose(bench, ['alt-svc', 'h3=":443"; ma=31536000'])
  /** One request for which QUIC is tried and fails: true; or goes to TCP: false. */
  const isTried = (): boolean => {
    const before = bench.quicDials.length
    bench.request('a', undefined, bench.secure)
    bench.turn()
    const tried = bench.quicDials.length > before
    if (tried) bench.quicDials.at(-1)?.refuse()
    const streams = bench.dials.at(-1)?.acceptStreams(100, verified) as DoubleStreams
    streams.respond()
    streams.close()
    bench.turn()
    return tried
  }
  assert.equal(isTried(), true)
  for (const pause of [5, 10, 20, 40]) {
    bench.world.advance(pause * minute - 1)
    assert.equal(isTried(), false, `${pause} minutes are not over`)
    bench.world.advance(1)
    assert.equal(isTried(), true, `after ${pause} minutes`)
  }
  bench.world.advance(80 * minute)
  bench.request('b', undefined, bench.secure)
  bench.turn()
  const streams = bench.quicDials.at(-1)?.accept() as DoubleStreams
  streams.respond()
  streams.close()
  assert.equal(isTried(), true)
  bench.world.advance(5 * minute)
  assert.equal(isTried(), true, 'five minutes again')
})

test('where nothing can be reached QUIC is not to blame, and the error is that of TCP', () => {
  const bench = benchOf()
  learnAndClose(bench)
  for (const order of ['QUIC first', 'TCP first']) {
    const { handler } = bench.request('a', undefined, bench.secure)
    bench.turn()
    if (order === 'QUIC first') bench.quicDials.at(-1)?.refuse()
    else bench.world.advance(300)
    bench.dials.at(-1)?.refuse()
    if (order === 'TCP first') {
      bench.turn()
      assert.equal(handler.closes, 0, 'QUIC may still do it')
      bench.quicDials.at(-1)?.refuse()
    }
    bench.turn()
    assert.match(String(handler.error?.message), /^refused \(/, order)
  }
  assert.equal(bench.quicDials.length, 2)
  bench.request('c', undefined, bench.secure)
  bench.turn()
  assert.equal(bench.quicDials.length, 3, 'it was not left alone')
})

test('QUIC that cannot even begin is one that fails', () => {
  let throws = 0
  const connectQuic = (): never => {
    throws++
    throw new TypeError('no')
  }
  const bench = benchOf({ connectQuic })
  learnAndClose(bench)
  bench.request('a', undefined, bench.secure)
  bench.turn()
  const streams = bench.dials[1]?.acceptStreams(100, verified) as DoubleStreams
  assert.deepEqual([bench.takeLog(), throws], [['a opened'], 1])
  // Beside TCP as well, once it may be tried again.
  bench.world.advance(5 * minute)
  bench.request('b', undefined, bench.secure)
  bench.turn()
  bench.request('c', undefined, bench.secure)
  bench.turn()
  assert.deepEqual([bench.takeLog(), throws, streams.exchanges.length], [['b opened', 'c opened'], 2, 3])
})

test('a request cancelled while both are tried leaves nothing behind', () => {
  const bench = benchOf()
  learnAndClose(bench)
  const { ticket } = bench.request('a', undefined, bench.secure)
  bench.turn()
  bench.world.advance(300)
  void bench.pool.close()
  ticket.cancel(1)
  bench.turn()
  assert.deepEqual([states(bench), bench.dials[1]?.cancelled], [['cancelled'], true])
  assert.equal(bench.pool.timers, 0)
  bench.assertEmpty()
})

test('an attempt beside TCP ends with the client, and with the origin that is forgotten', () => {
  for (const end of ['destroy', 'close', 'forget']) {
    const bench = benchOf({ originLifetime: 1000 })
    const streams = learn(bench)
    bench.request('a', undefined, bench.secure)
    bench.turn()
    streams.respond()
    if (end === 'destroy') bench.pool.destroy({} as never)
    else if (end === 'close') void bench.pool.close()
    else {
      streams.close()
      bench.world.advance(1000)
    }
    bench.turn()
    assert.deepEqual(states(bench), ['cancelled'], end)
    bench.assertEmpty()
  }
})

test('clear, an age that is over and another field take back what was said; a malformed field does not', () => {
  const cases: [string, Fields, number][] = [
    ['clear', ['alt-svc', 'clear'], 0],
    ['none of HTTP/3', ['alt-svc', 'h2=":443"'], 0],
    ['too old when it came', ['age', '3601', 'alt-svc', 'h3=":443"; ma=3600'], 0],
    ['malformed', ['alt-svc', 'h3=:443'], 1],
    ['another port', ['alt-svc', 'h3=":444"'], 1],
    ['nothing', [], 1],
  ]
  for (const [what, fields, tried] of cases) {
    const bench = benchOf()
    const streams = learn(bench)
    bench.request('a', undefined, bench.secure)
    streams.respond(0, responseHead(200, fields))
    streams.close()
    bench.turn()
    bench.request('b', undefined, bench.secure)
    bench.turn()
    assert.equal(bench.quicDials.filter(({ state }) => state !== 'cancelled').length, tried, what)
    if (what === 'another port') assert.equal(bench.quicDials.at(-1)?.target.port, 444)
  }
  const bench = benchOf()
  learnAndClose(bench, ['alt-svc', 'h3=":443"; ma=3600', 'age', '600'])
  bench.world.advance(3_000_000)
  bench.request('a', undefined, bench.secure)
  bench.turn()
  assert.equal(bench.quicDials.length, 0, 'it was for 3000 s more')
})

test('it is remembered when the origin is not', () => {
  const bench = benchOf({ originLifetime: 1000 })
  learnAndClose(bench)
  bench.world.advance(2000)
  assert.deepEqual(bench.pool.directory.stats().origins, [])
  bench.request('a', undefined, bench.secure)
  bench.turn()
  assert.equal(bench.quicDials.length, 1)
})

test('nobody is believed whose certificate was not verified; where none is verified, no other host (RFC 7838 §2.1)', () => {
  const unverified = { ...verified, authorized: false }
  const cases: [ClientOptions, Fields, number][] = [
    [{}, here, 0],
    [{ tls: { rejectUnauthorized: false } }, here, 1],
    [{ tls: { rejectUnauthorized: false } }, ['alt-svc', 'h3="edge.test:443"'], 0],
    [{ tls: { rejectUnauthorized: false } }, ['alt-svc', 'h3="edge.test:443", h3="secure.test:8443"'], 1],
  ]
  for (const [options, fields, tried] of cases) {
    const bench = benchOf(options)
    bench.request('first', undefined, bench.secure)
    bench.turn()
    const streams = bench.dials[0]?.acceptStreams(100, unverified)
    streams?.respond(0, responseHead(200, fields))
    streams?.close()
    bench.request('a', undefined, bench.secure)
    bench.turn()
    assert.equal(bench.quicDials.length, tried, JSON.stringify([options, fields]))
  }
  const bench = benchOf()
  bench.request('plain')
  bench.turn()
  const engine = bench.dials[0]?.accept()
  engine?.respond(true, responseHead(200, here))
  engine?.close()
  bench.request('plain')
  bench.turn()
  assert.deepEqual([bench.dials.length, bench.quicDials.length], [2, 0], 'http is not served over HTTP/3')
})

test('421 from the alternative: it is given up, and the request goes to the origin; 421 says nothing of others', () => {
  const bench = benchOf()
  learnAndClose(bench)
  const { handler } = bench.request('a', (each) => (each.replayable = true), bench.secure)
  bench.turn()
  const quic = bench.quicDials[0]?.accept() as DoubleStreams
  const [exchange] = quic.exchanges
  exchange?.handler.onHead(responseHead(421, ['alt-svc', 'h3=":9"']), true)
  bench.turn()
  assert.equal(bench.dials.length, 2)
  const tcp = bench.dials[1]?.acceptStreams(100, verified)
  assert.equal(handler.opened.length, 2)
  tcp?.respond()
  tcp?.close()
  bench.request('b', undefined, bench.secure)
  bench.turn()
  assert.deepEqual([bench.dials.length, bench.quicDials.length], [3, 1])
})

test('a server that wants HTTP/1.1 (H3_VERSION_FALLBACK) gets the request over that, and all that follow', () => {
  const bench = benchOf()
  learnAndClose(bench)
  bench.request('a', (each) => (each.replayable = true), bench.secure)
  bench.turn()
  const quic = bench.quicDials[0]?.accept() as DoubleStreams
  quic.reset(0, 0x110, false)
  bench.turn()
  assert.deepEqual(bench.dials[1]?.options.tls?.alpn, ['http/1.1'])
  bench.dials[1]?.acceptHttp1(verified)
  assert.deepEqual(bench.takeLog(), ['a opened', 'a opened'])
})

test('a connection by QUIC that ends before it was of use is a failure of QUIC', () => {
  const bench = benchOf()
  learnAndClose(bench)
  bench.request('a', undefined, bench.secure)
  bench.turn()
  bench.quicDials[0]?.accept().close({ code: 'PROTOCOL_ERROR' } as never)
  bench.turn()
  bench.request('b', undefined, bench.secure)
  bench.turn()
  assert.deepEqual([bench.dials.length, bench.quicDials.length], [2, 1])
})

test('GOAWAY: what was not taken moves to another connection, by QUIC again', () => {
  const bench = benchOf()
  learnAndClose(bench)
  for (const name of ['a', 'b']) bench.request(name, (each) => (each.replayable = true), bench.secure)
  bench.turn()
  const first = bench.quicDials[0]?.accept() as DoubleStreams
  first.goAway(1)
  bench.turn()
  assert.equal(bench.quicDials.length, 2)
  const second = bench.quicDials[1]?.accept() as DoubleStreams
  assert.deepEqual(bench.takeLog(), ['a opened', 'b opened', 'b opened'])
  first.respond()
  second.respond()
  assert.deepEqual(bench.takeLog(), ['a closed', 'b closed'])
})

test('streams are given bit by bit: who waits gets one as soon as the server allows it', () => {
  const bench = new Bench({ protocols: ['h3'] })
  for (const name of ['a', 'b', 'c']) bench.request(name, undefined, bench.secure)
  bench.turn()
  const streams = bench.quicDials[0]?.accept(0) as DoubleStreams
  assert.deepEqual(bench.takeLog(), [])
  streams.most = 2
  streams.handler.onCapacity(2)
  assert.deepEqual(bench.takeLog(), ['a opened', 'b opened'])
  // One is over, and the server has not allowed another yet: the connection is not used up.
  streams.most = 1
  streams.respond()
  bench.turn()
  assert.deepEqual([bench.takeLog(), bench.quicDials.length, streams.draining], [['a closed'], 1, false])
  streams.most = 2
  streams.handler.onCapacity(1)
  assert.deepEqual(bench.takeLog(), ['c opened'])
  assert.equal(bench.dials.length, 0)
})

test('a connection on which streams were allowed late does not make room for others while it runs requests', () => {
  const bench = new Bench({ protocols: ['h3'], maxConnections: 1 })
  bench.request('a', undefined, bench.secure)
  bench.turn()
  const streams = bench.quicDials[0]?.accept(0) as DoubleStreams
  streams.most = 2
  streams.handler.onCapacity(2)
  bench.request('b', undefined, bench.pool.directory.find('https://other.test'))
  bench.turn()
  assert.deepEqual([bench.takeLog(), streams.draining, bench.quicDials.length], [['a opened'], false, 1])
  streams.respond()
  bench.turn()
  streams.close()
  bench.turn()
  assert.equal(bench.quicDials.length, 2)
})

test('an idle connection is closed before QUIC would let it go without a word', () => {
  const idleTimeoutOf = (silence: number, options: EngineOptions['http3']): number => {
    const quic = {
      idle: { timeout: silence },
      openableBidirectional: 0,
      roundTripTime: 1,
      open() {},
      close() {},
      keepAlive() {},
      wake() {},
    }
    const dialled = { quic, info: connectionInfo('client') } as unknown as AnyDialled
    const handler = { onReady() {}, onCapacity() {}, onDraining() {}, onClose() {} } as unknown as ConnectionHandler
    const engine = makeEngine('h3', dialled, handler, { http1: {}, http2: {}, http3: options }, 0)
    return (engine as unknown as { limits: { idleTimeout: number } }).limits.idleTimeout
  }
  assert.equal(idleTimeoutOf(30_000, {}), 29_000)
  assert.equal(idleTimeoutOf(Infinity, {}), 60_000)
  assert.equal(idleTimeoutOf(30_000, { limits: { idleTimeout: 4_000 } }), 4_000)
  assert.equal(idleTimeoutOf(500, {}), 1_000)
})

test('HTTP/3 alone: no other way is tried, and none leads through a proxy', () => {
  const bench = new Bench({ protocols: ['h3'] })
  const { handler } = bench.request('a', undefined, bench.secure)
  bench.turn()
  assert.deepEqual(bench.quicDials[0]?.target, { host: 'secure.test', port: 443 })
  bench.world.advance(1000)
  bench.quicDials[0]?.refuse()
  bench.turn()
  assert.deepEqual([handler.error?.code, bench.dials.length], ['CONNECT_FAILED', 0])
  bench.assertEmpty()

  const proxied = new Bench({ protocols: ['h3'], proxy: 'http://proxy.test:8080' })
  const sent = proxied.request('a', undefined, proxied.secure)
  proxied.turn()
  assert.deepEqual([sent.handler.error?.code, proxied.quicDials.length, proxied.dials.length], ['PROXY_FAILED', 0, 0])
  proxied.assertEmpty()
})

test('tunnels go over HTTP/3 where the server allows it, else over HTTP/1.1 by TCP', () => {
  const bench = benchOf()
  learnAndClose(bench)
  bench.request('a', undefined, bench.secure)
  bench.turn()
  const streams = bench.quicDials[0]?.accept() as DoubleStreams
  bench.takeLog()
  bench.request('early', undefined, bench.secure, { tunnel: true })
  bench.turn()
  assert.deepEqual(bench.dials.at(-1)?.options.tls?.alpn, ['http/1.1'])
  streams.allow(100, true)
  bench.request('late', undefined, bench.secure, { tunnel: true })
  assert.deepEqual([bench.takeLog(), bench.quicDials.length], [['late opened'], 1])
})
