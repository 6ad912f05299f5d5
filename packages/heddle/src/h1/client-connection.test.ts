import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CancelReason, HeddleError, NetworkError, requestHead, type Exchange, type Head } from '../http/index.ts'
import { client, Log, request, type Bench } from './transcript.test.ts'
import type { ClientConnection } from './index.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const empty = `${ok}Content-Length: 0\r\n\r\n`
const head = (method: string, fields: string[] = [], path = '/'): Head => requestHead(method, 'http', 'a.test', path, fields)
const text = (value: string): Buffer => Buffer.from(value, 'latin1')
const send = (log: Log, value: string, end: boolean): boolean => (log.exchange as Exchange).sendData(text(value), 0, value.length, end)

describe('the life of a connection', () => {
  test('one exchange at a time', () => {
    const bench = client()
    const first = request(bench)
    assert.equal(bench.engine.open(new Log()), undefined)
    assert.equal(bench.engine.openable, 0)
    bench.flush().feed(empty)
    assert.equal(first.closed, 1)
    assert.deepEqual(bench.log.lines, ['capacity 1'])
    request(bench)
    bench.flush().feed(empty)
    assert.deepEqual(bench.log.lines, ['capacity 1', 'capacity 1'])
    assert.equal(bench.engine.openExchanges, 0)
  })

  test('an exchange may be opened from onCapacity and from onClose', () => {
    const bench = client()
    const logs: Log[] = []
    const next = (): void => {
      if (logs.length < 3) logs.push(request(bench))
    }
    const first = request(bench)
    first.on = { onClose: next }
    bench.log.onCapacity = next
    for (let i = 0; i < 4; i++) bench.flush().feed(empty)
    assert.deepEqual(
      [first, ...logs].map(({ closed, error }) => [closed, error]),
      Array.from({ length: 4 }, () => [1, undefined]),
    )
  })

  test('a request opened while a response is read leaves a turn later: what lay behind that is no answer', () => {
    for (const more of ['', `${ok}Content-Length: 4\r\n\r\nevil`]) {
      const bench = client()
      let second: Log | undefined
      request(bench, head('GET', [], '/1')).on = { onClose: () => void (second = request(bench, head('GET', [], '/2'))) }
      bench.flush().dirt = 0
      bench.feed(empty)
      assert.equal(bench.dirt, 1)
      assert.doesNotMatch(bench.wire, /\/2/)
      // The rest of what had arrived: the driver reads on before it comes to the next batch.
      if (more !== '') bench.feed(more)
      else bench.flush()
      assert.equal(bench.wire.includes('/2'), more === '')
      assert.equal(second?.error?.unprocessed, more === '' ? undefined : true)
      assert.equal(second?.head, undefined)
      assert.equal(bench.closing, more === '' ? 'no' : 'reset')
      if (more === '') assert.equal(bench.feed(empty).log.exchanges[1]?.closed, 1)
    }
  })

  test('Connection: close is told with the head', () => {
    const bench = client()
    const log = request(bench)
    log.on = { onHead: () => bench.log.lines.push('head') }
    bench.flush().feed(`${ok}Connection: close\r\nContent-Length: 2\r\n\r\na`)
    assert.deepEqual(bench.log.lines, ['draining', 'head'])
    bench.feed('b')
    assert.equal(log.error, undefined)
    assert.equal(bench.closing, 'close')
    assert.equal(bench.engine.openable, 0)
  })

  test('bytes on an idle connection close it', () => {
    const bench = client().flush().feed(empty)
    assert.equal(bench.closing, 'reset')
    assert.equal(bench.log.error?.code, 'PROTOCOL_ERROR')
    const used = client()
    request(used)
    used.flush().feed(empty).feed('x')
    assert.equal(used.closing, 'reset')
  })

  test('a FIN on an idle connection closes it in peace', () => {
    const bench = client().flush().feedEnd()
    assert.equal(bench.closing, 'close')
    assert.equal(bench.log.error, undefined)
  })

  test('shutdown: idle at once, else after the exchange', () => {
    const idle = client().flush()
    idle.engine.shutdown()
    assert.equal(idle.flush().closing, 'close')
    const bench = client()
    const log = request(bench)
    bench.flush().engine.shutdown()
    assert.equal(bench.flush().closing, 'no')
    assert.equal(bench.engine.openable, 0)
    bench.feed(empty)
    assert.equal(log.error, undefined)
    assert.equal(bench.closing, 'close')
  })

  test('shutdown before the head: the request says Connection: close', () => {
    const bench = client()
    const log = new Log()
    const exchange = bench.engine.open(log) as Exchange
    bench.engine.shutdown()
    exchange.sendHead(head('GET'), true)
    assert.match(bench.flush().wire, /connection: close/)
  })

  test('abort ends the exchange with the very error', () => {
    const bench = client()
    const log = request(bench)
    const error = new HeddleError('SHUTDOWN', 'enough')
    bench.engine.abort(error)
    assert.equal(log.closed, 0)
    assert.equal(bench.flush().closing, 'reset')
    assert.equal(log.error, error)
  })
})

describe('a request that was not processed', () => {
  const lost = new NetworkError('NETWORK_ERROR', 'lost')

  test('nothing of it left: unprocessed, whatever happened', () => {
    const ends: [string, (bench: Bench<ClientConnection>) => void][] = [
      ['FIN', (bench) => bench.engine.receiveEnd(0)],
      ['error', (bench) => bench.engine.receiveError(lost, 0)],
      ['bytes', (bench) => bench.engine.receive(text(empty), 0, empty.length, 0)],
      ['cancel', (bench) => bench.log.exchanges[0]?.exchange?.cancel(CancelReason.Cancelled)],
    ]
    for (const [name, end] of ends) {
      const bench = client()
      const log = request(bench)
      bench.takes = false
      end(bench)
      bench.flush()
      assert.equal(log.closed, 1, name)
      assert.equal(log.error?.unprocessed, true, name)
    }
  })

  test('a byte of it left: not so', () => {
    const bench = client()
    const log = request(bench)
    bench.flush().engine.receiveError(lost, 0)
    assert.equal(log.error, lost)
    const closed = client()
    const other = request(closed)
    closed.flush().feedEnd()
    assert.equal(other.error?.code, 'PEER_CLOSED')
    assert.equal(other.error?.unprocessed, false)
  })

  test('cancelled before anything left: the connection is as good as before', () => {
    const bench = client()
    const log = request(bench, head('POST'), false)
    send(log, 'abc', false)
    log.exchange?.cancel(CancelReason.Cancelled)
    assert.equal(log.closed, 0)
    bench.flush()
    assert.equal(bench.wire, '')
    assert.equal(log.closed, 1)
    assert.deepEqual(bench.log.lines, ['capacity 1'])
    const next = request(bench)
    bench.flush().feed(empty)
    assert.equal(next.error, undefined)
  })
})

describe('an early response', () => {
  test('the request goes on behind it, then the connection can be used again', () => {
    const bench = client()
    const log = request(bench, head('POST', ['content-length', '6']), false)
    send(log, 'abc', false)
    bench.flush().feed(empty)
    assert.equal(log.ended, true)
    assert.equal(log.closed, 0)
    assert.equal(bench.engine.openable, 0)
    send(log, 'def', true)
    bench.flush()
    assert.equal(log.error, undefined)
    assert.equal(log.closed, 1)
    assert.equal(bench.engine.openable, 1)
  })

  test('one that closes ends the request with it', () => {
    const bench = client()
    const log = request(bench, head('POST', ['content-length', '6']), false)
    send(log, 'abc', false)
    bench.flush().feed(`${ok}Connection: close\r\nContent-Length: 2\r\n\r\nab`)
    assert.equal(log.error, undefined)
    assert.equal(log.closed, 1)
    assert.equal(send(log, 'def', true), false)
    assert.equal(bench.closing, 'close')
  })

  test('an error that closes stops the request at once', () => {
    const bench = client()
    const log = request(bench, head('POST', ['content-length', '6']), false)
    send(log, 'abc', false)
    bench.flush().feed('HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\n')
    assert.equal(send(log, 'def', true), false)
    bench.flush()
    assert.ok(bench.wire.endsWith('abc'))
    bench.feed('no')
    assert.equal(log.error, undefined)
    assert.equal(bench.closing, 'close')
  })

  test('bytes behind it spoil the connection', () => {
    const bench = client()
    const log = request(bench, head('POST', ['content-length', '3']), false)
    bench.flush().feed(`${empty}x`)
    send(log, 'abc', true)
    bench.flush()
    assert.equal(log.error, undefined)
    assert.equal(bench.closing, 'close')
  })
})

describe('Expect: 100-continue', () => {
  const expecting = head('POST', ['expect', '100-continue', 'content-length', '3'])
  const start = (): [Bench<ClientConnection>, Log] => {
    const bench = client()
    const log = request(bench, expecting, false)
    send(log, 'abc', true)
    return [bench.flush(), log]
  }

  test('content waits for the 100', () => {
    const [bench, log] = start()
    assert.ok(bench.wire.endsWith('\r\n\r\n'))
    bench.feed('HTTP/1.1 100 Continue\r\n\r\n')
    assert.ok(bench.wire.endsWith('\r\n\r\nabc'))
    assert.equal(log.sent, 3)
    bench.feed(empty)
    assert.equal(log.error, undefined)
    assert.equal(bench.engine.openable, 1)
  })

  test('… not longer than a second', () => {
    const [bench] = start()
    bench.advance(999)
    assert.ok(!bench.wire.endsWith('abc'))
    bench.advance(1)
    assert.ok(bench.wire.endsWith('\r\n\r\nabc'))
  })

  test('another 1xx is not the word', () => {
    const [bench] = start()
    bench.feed('HTTP/1.1 103 Early Hints\r\n\r\n')
    assert.ok(!bench.wire.endsWith('abc'))
  })

  test('a final answer: the content is not sent, and the connection closes', () => {
    const [bench, log] = start()
    bench.feed('HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno')
    assert.ok(!bench.wire.includes('abc'))
    assert.equal(log.error, undefined)
    assert.equal(log.sent, 0)
    assert.equal(bench.closing, 'close')
  })
})

describe('cancel and discard', () => {
  const begun = (length = 10): [Bench<ClientConnection>, Log] => {
    const bench = client()
    const log = request(bench)
    bench.flush().feed(`${ok}Content-Length: ${length}\r\n\r\nab`)
    return [bench, log]
  }

  test('cancel with a response under way drains it', () => {
    const [bench, log] = begun()
    log.exchange?.cancel(CancelReason.Cancelled)
    bench.flush()
    assert.equal(log.error?.code, 'CANCELLED')
    assert.equal(bench.closing, 'no')
    bench.feed('cdefghij')
    assert.deepEqual(bench.log.lines, ['drained 8 true', 'capacity 1'])
  })

  test('… but not when the server is to blame, or too slow', () => {
    for (const reason of [CancelReason.Timeout, CancelReason.ExcessiveLoad, CancelReason.MessageError]) {
      const [bench, log] = begun()
      log.exchange?.cancel(reason)
      assert.equal(bench.flush().closing, 'reset')
    }
  })

  test('cancel without a response drops the connection', () => {
    const bench = client()
    const log = request(bench)
    bench.flush()
    log.exchange?.cancel(CancelReason.Cancelled)
    bench.flush()
    assert.equal(bench.closing, 'reset')
    assert.equal(log.error?.unprocessed, false)
  })

  test('a handler that throws is cancelled', () => {
    const bench = client()
    const log = request(bench)
    log.on = {
      onHead() {
        throw new Error('mine')
      },
    }
    bench.flush().feed(`${ok}Content-Length: 2\r\n\r\nab`)
    assert.equal(log.error?.code, 'HANDLER_FAILED')
    assert.equal(log.received, 0)
    assert.deepEqual(bench.log.lines, ['drained 2 true', 'capacity 1'])
  })

  test('discard before the head: the head comes, the content does not', () => {
    const bench = client()
    const log = request(bench)
    log.exchange?.discard()
    bench.flush().feed(`${ok}Content-Length: 2\r\n\r\n`)
    assert.equal(log.head?.status, 200)
    assert.equal(log.closed, 1)
    bench.feed('ab')
    assert.equal(log.received, 0)
    assert.deepEqual(bench.log.lines, ['drained 2 true', 'capacity 1'])
  })

  test('discard while the request is being sent: it is sent to its end', () => {
    const bench = client()
    const log = request(bench, head('POST', ['content-length', '6']), false)
    bench.flush().feed(`${ok}Content-Length: 4\r\n\r\nab`)
    log.exchange?.discard()
    bench.flush()
    assert.equal(log.closed, 0)
    send(log, 'abcdef', true)
    bench.flush()
    assert.equal(log.closed, 1)
    bench.feed('cd')
    assert.deepEqual(bench.log.lines, ['drained 2 true', 'capacity 1'])
  })

  test('what is cut off while it is drained is given up', () => {
    const [bench, log] = begun()
    log.exchange?.discard()
    bench.flush().feedEnd()
    assert.deepEqual(bench.log.lines, ['drained 0 false', 'close'])
    const [faulty, other] = begun()
    other.exchange?.discard()
    faulty.flush().engine.shutdown()
    faulty.flush()
    assert.deepEqual(faulty.log.lines, ['drained 0 false', 'close'])
  })

  test('content that has arrived with the head is drained at once', () => {
    const bench = client()
    const log = request(bench)
    log.on = { onHead: () => log.exchange?.discard() }
    bench.flush().feed(`${ok}Content-Length: 2\r\n\r\nab`)
    assert.equal(log.closed, 1)
    assert.deepEqual(bench.log.lines, ['drained 2 true', 'capacity 1'])
  })
})

describe('tunnels', () => {
  const options = { websocketKey: () => 'KEY', websocketAccept: (key: string) => `accept ${key}` }
  const chat = requestHead('CONNECT', 'http', 'a.test', '/chat', ['sec-websocket-protocol', 'x'], 'websocket')

  test('CONNECT: what is sent before the answer waits for it', () => {
    const bench = client()
    const log = request(bench, requestHead('CONNECT', '', 'b.test:443', ''), false)
    send(log, 'early', false)
    assert.equal(bench.flush().wire, 'CONNECT b.test:443 HTTP/1.1\r\nhost: b.test:443\r\n\r\n')
    bench.feed(`${ok}Content-Length: 5\r\n\r\nhello`)
    assert.ok(bench.wire.endsWith('\r\n\r\nearly'))
    assert.deepEqual(log.lines, ['200'])
    assert.equal(log.content, 'hello')
    send(log, '', true)
    assert.equal(bench.flush().closing, 'end')
    bench.feedEnd()
    assert.equal(log.error, undefined)
    assert.equal(bench.closing, 'close')
  })

  test('an end before the answer is an end after it', () => {
    const bench = client()
    const log = request(bench, requestHead('CONNECT', '', 'b.test:443', ''), false)
    send(log, 'all', true)
    bench.flush().feed(`${ok}\r\n`)
    assert.ok(bench.wire.endsWith('\r\n\r\nall'))
    assert.equal(bench.closing, 'end')
  })

  test('CONNECT refused: an answer like any other, and nothing of the tunnel is sent', () => {
    const bench = client()
    const log = request(bench, requestHead('CONNECT', '', 'b.test:443', ''), false)
    send(log, 'early', false)
    bench.flush().feed('HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno')
    assert.ok(!bench.wire.includes('early'))
    assert.equal(send(log, 'more', true), false)
    assert.equal(log.error, undefined)
    assert.equal(bench.engine.openable, 1)
  })

  test('Upgrade: written as GET, 101 becomes 200', () => {
    const bench = client(options)
    const log = request(bench, chat, false)
    assert.equal(
      bench.flush().wire,
      'GET /chat HTTP/1.1\r\nhost: a.test\r\nsec-websocket-protocol: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: KEY\r\nsec-websocket-version: 13\r\n\r\n',
    )
    bench.feed(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: accept KEY\r\nSec-WebSocket-Protocol: x\r\n\r\nframes',
    )
    assert.deepEqual(log.lines, ['200', '  sec-websocket-protocol: x'])
    assert.equal(log.content, 'frames')
  })

  test('Upgrade: a wrong 101, or a 2xx, is the server’s fault', () => {
    for (const answer of [
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: accept OTHER\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nSec-WebSocket-Accept: accept KEY\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: accept KEY\r\n\r\n',
      empty,
    ]) {
      const bench = client(options)
      const log = request(bench, chat, false)
      bench.flush().feed(answer)
      assert.equal(log.error?.code, 'PROTOCOL_ERROR')
      assert.equal(bench.closing, 'reset')
    }
  })

  test('Upgrade refused: an answer like any other', () => {
    const bench = client(options)
    const log = request(bench, chat, false)
    bench.flush().feed('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno')
    assert.equal(log.head?.status, 426)
    assert.equal(log.error, undefined)
    assert.equal(bench.engine.openable, 1)
  })

  test('Upgrade ignored: an answer like any other for who is ready for one, without what was meant for the tunnel', () => {
    for (const asked of [chat, requestHead('CONNECT', 'http', 'a.test', '/', [], 'echo')]) {
      const bench = client(options)
      const log = request(bench, asked, false, (exchange) => exchange.ignoreUpgrade?.())
      send(log, 'early', false)
      bench.flush().feed('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage')
      assert.deepEqual(log.lines, ['200', '  content-length: 4', 'data "page"', 'end', 'close'])
      assert.equal(log.exchange?.upgradeIgnored, true)
      assert.equal(log.error, undefined)
      assert.ok(!bench.wire.includes('early'))
      assert.equal(bench.engine.openable, 1)
    }
    const tunnel = client(options)
    const open = request(tunnel, chat, false, (exchange) => exchange.ignoreUpgrade?.())
    tunnel.flush()
    tunnel.feed('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: accept KEY\r\n\r\n')
    assert.deepEqual([open.head?.status, open.exchange?.upgradeIgnored], [200, false])
  })

  test('a 426 tells what it wants, and no other answer does', () => {
    const named = (answer: string): string[] => {
      const bench = client()
      const log = request(bench, requestHead('GET', 'http', 'a.test', '/'))
      bench.flush().feed(`HTTP/1.1 ${answer}\r\nContent-Length: 0\r\n\r\n`)
      return [...(log.head?.fields ?? [])].slice(0, 4)
    }
    const list = 'Upgrade: websocket\r\nUpgrade: h2c'
    assert.deepEqual(named(`426 Upgrade Required\r\nConnection: upgrade\r\n${list}`), ['content-length', '0', 'upgrade', 'websocket, h2c'])
    assert.deepEqual(named(`426 Upgrade Required\r\n${list}`), ['content-length', '0'])
    assert.deepEqual(named(`200 OK\r\nConnection: upgrade\r\n${list}`), ['content-length', '0'])
  })

  test('no time limit of messages holds for a tunnel', () => {
    const bench = client()
    request(bench, requestHead('CONNECT', '', 'b.test:443', ''), false)
    bench.flush()
    assert.notEqual(bench.engine.deadline, Infinity)
    bench.feed(`${ok}\r\n`)
    assert.equal(bench.engine.deadline, Infinity)
  })
})
