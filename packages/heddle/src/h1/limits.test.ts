import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Outbox } from '../bytes/index.ts'
import { requestHead, responseHead, type TimeoutError } from '../http/index.ts'
import { clientLimits, serverLimits } from './limits.ts'
import { client, request, server } from './transcript.test.ts'

/* Every row for HTTP/1.1 in the table of limits: what is allowed passes, what exceeds it meets the named end. */

const get = 'GET / HTTP/1.1\r\nHost: a\r\n'
const chunkedPost = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
const ok = 'HTTP/1.1 200 OK\r\n'
const lines = (count: number): string => Array.from({ length: count }, (_, i) => `x-${i}: v\r\n`).join('')

describe('heads', () => {
  test('field lines: 100 pass, 101 are 431', () => {
    assert.deepEqual(server().feed(`${get}${lines(99)}\r\n`).answers, ['200'])
    const bench = server().feed(`${get}${lines(100)}\r\n`)
    assert.deepEqual(bench.answers, ['431 field section too large'])
    assert.equal(bench.log.exchanges.length, 0)
    assert.equal(bench.closing, 'end')
  })

  test('a flood of field lines is refused before it ends, and before it is kept', () => {
    const bench = server()
    for (let i = 0; i < 10_000 && bench.closing === 'no'; i++) bench.feed(i === 0 ? get : `x-${i}: v\r\n`)
    assert.deepEqual(bench.answers, ['431 field section too large'])
  })

  test('cookie crumbs count one by one', () => {
    assert.deepEqual(server().feed(`${get}${'cookie: a\r\n'.repeat(100)}\r\n`).answers, ['431 field section too large'])
  })

  test('a section of 64 KiB, name and value and 32 a line', () => {
    const line = (length: number): string => `x: ${'v'.repeat(length)}\r\n`
    // host + a + 32 = 37; four lines of 16,383 + 1 + 32 would be too many.
    const room = 65_536 - 37 - 3 * (16_000 + 33)
    assert.deepEqual(server().feed(`${get}${line(16_000).repeat(3)}${line(room - 33 - 16_000)}${line(16_000 - 33)}\r\n`).answers, ['200'])
    assert.deepEqual(server().feed(`${get}${line(16_000).repeat(3)}${line(room - 33 - 16_000)}${line(16_000 - 32)}\r\n`).answers, [
      '431 field section too large',
    ])
  })

  test('one field line of 16 KiB', () => {
    assert.deepEqual(server().feed(`${get}x: ${'v'.repeat(16_384 - 3)}\r\n\r\n`).answers, ['200'])
    assert.deepEqual(server().feed(`${get}x: ${'v'.repeat(16_384 - 2)}\r\n\r\n`).answers, ['431 field section too large'])
  })

  test('a request line of 16 KiB, beyond it 414', () => {
    const rest = 'GET / HTTP/1.1'.length
    assert.deepEqual(server().feed(`GET /${'p'.repeat(16_384 - rest)} HTTP/1.1\r\nHost: a\r\n\r\n`).answers, ['200'])
    assert.deepEqual(server().feed(`GET /${'p'.repeat(16_385 - rest)} HTTP/1.1\r\nHost: a\r\n\r\n`).answers, ['414 request line too long'])
  })

  test('an endless line is refused when it is too long, not when it ends', () => {
    const bench = server()
    let fed = 0
    while (bench.closing === 'no' && fed < 1_000_000) {
      bench.feed(fed === 0 ? 'GET /' : 'p'.repeat(100))
      fed += 100
    }
    assert.ok(fed < 17_000)
    assert.deepEqual(bench.answers, ['414 request line too long'])
    const inField = server().feed(`${get}x: `)
    for (let i = 0; i < 200 && inField.closing === 'no'; i++) inField.feed('v'.repeat(100))
    assert.deepEqual(inField.answers, ['431 field section too large'])
  })

  test('a section that another connection may read does not pass where limits are tighter', () => {
    const head = `${get}x-limits: one and more\r\nx-more: two\r\n\r\n`
    assert.deepEqual(server().feed(head).answers, ['200'])
    assert.deepEqual(server().feed(head).answers, ['200'])
    assert.deepEqual(server({ limits: { maxFieldLines: 2 } }).feed(head).answers, ['431 field section too large'])
    assert.deepEqual(server({ limits: { maxFieldSectionSize: 100 } }).feed(head).answers, ['431 field section too large'])
    assert.deepEqual(server({ limits: { maxFieldLineSize: 14 } }).feed(head).answers, ['431 field section too large'])
  })

  test('trailers have the same limits', () => {
    const bench = server().feed(`${chunkedPost}0\r\n${lines(101)}\r\n`)
    assert.equal(bench.log.exchanges[0]?.error?.code, 'FIELDS_TOO_LARGE')
    assert.deepEqual(bench.answers, ['431'])
    const long = server().feed(`${chunkedPost}0\r\nx: ${'v'.repeat(17_000)}`)
    assert.deepEqual(long.answers, ['431'])
  })

  test('a response head too large ends the exchange and the connection', () => {
    for (const head of [`${ok}${lines(101)}\r\n`, `${ok}x: ${'v'.repeat(17_000)}`, `HTTP/1.1 200 ${'r'.repeat(17_000)}`]) {
      const bench = client()
      const log = request(bench)
      bench.flush().feed(head)
      assert.equal(log.error?.code, 'FIELDS_TOO_LARGE')
      assert.equal(bench.closing, 'reset')
    }
  })
})

describe('time', () => {
  test('a request head in 10 s from its first byte: 408', () => {
    const bench = server().feed(`${get}\r\n`).advance(5_000)
    assert.deepEqual(bench.answers, ['200'])
    bench.feed('GET / HT')
    // A byte now and then does not help.
    for (let i = 0; i < 9; i++) bench.advance(1_000).feed('T')
    assert.equal(bench.closing, 'no')
    bench.advance(1_000)
    assert.deepEqual(bench.answers, ['200', '408 the request head took too long'])
    assert.equal(bench.closing, 'end')
  })

  test('from accept to the first head 10 s; without a byte of it the end is silent', () => {
    const silent = server().flush().advance(9_999)
    assert.equal(silent.closing, 'no')
    silent.advance(1)
    assert.equal(silent.closing, 'close')
    assert.equal(silent.wire, '')
    assert.deepEqual(silent.log.lines, ['close'])
    const late = server().advance(9_000).feed('G').advance(1_000)
    assert.deepEqual(late.answers, ['408 the request head took too long'])
  })

  test('each head of a pipeline has its own 10 s', () => {
    const bench = server().feed(`${get}\r\nGET`)
    for (let i = 0; i < 5; i++) bench.advance(6_000).feed(` / HTTP/1.1\r\nHost: a\r\n\r\nGET`)
    assert.deepEqual(bench.answers, ['200', '200', '200', '200', '200', '200'])
    assert.equal(bench.closing, 'no')
  })

  test('keep-alive: 60 s at a server', () => {
    const bench = server().feed(`${get}\r\n`).advance(59_999)
    assert.equal(bench.closing, 'no')
    bench.feed(`${get}\r\n`).advance(59_999)
    assert.equal(bench.closing, 'no')
    bench.advance(1)
    assert.equal(bench.closing, 'close')
    assert.deepEqual(bench.log.lines, ['close'])
  })

  test('keep-alive: 4 s at a client, or what the server says less a second, at least a second', () => {
    const cases: [string, number][] = [
      ['', 4_000],
      ['Keep-Alive: timeout=10\r\n', 9_000],
      ['Keep-Alive: max=5, timeout=2\r\n', 1_000],
      ['Keep-Alive: timeout=1\r\n', 1_000],
      ['Keep-Alive: timeout=0\r\n', 1_000],
      ['Keep-Alive: timeout=999999\r\n', 600_000],
      ['Keep-Alive: nonsense\r\n', 4_000],
    ]
    for (const [field, idle] of cases) {
      const bench = client()
      request(bench)
      bench.flush().feed(`${ok}Content-Length: 0\r\n${field}\r\n`)
      bench.advance(idle - 1)
      assert.equal(bench.closing, 'no', field)
      assert.equal(bench.engine.openable, 1)
      bench.advance(1)
      assert.equal(bench.closing, 'close', field)
      assert.equal(bench.engine.openable, 0)
    }
  })

  test('no byte of wanted content for 30 s: 408, and the handler hears of it', () => {
    const bench = server().feed('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\na')
    bench.advance(29_999).feed('b').advance(29_999)
    assert.equal(bench.closing, 'no')
    bench.advance(1)
    assert.deepEqual(bench.answers, ['408'])
    assert.equal((bench.log.exchanges[0]?.error as TimeoutError | undefined)?.phase, 'body')
  })

  test('a slow body behind a response that has begun: the response is cut off', () => {
    const bench = server({}, (log, exchange) => {
      log.on = { onHead: () => exchange.sendHead(responseHead(200), false) }
    }).feed('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\na')
    bench.advance(30_000)
    assert.equal(bench.closing, 'reset')
    assert.equal(bench.log.exchanges[0]?.error?.code, 'BODY_TIMEOUT')
  })

  test('no byte of a response for a minute', () => {
    const bench = client()
    const log = request(bench)
    bench.flush().feed(`${ok}Content-Length: 5\r\n\r\na`).advance(59_999)
    assert.equal(log.closed, 0)
    bench.advance(1)
    assert.equal(log.error?.code, 'BODY_TIMEOUT')
    assert.equal(bench.closing, 'reset')
  })

  test('no response for a minute after the request', () => {
    const bench = client()
    const log = request(bench)
    bench.flush().advance(30_000).feed('HTTP/1.1 103 Early Hints\r\n\r\n').advance(29_999)
    assert.equal(log.closed, 0)
    bench.advance(1)
    assert.equal(log.error?.code, 'HEAD_TIMEOUT')
    assert.equal(bench.closing, 'reset')
  })

  test('a peer that takes nothing for 60 s: reset', () => {
    const bench = server({}, (log, exchange) => {
      log.on = {
        onHead() {
          exchange.sendHead(responseHead(200), false)
          exchange.sendData(Buffer.alloc(100_000), 0, 100_000, false)
        },
      }
    })
    bench.takes = false
    bench.feed(`${get}\r\n`).advance(59_999)
    assert.equal(bench.closing, 'no')
    // It takes a little, and the time begins again.
    const out = new Outbox(Buffer.alloc(64), 10)
    assert.equal(bench.engine.transmit(out, bench.now), true)
    assert.equal(out.length, 10)
    bench.advance(59_999)
    assert.equal(bench.closing, 'no')
    bench.advance(1)
    assert.equal(bench.closing, 'reset')
    assert.equal(bench.log.exchanges[0]?.error?.code, 'SEND_TIMEOUT')
    assert.equal(bench.log.error?.code, 'SEND_TIMEOUT')
  })
})

describe('content', () => {
  test('declared too long: 413 before the content, and no exchange', () => {
    const options = { limits: { maxContentLength: 5 } }
    assert.deepEqual(server(options).feed('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde').answers, ['200'])
    const bench = server(options).feed('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n')
    assert.deepEqual(bench.answers, ['413 content too large'])
    assert.equal(bench.log.exchanges.length, 0)
  })

  test('received too long: 413, and the handler hears of it', () => {
    const bench = server({ limits: { maxContentLength: 5 } }).feed(`${chunkedPost}3\r\nabc\r\n3\r\ndef\r\n`)
    assert.deepEqual(bench.answers, ['413'])
    assert.equal(bench.log.exchanges[0]?.error?.code, 'CONTENT_TOO_LARGE')
    assert.equal(bench.log.exchanges[0]?.received, 3)
  })

  test('a client has the limit too, if it is set', () => {
    const bench = client({ limits: { maxContentLength: 2 } })
    const log = request(bench)
    bench.flush().feed(`${ok}Content-Length: 3\r\n\r\nabc`)
    assert.equal(log.error?.code, 'CONTENT_TOO_LARGE')
    assert.equal(bench.closing, 'reset')
  })

  test('only SP and HTAB are white space around an item: what others take for garbage is garbage', () => {
    for (const octet of ['\xa0', '\v', '\f']) {
      for (const value of [`chunked${octet}`, `${octet}chunked`, `gzip, chunked${octet}`]) {
        const bench = server().feed(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ${value}\r\n\r\n0\r\n\r\n`)
        assert.match(bench.answers.join(), /^400/, JSON.stringify(value))
      }
    }
    assert.deepEqual(server().feed('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \t chunked \t\r\n\r\n0\r\n\r\n').answers, ['200'])
    const bench = server().feed(`${get}Connection: close\xa0\r\n\r\n`)
    assert.equal(bench.closing, 'no')
  })

  test('Connection may name thousands of fields and still costs little', () => {
    const names = Array.from({ length: 3_000 }, (_, i) => `x${i.toString(36)}`)
    const fields = Array.from({ length: 99 }, (_, i) => `y-${i}: ${i}\r\n`).join('')
    const limits = { maxFieldLineSize: 65_536, maxFieldLines: 1_000 }
    let compared = 0
    const { includes } = Array.prototype
    Array.prototype.includes = function (...parameters) {
      compared += this.length
      return includes.apply(this, parameters)
    }
    try {
      const bench = server({ limits }).feed(`GET / HTTP/1.1\r\nHost: a\r\nConnection: ${names.join()}\r\nx0: gone\r\n${fields}\r\n`)
      assert.deepEqual(bench.answers, ['200'])
      assert.equal(bench.log.exchanges[0]?.head?.fields.length, 2 * 99)
    } finally {
      Array.prototype.includes = includes
    }
    assert.ok(compared < 10_000, `${compared} comparisons`)
  })

  test('chunk extensions: 4 KiB a message, all chunks together', () => {
    const chunk = (size: number): string => `1;${'e'.repeat(size - 1)}\r\na\r\n`
    assert.deepEqual(server().feed(`${chunkedPost}${chunk(2048)}${chunk(2048)}0\r\n\r\n`).answers, ['200'])
    const bench = server().feed(`${chunkedPost}${chunk(2048)}${chunk(2049)}0\r\n\r\n`)
    assert.deepEqual(bench.answers, ['400'])
    assert.equal(bench.closing, 'end')
    assert.match(String(bench.log.exchanges[0]?.error?.message), /extensions/)
    // Many small ones, one octet each.
    assert.deepEqual(server().feed(`${chunkedPost}${'1;\r\na\r\n'.repeat(5000)}0\r\n\r\n`).answers, ['400'])
  })

  test('the receive window: reading stops at 64 KiB nobody consumed, and goes on', () => {
    const bench = server({}, (log) => {
      log.consumes = false
    }).feed('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n')
    bench.feed(Buffer.alloc(65_535))
    assert.equal(bench.engine.wantsInput, true)
    bench.feed(Buffer.alloc(1))
    assert.equal(bench.engine.wantsInput, false)
    // The client is not to blame for the pause.
    bench.advance(1_000_000)
    assert.equal(bench.closing, 'no')
    const { dirt } = bench
    bench.log.exchanges[0]?.exchange?.consume(1)
    assert.equal(bench.engine.wantsInput, true)
    assert.equal(bench.dirt, dirt + 1)
    bench.flush().advance(30_000)
    assert.deepEqual(bench.answers, ['408'])
  })

  test('1xx responses: 100 to a request, then the connection closes', () => {
    const bench = client()
    const log = request(bench)
    bench.flush()
    for (let i = 0; i < 100; i++) bench.feed('HTTP/1.1 103 Early Hints\r\n\r\n')
    assert.equal(log.closed, 0)
    bench.feed('HTTP/1.1 103 Early Hints\r\n\r\n')
    assert.equal(log.error?.code, 'PROTOCOL_ERROR')
    assert.equal(bench.closing, 'reset')
  })
})

describe('memory', () => {
  test('pipelined requests behind an open one wait, and reading stops', () => {
    const bench = server({}, () => {})
    bench.feed(`${get}\r\n`)
    assert.equal(bench.engine.wantsInput, true)
    // Behind a few there may still be news: that the client has gone.
    bench.feed(`${get}\r\n`.repeat(3))
    assert.equal(bench.engine.wantsInput, true)
    assert.equal(bench.log.exchanges.length, 1)
    const count = Math.ceil(65_536 / (get.length + 2))
    for (let i = 4; i <= count; i++) bench.feed(`${get}\r\n`)
    assert.equal(bench.engine.wantsInput, false)
    assert.equal(bench.log.exchanges.length, 1)
    for (let i = 0; i <= count; i++) {
      bench.log.exchanges[i]?.exchange?.sendHead(responseHead(200), true)
      bench.flush()
    }
    assert.equal(bench.answers.length, count + 1)
    assert.equal(bench.engine.wantsInput, true)
  })

  test('what waits behind is not copied again for every request that is answered', () => {
    const bench = server({}, () => {})
    bench.feed(`${get}\r\n`.repeat(1_500))
    let copied = 0
    const { copy } = Buffer.prototype
    Buffer.prototype.copy = function (this: Buffer, ...parameters: Parameters<typeof copy>) {
      const byteCount = copy.apply(this, parameters)
      copied += byteCount
      return byteCount
    }
    try {
      for (let i = 0; i < 1_500; i++) {
        bench.log.exchanges[i]?.exchange?.sendHead(responseHead(200), true)
        bench.flush()
      }
    } finally {
      Buffer.prototype.copy = copy
    }
    assert.equal(bench.answers.length, 1_500)
    assert.ok(copied < 1_000_000, `${copied} bytes were copied`)
  })

  test('a client that sends requests and reads no answers is not read any more', () => {
    const content = Buffer.alloc(10_000)
    const bench = server({}, (log, exchange) => {
      log.on = {
        onHead() {
          exchange.sendHead(responseHead(200, ['content-length', '10000']), false)
          exchange.sendData(content, 0, content.length, true)
        },
      }
    })
    bench.takes = false
    let fed = 0
    while (bench.engine.wantsInput && fed < 10_000) {
      bench.feed(`${get}\r\n`)
      fed++
    }
    assert.ok(fed < 10, `stopped after ${fed} requests`)
    bench.takes = true
    bench.flush()
    assert.equal(bench.answers.length, fed)
    assert.equal(bench.engine.wantsInput, true)
  })

  test('sendData takes all, and says false from 64 KiB on', () => {
    const results: boolean[] = []
    const bench = server({}, (log, exchange) => {
      log.on = {
        onHead() {
          exchange.sendHead(responseHead(200, ['content-length', '1000000']), false)
          for (let i = 0; i < 8; i++) results.push(exchange.sendData(Buffer.alloc(10_000), 0, 10_000, false))
        },
      }
    })
    bench.takes = false
    bench.feed(`${get}\r\n`)
    assert.deepEqual(results, [true, true, true, true, true, true, false, false])
    bench.takes = true
    bench.flush()
    assert.equal(bench.log.exchanges[0]?.sent, 80_000)
    assert.ok((bench.log.exchanges[0]?.writable ?? 0) > 0, 'the sender is told to go on')
  })
})

describe('draining', () => {
  const big = requestHead('GET', 'http', 'a.test', '/')

  test('a client drains up to 256 KiB and 50 ms', () => {
    assert.equal(clientLimits.drainSize, 262_144)
    const bench = client()
    const log = request(bench, big)
    bench.flush().feed(`${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n`)
    log.exchange?.discard()
    bench.flush()
    assert.equal(log.closed, 1)
    assert.equal(log.error, undefined)
    assert.equal(bench.engine.openable, 0)
    bench.feed('3\r\nabc\r\n0\r\n\r\n')
    assert.deepEqual(bench.log.lines, ['drained 3 true', 'capacity 1'])
    assert.equal(bench.engine.openable, 1)
  })

  test('… and drops the connection beyond that', () => {
    for (const beyond of ['size', 'time'] as const) {
      const bench = client()
      const log = request(bench, big)
      bench.flush().feed(`${ok}Transfer-Encoding: chunked\r\n\r\n`)
      log.exchange?.discard()
      bench.flush()
      if (beyond === 'time') bench.advance(49).feed('1\r\na\r\n').advance(1)
      else bench.feed(`50000\r\n${'a'.repeat(262_145)}`)
      assert.equal(bench.closing, 'reset', beyond)
      assert.match(String(bench.log.lines[0]), /^drained \d+ false$/)
    }
  })

  test('… and does not begin when it cannot end: too much announced, Connection: close, no length, or turned off', () => {
    const heads: [string, number?][] = [
      ['Content-Length: 262145\r\n'],
      ['Content-Length: 10\r\nConnection: close\r\n'],
      [''],
      ['Content-Length: 10\r\n', 0],
    ]
    for (const [field, drainSize] of heads) {
      const bench = client(drainSize === undefined ? {} : { limits: { drainSize } })
      const log = request(bench, big)
      bench.flush().feed(`${ok}${field}\r\n`)
      log.exchange?.discard()
      bench.flush()
      assert.equal(log.closed, 1, field)
      assert.equal(log.error, undefined)
      assert.equal(bench.closing, 'reset', field)
      assert.ok(bench.log.lines.includes('drained 0 false'))
    }
  })

  test('a server drains up to 256 KiB and 500 ms behind its answer, then keeps the connection', () => {
    assert.equal(serverLimits.drainTimeout, 500)
    const bench = server({}, (log, exchange) => {
      log.on = {
        onHead() {
          exchange.discard()
          exchange.sendHead(responseHead(200), true)
        },
      }
    }).feed('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n')
    assert.equal(bench.log.exchanges[0]?.closed, 1, 'the exchange does not wait for it')
    bench.advance(499).feed('a'.repeat(1000)).feed(`${get}\r\n`)
    assert.deepEqual(bench.answers, ['200', '200'])
    assert.equal(bench.closing, 'no')
  })

  test('… or lingers and closes', () => {
    const serve = (length: string): ReturnType<typeof server> =>
      server({}, (log, exchange) => {
        log.on = {
          onHead() {
            exchange.discard()
            exchange.sendHead(responseHead(200), true)
          },
        }
      }).feed(`POST / HTTP/1.1\r\nHost: a\r\n${length}\r\n\r\n`)
    const slow = serve('Content-Length: 1000').advance(500)
    assert.equal(slow.closing, 'end')
    slow.advance(500)
    assert.equal(slow.closing, 'close')

    const large = serve('Transfer-Encoding: chunked').feed(`50000\r\n${'a'.repeat(262_145)}`)
    assert.equal(large.closing, 'end')

    const announced = serve('Content-Length: 262145')
    assert.match(announced.wire, /connection: close/)
    assert.equal(announced.closing, 'end')
    // What comes meanwhile is read, so that the answer is not lost to a reset.
    assert.equal(announced.engine.wantsInput, true)
    announced.feed('a'.repeat(100_000))
    assert.equal(announced.closing, 'end')
    assert.equal(announced.feedEnd().closing, 'close')
  })

  test('a lingering connection ends when the client has sent 256 KiB more, or after 500 ms', () => {
    const bench = server().feed('nonsense\r\n')
    assert.equal(bench.closing, 'end')
    bench.feed(Buffer.alloc(262_144))
    assert.equal(bench.closing, 'end')
    bench.feed(Buffer.alloc(1))
    assert.equal(bench.closing, 'close')
    assert.equal(server().feed('nonsense\r\n').advance(500).closing, 'close')
  })
})
