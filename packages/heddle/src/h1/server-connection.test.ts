import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CancelReason, HeddleError, PeerError, responseHead, type Exchange } from '../http/index.ts'
import { answerAtEnd, server, type Bench, type Log } from './transcript.test.ts'

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const text = (value: string): Buffer => Buffer.from(value, 'latin1')

/** A server whose exchanges are answered by the test. */
const manual = (options = {}): ReturnType<typeof server> => server(options, () => {})
const exchangeOf = (bench: Bench<never>, i = 0): Exchange => (bench.log.exchanges[i] as Log).exchange as Exchange
const send = (exchange: Exchange, value: string, end: boolean): boolean => exchange.sendData(text(value), 0, value.length, end)

describe('the life of a connection', () => {
  test('pipelined requests are answered in order, one at a time, with one write', () => {
    const bench = server().feed('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(8))
    assert.equal(bench.answers.length, 16)
    assert.deepEqual(
      bench.log.exchanges.map(({ head }) => head?.path),
      Array.from({ length: 16 }, (_, i) => `/${(i % 2) + 1}`),
    )
  })

  test('a request behind an open exchange begins when that is over', () => {
    const bench = manual().feed('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal(bench.log.exchanges.length, 1)
    exchangeOf(bench as never).sendHead(responseHead(200), true)
    assert.equal(bench.log.exchanges.length, 1, 'not from inside a method')
    bench.flush()
    assert.equal(bench.log.exchanges.length, 2)
    assert.equal(bench.log.exchanges[0]?.closed, 1)
    exchangeOf(bench as never, 1).sendHead(responseHead(201), true)
    assert.deepEqual(bench.flush().answers, ['200', '201'])
  })

  test('onDirty is called from outside the run loop only', () => {
    const bench = server().feed(get)
    assert.equal(bench.dirt, 0)
    const other = manual().feed(get)
    exchangeOf(other as never).sendHead(responseHead(200), true)
    assert.equal(other.dirt, 1)
  })

  test('shutdown: an idle connection closes at once', () => {
    const bench = server().feed(get)
    bench.engine.shutdown()
    assert.equal(bench.dirt, 1)
    assert.equal(bench.flush().closing, 'close')
    assert.deepEqual(bench.log.lines, ['close'])
  })

  test('shutdown: an open exchange is answered with Connection: close', () => {
    const bench = manual().feed(get)
    bench.engine.shutdown()
    assert.equal(bench.flush().closing, 'no')
    exchangeOf(bench as never).sendHead(responseHead(200), true)
    bench.flush()
    assert.match(bench.wire, /connection: close/)
    assert.equal(bench.closing, 'end')
    assert.equal(bench.feedEnd().closing, 'close')
    assert.deepEqual(bench.log.lines, ['close'])
  })

  test('shutdown: a response that has begun is finished, then the connection closes', () => {
    const bench = manual().feed(get)
    const x = exchangeOf(bench as never)
    x.sendHead(responseHead(200), false)
    bench.flush().engine.shutdown()
    send(x, 'abc', true)
    assert.match(bench.flush().wire, /abc\r\n0\r\n\r\n$/)
    assert.equal(bench.closing, 'end')
    assert.equal(bench.log.exchanges[0]?.error, undefined)
  })

  test('shutdown: a response that is leaving leaves, then the connection closes', () => {
    const bench = server()
    bench.takes = false
    bench.feed(get).engine.shutdown()
    assert.equal(bench.flush().closing, 'no')
    bench.takes = true
    assert.equal(bench.flush().closing, 'close')
    assert.deepEqual(bench.log.lines, ['close'])
    assert.equal(bench.log.exchanges[0]?.error, undefined)
  })

  test('shutdown: content that is drained is drained, then the connection closes', () => {
    const bench = manual().feed('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc')
    const x = exchangeOf(bench as never)
    x.sendHead(responseHead(200), true)
    x.discard()
    bench.flush().engine.shutdown()
    assert.equal(bench.flush().closing, 'no')
    assert.equal(bench.feed('def').closing, 'close')
    assert.deepEqual(bench.log.lines, ['close'])
  })

  test('shutdown within a head: that request is still answered', () => {
    const bench = server().feed('GET / HT')
    bench.engine.shutdown()
    assert.equal(bench.flush().closing, 'no')
    bench.feed('TP/1.1\r\nHost: a\r\n\r\n')
    assert.match(bench.wire, /200 OK\r\n.*connection: close/s)
  })

  test('abort: every exchange ends with the error', () => {
    let first = true
    const bench = server({}, (log, exchange) => {
      if (first) answerAtEnd(log, exchange)
      first = false
    })
    bench.takes = false
    bench.feed(get + get)
    const error = new HeddleError('SHUTDOWN', 'enough')
    bench.engine.abort(error)
    assert.equal(bench.log.exchanges[0]?.closed, 0, 'not from inside abort')
    bench.flush()
    assert.deepEqual(
      bench.log.exchanges.map((log) => log.error),
      [error, error],
    )
    assert.equal(bench.closing, 'reset')
    assert.equal(bench.log.error, error)
  })

  test('the transport fails: every exchange ends with the error, answers that were not taken too', () => {
    const bench = server()
    bench.takes = false
    bench.feed(get)
    const error = new PeerError('PEER_RESET', 'reset')
    bench.engine.receiveError(error, 0)
    assert.equal(bench.log.exchanges[0]?.error, error)
    assert.equal(bench.log.error, error)
    assert.equal(bench.engine.deadline, Infinity)
    assert.equal(bench.engine.openExchanges, 0)
  })

  test('a client that goes away while the handler works', () => {
    const bench = manual().feed(get).feedEnd()
    assert.equal(bench.log.exchanges[0]?.error?.code, 'PEER_CLOSED')
    assert.equal(bench.closing, 'close')
    const x = exchangeOf(bench as never)
    assert.equal(send(x, 'late', true), false)
    x.sendHead(responseHead(200), true)
    assert.equal(bench.flush().wire, '')
  })

  test('… also behind bytes that have to wait', () => {
    for (const behind of ['G', get, get + get]) {
      const bench = manual().feed(get + behind)
      assert.equal(bench.engine.wantsInput, true)
      bench.feedEnd()
      assert.equal(bench.log.exchanges.length, 1)
      assert.equal(bench.log.exchanges[0]?.error?.code, 'PEER_CLOSED')
      assert.equal(bench.closing, 'close')
    }
  })

  test('… with halfOpen the requests that waited are answered, the last with Connection: close', () => {
    const bench = manual({ halfOpen: true })
      .feed(get + get + get)
      .feedEnd()
    for (let i = 0; i < 3; i++) {
      assert.equal(bench.log.exchanges.length, i + 1)
      exchangeOf(bench as never, i).sendHead(responseHead(200), true)
      assert.equal(bench.flush().wire.includes('connection: close'), i === 2)
    }
    assert.equal(bench.answers.length, 3)
    assert.equal(bench.closing, 'close')
  })

  test('… with halfOpen and half a request behind', () => {
    const bench = manual({ halfOpen: true }).feed(`${get}GET`).feedEnd()
    exchangeOf(bench as never).sendHead(responseHead(200), true)
    assert.deepEqual(bench.flush().answers, ['200'])
    assert.equal(bench.closing, 'close')
  })

  test('… with halfOpen it is answered all the same', () => {
    const bench = manual({ halfOpen: true }).feed(get).feedEnd()
    assert.equal(bench.closing, 'no')
    exchangeOf(bench as never).sendHead(responseHead(200), true)
    bench.flush()
    assert.match(bench.wire, /connection: close/)
    assert.equal(bench.closing, 'close')
    assert.equal(bench.log.exchanges[0]?.error, undefined)
  })

  test('a FIN behind complete requests: their answers leave first', () => {
    const bench = server()
    bench.takes = false
    bench.feed(get + get).feedEnd()
    assert.equal(bench.closing, 'no')
    bench.takes = true
    assert.equal(bench.flush().answers.length, 2)
    assert.equal(bench.closing, 'close')
    assert.deepEqual(
      bench.log.exchanges.map(({ error }) => error),
      [undefined, undefined],
    )
  })
})

describe('cancel', () => {
  test('before the head: what the reason says', () => {
    const answers: [CancelReason, string[]][] = [
      [CancelReason.Refused, ['503']],
      [CancelReason.InternalError, ['500']],
      [CancelReason.MessageError, ['400']],
      [CancelReason.Timeout, ['504']],
      [CancelReason.Cancelled, []],
    ]
    for (const [reason, expected] of answers) {
      const bench = manual().feed(get)
      exchangeOf(bench as never).cancel(reason)
      assert.equal(bench.log.exchanges[0]?.closed, 0, 'not from inside cancel')
      bench.flush()
      assert.deepEqual(bench.answers, expected)
      assert.equal(bench.closing, expected.length > 0 ? 'end' : 'reset')
      assert.equal(bench.log.exchanges[0]?.closed, 1)
    }
  })

  test('inside a callback: onClose comes with transmit, not with receive', () => {
    const bench = server({}, (log, exchange) => {
      log.on = { onHead: () => exchange.cancel(CancelReason.Refused) }
    })
    bench.engine.receive(text(get), 0, get.length, 0)
    assert.equal(bench.log.exchanges[0]?.closed, 0)
    bench.flush()
    assert.equal(bench.log.exchanges[0]?.closed, 1)
  })

  test('within the response: the client sees it cut off', () => {
    const bench = manual().feed(get)
    const x = exchangeOf(bench as never)
    x.sendHead(responseHead(200), false)
    send(x, 'abc', false)
    bench.flush()
    x.cancel(CancelReason.Cancelled)
    bench.flush()
    assert.ok(!bench.wire.endsWith('0\r\n\r\n'))
    assert.equal(bench.closing, 'reset')
  })

  test('answers in front of a cancelled one still arrive', () => {
    let first = true
    const bench = server({}, (log, exchange) => {
      if (first) {
        first = false
        answerAtEnd(log, exchange)
      } else {
        log.on = {
          onHead() {
            exchange.sendHead(responseHead(200), false)
            exchange.cancel(CancelReason.Cancelled)
          },
        }
      }
    }).feed(get + get)
    assert.match(bench.wire, /^HTTP\/1.1 200 OK\r\ncontent-length: 0/)
    assert.equal(bench.log.exchanges[0]?.error, undefined)
    assert.equal(bench.log.exchanges[1]?.error?.code, 'CANCELLED')
    assert.equal(bench.closing, 'close')
  })
})

describe('Expect: 100-continue', () => {
  const expecting = 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n'

  test('the field stays, the handler sends the 100, the connection lives on', () => {
    const bench = manual().feed(expecting)
    const x = exchangeOf(bench as never)
    assert.ok(bench.log.exchanges[0]?.lines.includes('  expect: 100-continue'))
    x.sendHead(responseHead(100), false)
    assert.equal(bench.flush().wire, 'HTTP/1.1 100 Continue\r\n\r\n')
    bench.feed('abc')
    x.sendHead(responseHead(200), true)
    assert.ok(!bench.flush().wire.includes('close'))
    assert.equal(bench.closing, 'no')
  })

  test('a final answer without it: the content may never come, so the connection closes', () => {
    const bench = manual().feed(expecting)
    exchangeOf(bench as never).sendHead(responseHead(417), true)
    bench.flush()
    assert.equal(bench.wire, 'HTTP/1.1 417 Expectation Failed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
    assert.equal(bench.log.exchanges[0]?.error, undefined)
    assert.equal(bench.log.exchanges[0]?.closed, 1)
    assert.equal(bench.closing, 'end')
  })

  test('content that came without waiting needs no 100', () => {
    const bench = manual().feed(`${expecting}abc`)
    exchangeOf(bench as never).sendHead(responseHead(200), true)
    assert.ok(!bench.flush().wire.includes('close'))
  })

  test('in HTTP/1.0, or without content, it means nothing', () => {
    const old = manual().feed('POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n')
    exchangeOf(old as never).sendHead(responseHead(100), false)
    assert.equal(old.flush().wire, '')
    const without = manual().feed('GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n')
    exchangeOf(without as never).sendHead(responseHead(200), true)
    assert.ok(!without.flush().wire.includes('close'))
  })
})

describe('tunnels', () => {
  const upgrade = (fields: string): string => `GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n${fields}\r\n`
  const websocket = upgrade('Upgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n')
  const options = { upgrades: ['websocket', 'echo'], websocketAccept: (key: string) => `accept-${key}` }

  test('an Upgrade in the options is a CONNECT with that protocol', () => {
    const bench = manual(options).feed(websocket)
    const { head } = bench.log.exchanges[0] as Log
    assert.deepEqual(
      [head?.method, head?.protocol, head?.path, head?.authority, head?.scheme],
      ['CONNECT', 'websocket', '/chat', 'a', 'http'],
    )
    assert.deepEqual(head?.fields, ['sec-websocket-version', '13'])
    const fields = ['sec-websocket-accept', 'of another hop', 'sec-websocket-protocol', 'x', 'content-length', '0']
    exchangeOf(bench as never).sendHead(responseHead(200, fields), false)
    assert.equal(
      bench.flush().wire,
      'HTTP/1.1 101 Switching Protocols\r\nsec-websocket-protocol: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: accept-AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    )
  })

  test('an Upgrade that is not in the options is an ordinary request', () => {
    for (const setting of [{}, { upgrades: ['websocket'] }, { upgrades: ['other'], websocketAccept: options.websocketAccept }]) {
      const bench = manual(setting).feed(websocket)
      const { head } = bench.log.exchanges[0] as Log
      assert.equal(head?.method, 'GET')
      assert.ok(!head.fields.includes('upgrade'))
    }
  })

  test('an Upgrade that Connection does not name, or of a request with content, is an ordinary request', () => {
    const unnamed = manual(options).feed('GET / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\n\r\n')
    assert.equal(unnamed.log.exchanges[0]?.head?.method, 'GET')
    const content = manual(options).feed('POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\nContent-Length: 1\r\n\r\na')
    assert.equal(content.log.exchanges[0]?.head?.method, 'POST')
  })

  test('a WebSocket handshake without a proper key is refused', () => {
    for (const key of ['', 'Sec-WebSocket-Key: short\r\n', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'.repeat(2)]) {
      const bench = manual(options).feed(upgrade(`Upgrade: websocket\r\n${key}`))
      assert.deepEqual(bench.answers, ['400 malformed or missing Sec-WebSocket-Key'])
    }
  })

  test('bytes in front of the answer wait for the tunnel', () => {
    const bench = manual(options).feed(`${upgrade('Upgrade: echo\r\n')}early`)
    const log = bench.log.exchanges[0] as Log
    assert.equal(log.received, 0)
    exchangeOf(bench as never).sendHead(responseHead(200), false)
    bench.flush().feed(' late')
    assert.equal(log.content, 'early late')
  })

  test('half-close: the client first, then the server', () => {
    const bench = manual(options).feed(upgrade('Upgrade: echo\r\n'))
    const x = exchangeOf(bench as never)
    const log = bench.log.exchanges[0] as Log
    x.sendHead(responseHead(200), false)
    bench.flush().feed('bye').feedEnd()
    assert.equal(log.ended, true)
    assert.equal(bench.closing, 'no')
    send(x, 'still here', true)
    bench.flush()
    assert.ok(bench.wire.endsWith('\r\n\r\nstill here'))
    assert.equal(bench.closing, 'close')
    assert.equal(log.error, undefined)
  })

  test('half-close: the server first, then the client', () => {
    const bench = manual(options).feed('CONNECT b:1 HTTP/1.1\r\nHost: b:1\r\n\r\n')
    const x = exchangeOf(bench as never)
    const log = bench.log.exchanges[0] as Log
    x.sendHead(responseHead(200), false)
    send(x, 'bye', true)
    assert.equal(bench.flush().closing, 'end')
    bench.feed('still here').feedEnd()
    assert.deepEqual(log.lines.slice(-3), ['data "still here"', 'end', 'close'])
    assert.equal(bench.closing, 'close')
  })

  test('a refused CONNECT closes: what follows may have been meant for the tunnel', () => {
    const bench = manual().feed(`CONNECT b:1 HTTP/1.1\r\nHost: b:1\r\n\r\n${get}`)
    exchangeOf(bench as never).sendHead(responseHead(403), true)
    bench.flush()
    assert.match(bench.wire, /connection: close/)
    assert.equal(bench.log.exchanges.length, 1)
    assert.equal(bench.closing, 'end')
  })

  test('a refused Upgrade is an answer like any other', () => {
    const bench = manual(options).feed(upgrade('Upgrade: echo\r\n') + get)
    exchangeOf(bench as never).sendHead(responseHead(403), true)
    bench.flush()
    assert.equal(bench.log.exchanges.length, 2)
    assert.equal(bench.closing, 'no')
  })

  test('an ignored Upgrade is an ordinary request, whatever the status; a CONNECT cannot be ignored', () => {
    const bench = manual(options).feed(websocket + get)
    const x = exchangeOf(bench as never)
    x.ignoreUpgrade?.()
    x.sendHead(responseHead(200, ['content-length', '4']), false)
    send(x, 'page', true)
    bench.flush()
    assert.equal(bench.wire, 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage')
    assert.deepEqual([bench.log.exchanges.length, bench.closing], [2, 'no'])

    const connect = manual().feed('CONNECT b:1 HTTP/1.1\r\nHost: b:1\r\n\r\n')
    const y = exchangeOf(connect as never)
    y.ignoreUpgrade?.()
    y.sendHead(responseHead(200), false)
    send(y, 'bytes', false)
    assert.equal(connect.flush().wire, 'HTTP/1.1 200 OK\r\n\r\nbytes')
  })

  test('no time limit of messages holds for a tunnel', () => {
    const bench = manual(options).feed(upgrade('Upgrade: echo\r\n'))
    exchangeOf(bench as never).sendHead(responseHead(200), false)
    bench.flush()
    assert.equal(bench.engine.deadline, Infinity)
  })
})

describe('faulty content', () => {
  test('a response that has begun is cut off', () => {
    const bench = manual().feed('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    const x = exchangeOf(bench as never)
    x.sendHead(responseHead(200), false)
    send(x, 'a', false)
    bench.flush().feed('nonsense\r\n')
    assert.equal(bench.log.exchanges[0]?.error?.code, 'PROTOCOL_ERROR')
    assert.equal(bench.closing, 'reset')
    assert.ok(!bench.wire.endsWith('0\r\n\r\n'))
  })

  test('a faulty head behind a good request: the good one is answered', () => {
    const bench = server().feed(`${get}GET / HTTP/1.1\r\n\r\n`)
    assert.deepEqual(bench.answers, ['200', '400 missing, repeated or malformed Host'])
    assert.equal(bench.log.exchanges.length, 1)
  })
})
