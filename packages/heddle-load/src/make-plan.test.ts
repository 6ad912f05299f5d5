import { deepEqual, equal, throws } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { makePlan } from './make-plan.ts'
import type { LoadOptions } from './options.ts'
import { shares } from './plan.ts'

const url = 'http://localhost:8080/'

describe('options that cannot be', () => {
  const faults: readonly [Record<string, unknown>, string][] = [
    [{}, 'run: url: expected a URL such as http://localhost:8080/, found nothing'],
    [{ url: 'localhost' }, 'run: url: expected an absolute URL such as http://localhost:8080/, found "localhost"'],
    [{ url: 'ftp://x/' }, 'run: url: expected a URL that begins with http: or https:, found "ftp://x"'],
    [{ url: 'ws://x/', kind: 'http' }, 'run: url: expected a URL that begins with http: or https:, found "ws://x"'],
    [{ url, kind: 'websocket' }, 'run: url: expected a URL that begins with ws: or wss:, found "http://localhost:8080"'],
    [{ url, kind: 'ftp' }, 'run: kind: expected http or websocket or grpc, found "ftp"'],
    [{ url, protocol: 'h3' }, `run: protocol: HTTP/3 needs TLS, and ${new URL(url).origin} has none; expected https: or wss:`],
    [{ url, protocol: 'http2' }, 'run: protocol: expected auto or h1 or h2 or h3, found "http2"'],
    [{ url: `${url}a/b`, kind: 'grpc', protocol: 'h1' }, 'run: protocol: gRPC goes over h2 or h3 only'],
    [{ url, kind: 'grpc' }, 'run: url: expected the path of a method, /package.Service/Method, found "/"'],
    [{ url: `${url}a/b`, kind: 'grpc', method: 'GET' }, 'run: method: is for HTTP; gRPC has POST'],
    [{ url, connections: 0 }, 'run: connections: expected a whole number from 1 to 100000, found 0'],
    [{ url, connections: 1.5 }, 'run: connections: expected a whole number from 1 to 100000, found 1.5'],
    [{ url, connections: '3' }, 'run: connections: expected a whole number from 1 to 100000, found "3"'],
    [
      { url, streams: 2 },
      'run: streams: HTTP/1.1 has one request at a time on a connection; ask for h2 or h3 (run: protocol), or for more connections',
    ],
    [{ url, inFlight: 2 }, 'run: inFlight: is for WebSocket; over HTTP/2 and HTTP/3 it is run: streams'],
    [{ url, threads: 11 }, 'run: threads: 11 are more than there are connections (10)'],
    [{ url, rate: 0 }, 'run: rate: expected a number above 0, up to 10000000, found 0'],
    [{ url, rate: Number.NaN }, 'run: rate: expected a number above 0, up to 10000000, found NaN'],
    [{ url, arrivals: 'uniform' }, 'run: arrivals: is for a fixed rate (run: rate)'],
    [{ url, rate: 1, arrivals: 'normal' }, 'run: arrivals: expected poisson or uniform, found "normal"'],
    [{ url, pacing: 'spin' }, 'run: pacing: is for a fixed rate (run: rate)'],
    [{ url, maxBacklog: 5 }, 'run: maxBacklog: is for a fixed rate (run: rate)'],
    [{ url, seed: -1 }, 'run: seed: expected a whole number from 0 to 9007199254740991, found -1'],
    [{ url, duration: 0 }, 'run: duration: expected a duration from 1 ms to 24 days, found 0'],
    [{ url, duration: Infinity }, 'run: duration: expected a duration from 1 ms to 24 days, found Infinity'],
    [{ url, count: 0 }, 'run: count: expected a whole number from 1 to 1000000000000, found 0'],
    [{ url, warmup: -1 }, 'run: warmup: expected a duration from 0 ms to 24 days, found -1'],
    [{ url, timeout: 0 }, 'run: timeout: expected a duration from 1 ms to 24 days, found 0'],
    [{ url, method: 'G T' }, 'run: method: expected a method such as GET or POST, found "G T"'],
    [{ url, method: 'CONNECT' }, 'run: method: expected a method such as GET or POST, found "CONNECT"'],
    [{ url, headers: 'a: b' }, 'run: headers: expected an object, or pairs of a name and a value, found "a: b"'],
    [{ url, headers: [['a']] }, 'run: headers: expected pairs of a name and a value, found a list'],
    [{ url, headers: { 'a b': 'c' } }, 'run: headers: expected the name of a header, found "a b"'],
    [{ url, headers: { a: 'b\r\nc: d' } }, 'run: headers: a: expected a value without control characters, found "b\\r\\nc: d"'],
    [{ url, headers: { a: 1 } }, 'run: headers: a: expected a value without control characters, found 1'],
    [{ url, headers: { 'Content-Length': '3' } }, 'run: headers: content-length is not to be given: it follows from the request'],
    [{ url, headers: { host: 'a b' } }, 'run: headers: host: expected a host, or host:port, found "a b"'],
    [{ url, body: 'x', bodySize: 1 }, 'run: body and run: bodySize exclude each other'],
    [{ url, body: 7 }, 'run: body: expected a text or bytes, found 7'],
    [{ url, bodySize: -1 }, 'run: bodySize: expected a whole number from 0 to 1073741824, found -1'],
    [{ url, accept: '2yy' }, 'run: accept: expected statuses such as 200 or 2xx,404, found "2yy"'],
    [{ url, accept: [200, 700] }, 'run: accept: expected statuses such as 200 or 2xx,404, found "200,700"'],
    [{ url, echo: 'any' }, 'run: echo: is for WebSocket'],
    [{ url, deflate: true }, 'run: deflate: is for WebSocket'],
    [{ url: 'ws://x/', deflate: 'yes' }, 'run: deflate: expected true or false, found "yes"'],
    [
      { url: 'ws://x/', headers: { 'sec-websocket-key': 'x' } },
      "run: headers: sec-websocket-key is not to be given: it is the handshake's",
    ],
    [
      { url: 'ws://x/', headers: { 'sec-websocket-protocol': 'a, b c' } },
      'run: headers: sec-websocket-protocol: expected subprotocols with commas between them, found "a, b c"',
    ],
    [{ url, tls: { cert: 'x' } }, 'run: tls.cert and run: tls.key go together'],
    [{ url, tls: { ca: '' } }, 'run: tls.ca: expected a text, found ""'],
    [{ url, tls: { rejectUnauthorized: 0 } }, 'run: tls.rejectUnauthorized: expected true or false, found 0'],
    [{ url, tls: { ca: 'garbage' } }, 'run: tls: ca holds no certificate in PEM'],
    [{ url, tls: { sni: 'x' } }, 'run: there is no option tls.sni'],
    [{ url, conections: 3 }, 'run: there is no option conections; did you mean connections?'],
    [{ url, requests: [] }, 'run: requests: expected a list with at least one request, found an empty list'],
    [{ url, requests: [{}], body: 'x' }, 'run: body: is said by each of run: requests'],
    [{ url, requests: [{ wieght: 3 }] }, 'run: there is no option requests[0].wieght; did you mean requests[0].weight?'],
    [{ url, requests: [{}, { weight: 0 }] }, 'run: requests[1].weight: expected a number above 0, up to 1000000000, found 0'],
    [{ url, requests: [{ name: '' }] }, 'run: requests[0].name: expected a name of 1 to 200 letters, found ""'],
    [{ requests: [{ url: '/x' }] }, 'run: requests[0].url: expected an absolute URL such as http://localhost:8080/, found "/x"'],
    [{ url: 'ws://x/', requests: [{}] }, 'run: requests: a WebSocket load has one URL and one message'],
  ]
  for (const [options, message] of faults) {
    test(message, () => throws(() => makePlan(options as LoadOptions), { code: 'USAGE', message }))
  }
})

test('the defaults', () => {
  const { requests, ...plan } = makePlan({ url })
  deepEqual(plan, {
    kind: 'http',
    protocol: 'auto',
    connections: 10,
    streams: 1,
    inFlight: 1,
    rate: 0,
    arrivals: 'poisson',
    seed: 1,
    pacing: 'spin',
    maxBacklog: 1_000,
    duration: 10_000,
    count: Infinity,
    warmup: 0,
    grace: 5_000,
    timeout: 30_000,
    connectTimeout: 10_000,
    tls: undefined,
    socketPath: undefined,
    threads: 1,
    thread: 0,
    echo: 'same',
    deflate: false,
  })
  equal(requests.length, 1)
  equal(makePlan({ url, count: 5 }).duration, Infinity)
  equal(makePlan({ url, count: 5, duration: 100 }).duration, 100)
  equal(makePlan({ url, rate: 5_000 }).maxBacklog, 50_000)
})

test('several requests: URLs relative to the one, headers of all before their own', () => {
  const { requests } = makePlan({
    url: 'https://a.test/base/',
    headers: { a: '1', host: 'h.test' },
    requests: [{ url: 'x?y' }, { name: 'other', url: 'http://b.test/z', headers: [['b', '2']], weight: 3, accept: 404 }],
  })
  deepEqual(
    requests.map(({ name, origin, path, authority, weight }) => [name, origin, path, authority, weight]),
    [
      ['GET /base/x?y', 'https://a.test', '/base/x?y', 'h.test', 1],
      ['other', 'http://b.test', '/z', 'h.test', 3],
    ],
  )
  deepEqual(requests[1]?.fields.slice(0, 4), ['a', '1', 'b', '2'])
  deepEqual([requests[1]?.accept[404], requests[1]?.accept[200]], [1, 0])
})

test('threads share everything, and nothing is lost', () => {
  const plan = makePlan({ url, connections: 10, count: 101, rate: 90, maxBacklog: 100, threads: 3 })
  const parts = shares(plan)
  deepEqual(
    parts.map(({ connections, count, rate, maxBacklog, thread }) => [connections, count, rate, maxBacklog, thread]),
    [
      [3, 33, 30, 33, 0],
      [3, 34, 30, 33, 1],
      [4, 34, 30, 34, 2],
    ],
  )
  deepEqual(
    shares(makePlan({ url, threads: 2 })).map(({ count }) => count),
    [Infinity, Infinity],
  )
})
