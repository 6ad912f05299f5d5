import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { requestHead, type Exchange, type Head } from '../http/index.ts'
import { client, Log, request } from './transcript.test.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const empty = `${ok}Content-Length: 0\r\n\r\n`
const head = (method: string, fields: string[] = [], path = '/'): Head => requestHead(method, 'http', 'a.test', path, fields)
const text = (value: string): Buffer => Buffer.from(value, 'latin1')
const send = (log: Log, value: string, end: boolean): boolean => (log.exchange as Exchange).sendData(text(value), 0, value.length, end)

/** What a client sends for `asked`. */
function wire(asked: Head, end = true, options = {}, then: (log: Log) => void = () => {}): string {
  const bench = client(options)
  then(request(bench, asked, end))
  return bench.flush().wire
}

describe('framing of requests', () => {
  test('without content', () => {
    assert.equal(wire(head('GET', ['accept', '*/*'], '/p?q')), 'GET /p?q HTTP/1.1\r\nhost: a.test\r\naccept: */*\r\n\r\n')
    assert.equal(wire(requestHead('OPTIONS', 'http', 'a.test', '*')), 'OPTIONS * HTTP/1.1\r\nhost: a.test\r\n\r\n')
  })

  test('methods that anticipate content say that there is none', () => {
    for (const method of ['POST', 'PUT', 'PATCH']) assert.match(wire(head(method)), /\r\ncontent-length: 0\r\n\r\n$/)
    assert.doesNotMatch(wire(head('DELETE')), /content-length/)
  })

  test('a declared length, and chunks', () => {
    const sent = (fields: string[]): string => wire(head('POST', fields), false, {}, (log) => send(log, 'abc', true))
    assert.equal(sent(['content-length', '3']), 'POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: 3\r\n\r\nabc')
    assert.equal(sent([]), 'POST / HTTP/1.1\r\nhost: a.test\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n')
  })

  test('trailers, and TE with its place in Connection', () => {
    const sent = wire(head('POST', ['te', 'trailers']), false, {}, (log) => log.exchange?.sendTrailers(['x-sum', '1']))
    assert.equal(
      sent,
      'POST / HTTP/1.1\r\nhost: a.test\r\nte: trailers\r\ntransfer-encoding: chunked\r\nconnection: te\r\n\r\n0\r\nx-sum: 1\r\n\r\n',
    )
  })

  test('cookie crumbs become one line', () => {
    assert.equal(
      wire(head('GET', ['cookie', 'a=1', 'x', 'y', 'cookie', 'b=2', 'cookie', 'c=3'])),
      'GET / HTTP/1.1\r\nhost: a.test\r\ncookie: a=1; b=2; c=3\r\nx: y\r\n\r\n',
    )
  })

  test('absolute-form for a proxy', () => {
    const options = { absoluteForm: true }
    assert.match(wire(head('GET', [], '/p?q'), true, options), /^GET http:\/\/a.test\/p\?q HTTP/)
    assert.match(wire(requestHead('OPTIONS', 'http', 'a.test', '*'), true, options), /^OPTIONS http:\/\/a.test HTTP/)
    assert.match(wire(head('GET'), true, { ...options, proxyAuthorization: 'Basic eA==' }), /\r\nproxy-authorization: Basic eA==\r\n/)
    assert.throws(() => client({ proxyAuthorization: 'a\r\nb' }), { code: 'USAGE' })
  })

  test('fields of the connection are the engine’s, but a wish to close is heard', () => {
    const bench = client()
    request(
      bench,
      head('GET', ['connection', 'close', 'host', 'evil', 'transfer-encoding', 'chunked', 'upgrade', 'h2c', 'keep-alive', 'x']),
    )
    assert.equal(bench.flush().wire, 'GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n')
    bench.feed(empty)
    assert.equal(bench.closing, 'close')
  })

  test('heads that cannot go on the wire are UsageErrors, and nothing is sent', () => {
    const bad: [Head, boolean][] = [
      [requestHead('G T', 'http', 'a', '/'), true],
      [requestHead('GET\r\n', 'http', 'a', '/'), true],
      [requestHead('', 'http', 'a', '/'), true],
      [requestHead('GET', 'http', 'a', '/ HTTP/1.1\r\nx: y'), true],
      [requestHead('GET', 'http', 'a', '/\u010a'), true],
      [requestHead('GET', 'http', 'a', 'x'), true],
      [requestHead('GET', 'http', 'a', ''), true],
      [requestHead('GET', 'http', 'a', '*'), true],
      [requestHead('GET', 'http', 'a\r\nb', '/'), true],
      [requestHead('GET', 'http', 'u@a', '/'), true],
      [requestHead('GET', 'http', '', '/'), true],
      [requestHead('CONNECT', '', 'a', ''), false],
      [requestHead('CONNECT', '', 'a:1', '/'), false],
      [requestHead('CONNECT', '', 'a:1', ''), true],
      [requestHead('CONNECT', 'http', 'a', '/', [], 'web socket'), false],
      [requestHead('CONNECT', 'http', 'a', '/', [], 'websocket'), false],
      [head('GET', ['x', 'a\nb']), true],
      [head('GET', ['X', 'a']), true],
      [head('POST', ['content-length', '3']), true],
      [head('POST', ['content-length', '3', 'content-length', '3']), false],
    ]
    const bench = client()
    const log = new Log()
    const exchange = bench.engine.open(log) as Exchange
    for (const [asked, end] of bad) assert.throws(() => exchange.sendHead(asked, end), { code: 'USAGE' }, JSON.stringify(asked))
    assert.equal(bench.flush().wire, '')
    exchange.sendHead(head('GET'), true)
    assert.match(bench.flush().wire, /^GET \/ /)
  })
})
