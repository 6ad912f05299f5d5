import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeddleError, responseHead, type Exchange } from '../http/index.ts'
import { server, type Bench, type Log } from './transcript.test.ts'

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const post = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n'
const text = (value: string): Buffer => Buffer.from(value, 'latin1')

/** A server whose exchanges are answered by the test. */
const manual = (options = {}): ReturnType<typeof server> => server(options, () => {})
const exchangeOf = (bench: Bench<never>, i = 0): Exchange => (bench.log.exchanges[i] as Log).exchange as Exchange
const send = (exchange: Exchange, value: string, end: boolean): boolean => exchange.sendData(text(value), 0, value.length, end)

describe('framing of responses', () => {
  const answered = (request: string, respond: (exchange: Exchange) => void, options = {}): ReturnType<typeof server> => {
    const bench = manual(options).feed(request)
    respond(exchangeOf(bench as never))
    return bench.flush()
  }

  test('a declared length', () => {
    const bench = answered(get, (x) => {
      x.sendHead(responseHead(200, ['content-length', '3']), false)
      send(x, 'abc', true)
    })
    assert.equal(bench.wire, 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc')
    assert.equal(bench.log.exchanges[0]?.error, undefined)
    assert.equal(bench.log.exchanges[0]?.sent, 3)
  })

  test('no length: chunked, an empty write is no last chunk', () => {
    const bench = answered(get, (x) => {
      x.sendHead(responseHead(200), false)
      send(x, 'abc', false)
      send(x, '', false)
      x.sendOwned(Buffer.alloc(5000, 0x78), false)
      send(x, 'd', true)
    })
    assert.equal(
      bench.wire,
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1388\r\n${'x'.repeat(5000)}\r\n1\r\nd\r\n0\r\n\r\n`,
    )
    assert.equal(bench.log.exchanges[0]?.sent, 5004)
  })

  test('426 names the protocols it wants; no other response has Upgrade', () => {
    const upgrade = ['upgrade', 'websocket', 'upgrade', 'h2c']
    const refuse = (status: number, fields: string[]) => (x: Exchange) => x.sendHead(responseHead(status, fields), true)
    const head = 'HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\nconnection: upgrade'
    assert.equal(answered(get, refuse(426, upgrade)).wire, `${head}\r\nupgrade: websocket, h2c\r\n\r\n`)
    const closing = answered(get, refuse(426, [...upgrade, 'connection', 'close']))
    assert.equal(closing.wire, `${head}, close\r\nupgrade: websocket, h2c\r\n\r\n`)
    assert.equal(closing.closing, 'end')
    assert.doesNotMatch(answered(get, refuse(400, upgrade)).wire, /upgrade/)
    assert.throws(() => answered(get, refuse(426, ['upgrade', 'a\r\nb: c'])), /upgrade/)
  })

  test('trailers, those that must not be trailers left out', () => {
    const bench = answered(get, (x) => {
      x.sendHead(responseHead(200), false)
      send(x, 'a', false)
      x.sendTrailers(['x-sum', '1', 'content-length', '5', 'set-cookie', 'a'])
    })
    assert.equal(bench.wire.slice(bench.wire.indexOf('\r\n\r\n') + 4), '1\r\na\r\n0\r\nx-sum: 1\r\n\r\n')
  })

  test('trailers behind a declared length are dropped', () => {
    const bench = answered(get, (x) => {
      x.sendHead(responseHead(200, ['content-length', '1']), false)
      send(x, 'a', false)
      x.sendTrailers(['x-sum', '1'])
    })
    assert.equal(bench.wire, 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na')
    assert.equal(bench.closing, 'no')
  })

  test('a head with end has length 0', () => {
    assert.equal(answered(get, (x) => x.sendHead(responseHead(404), true)).wire, 'HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n')
  })

  test('204 and 304 have no content, and a 204 no length', () => {
    for (const [status, length] of [
      [204, ''],
      [304, 'content-length: 3\r\n'],
    ] as const) {
      const bench = answered(get, (x) => {
        x.sendHead(responseHead(status, ['content-length', '3']), false)
        assert.equal(send(x, 'abc', true), true)
      })
      assert.equal(bench.wire.replace(/ [A-Za-z ]+\r/, '\r'), `HTTP/1.1 ${status}\r\n${length}\r\n`)
      assert.equal(bench.log.exchanges[0]?.sent, 3, 'what is dropped counts as sent: a proxy credits its source')
      assert.equal(bench.feed(get).log.exchanges.length, 2)
    }
  })

  test('HEAD: the fields of GET, and no content', () => {
    const head = get.replace('GET', 'HEAD')
    const bench = answered(head, (x) => {
      x.sendHead(responseHead(200, ['content-length', '3']), false)
      send(x, 'abc', true)
    })
    assert.equal(bench.wire, 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n')
    assert.equal(answered(head, (x) => x.sendHead(responseHead(200), true)).wire, 'HTTP/1.1 200 OK\r\n\r\n')
  })

  test('HTTP/1.0: no chunks, the end of the connection ends the content', () => {
    const bench = answered('GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', (x) => {
      x.sendHead(responseHead(200), false)
      send(x, 'abc', true)
    })
    assert.equal(bench.wire, 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc')
    assert.equal(bench.closing, 'end')
  })

  test('HTTP/1.0 with keep-alive and a length stays', () => {
    const bench = answered('GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', (x) => x.sendHead(responseHead(200), true))
    assert.equal(bench.wire, 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n')
    assert.equal(bench.closing, 'no')
  })

  test('HTTP/1.0: no 1xx', () => {
    const bench = answered('GET / HTTP/1.0\r\n\r\n', (x) => {
      x.sendHead(responseHead(103), false)
      x.sendHead(responseHead(200), true)
    })
    assert.deepEqual(bench.answers, ['200'])
  })

  test('the date is added unless the handler gave one', () => {
    const date = { httpDate: () => 'Mon, 30 Nov 2026 00:00:00 GMT' }
    const own = answered(get, (x) => x.sendHead(responseHead(200, ['date', 'today']), true), { date })
    assert.equal(own.wire, 'HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 0\r\n\r\n')
    const added = answered(get, (x) => x.sendHead(responseHead(200), true), { date })
    assert.equal(added.wire, 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\ndate: Mon, 30 Nov 2026 00:00:00 GMT\r\n\r\n')
  })

  test('fields of the connection are the engine’s: dropped, but a wish to close is heard', () => {
    const fields = ['connection', 'Close, x', 'transfer-encoding', 'gzip', 'keep-alive', 'x', 'upgrade', 'y', 'host', 'z', 'x-a', '1']
    const bench = answered(get, (x) => x.sendHead(responseHead(200, fields), true))
    assert.equal(bench.wire, 'HTTP/1.1 200 OK\r\nx-a: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
    assert.equal(bench.closing, 'end')
  })

  test('more content than declared is a UsageError and does no harm; less ends the connection', () => {
    const bench = manual().feed(get)
    const x = exchangeOf(bench as never)
    x.sendHead(responseHead(200, ['content-length', '3']), false)
    assert.throws(() => send(x, 'abcd', true), { code: 'USAGE' })
    send(x, 'ab', false)
    bench.flush()
    send(x, '', true)
    bench.flush()
    assert.equal(bench.wire, 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab')
    assert.equal(bench.log.exchanges[0]?.error?.code, 'CANCELLED')
    assert.equal(bench.closing, 'reset')
  })

  test('large content by reference and by copy arrives in order', () => {
    const parts = Array.from({ length: 40 }, (_, i) => Buffer.alloc(1 + i * 700, 0x41 + (i % 26)))
    const bench = manual().feed(get)
    const x = exchangeOf(bench as never)
    x.sendHead(responseHead(200, ['content-length', String(Buffer.concat(parts).length)]), false)
    for (const [i, part] of parts.entries()) {
      const end = i === parts.length - 1
      if (i % 2 === 0) x.sendOwned(part, end)
      else x.sendData(part, 0, part.length, end)
    }
    bench.room = 999
    bench.flush()
    assert.equal(bench.wire.slice(bench.wire.indexOf('\r\n\r\n') + 4), Buffer.concat(parts).toString('latin1'))
    assert.equal(bench.log.exchanges[0]?.sent, Buffer.concat(parts).length)
  })
})

describe('mistakes', () => {
  test('heads that cannot go on the wire are UsageErrors, and nothing is sent', () => {
    const bench = manual().feed(get)
    const x = exchangeOf(bench as never)
    const bad: [number, string[]][] = [
      [200, ['x', 'a\r\nb']],
      [200, ['x', 'a\nb']],
      [200, ['x', 'a\0b']],
      [200, ['x', '\u010a']],
      [200, ['x', ' a']],
      [200, ['x', 'a ']],
      [200, ['X-A', 'upper case']],
      [200, ['x a', '1']],
      [200, ['x:', '1']],
      [200, ['', '1']],
      [200, ['x\r\n', '1']],
      [200, ['x']],
      [200, ['content-length', '1x']],
      [200, ['content-length', '1', 'content-length', '1']],
      [99, []],
      [600, []],
      [200.5, []],
      [101, []],
    ]
    for (const [status, fields] of bad)
      assert.throws(() => x.sendHead(responseHead(status, fields), true), { code: 'USAGE' }, String(fields))
    assert.throws(() => x.sendHead(responseHead(103), true), { code: 'USAGE' })
    assert.throws(() => x.sendHead(responseHead(200, ['content-length', '3']), true), { code: 'USAGE' })
    bench.flush()
    assert.equal(bench.wire, '')
    x.sendHead(responseHead(200), true)
    assert.equal(bench.flush().wire, 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
  })

  test('calls out of order are UsageErrors', () => {
    const bench = manual().feed(get)
    const x = exchangeOf(bench as never)
    assert.throws(() => send(x, 'a', false), { code: 'USAGE' })
    assert.throws(() => x.sendTrailers([]), { code: 'USAGE' })
    x.sendHead(responseHead(200), false)
    assert.throws(() => x.sendHead(responseHead(200), false), { code: 'USAGE' })
    assert.throws(() => x.sendHead(responseHead(103), false), { code: 'USAGE' })
    assert.throws(() => x.sendTrailers(['x', 'a\nb']), { code: 'USAGE' })
    x.sendTrailers([])
    assert.throws(() => send(x, 'a', false), { code: 'USAGE' })
    assert.throws(() => x.sendTrailers([]), { code: 'USAGE' })
  })

  test('a handler cannot run the engine', () => {
    const { engine } = server({}, (log, exchange) => {
      log.on = {
        onHead() {
          for (const call of [
            () => engine.shutdown(),
            () => engine.receiveEnd(0),
            () => engine.expire(0),
            () => engine.abort(new HeddleError('SHUTDOWN', '')),
          ]) {
            assert.throws(call, { code: 'USAGE' })
          }
          exchange.sendHead(responseHead(200), true)
        },
      }
    })
    engine.receive(text(get), 0, get.length, 0)
    assert.equal(engine.openExchanges, 1)
  })

  test('a handler that throws: 500 if nothing was said, else the connection is dropped', () => {
    for (const where of ['onExchange', 'onHead', 'onData', 'later'] as const) {
      const fail = (): never => {
        throw new Error('mine')
      }
      const bench = server({}, (log, exchange) => {
        if (where === 'onExchange') fail()
        log.on = {
          onHead() {
            if (where === 'onHead') fail()
            if (where === 'later') exchange.sendHead(responseHead(200), false)
          },
          onData: fail,
        }
      }).feed(`${post}abc`)
      assert.deepEqual(bench.answers, [where === 'later' ? '200' : '500'].slice(where === 'later' ? 1 : 0))
      assert.equal(bench.closing, where === 'later' ? 'reset' : 'end')
      if (where === 'onExchange') continue
      const { error } = bench.log.exchanges[0] as Log
      assert.equal(error?.code, 'HANDLER_FAILED')
      assert.equal((error?.cause as Error | undefined)?.message, 'mine')
    }
  })
})
