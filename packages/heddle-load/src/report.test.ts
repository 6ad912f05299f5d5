import { equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { progressLine, reportOf } from './report.ts'
import type { LoadResult } from './result.ts'

const none = { p50: null, p90: null, p99: null, p999: null, max: null, mean: null, min: null }
const result: LoadResult = {
  target: 'http://localhost:8080/',
  kind: 'http',
  protocol: 'auto',
  loop: 'open',
  rate: 5_000,
  connections: 10,
  streams: 1,
  threads: 2,
  measured: 10_000,
  requests: { due: 50_000, succeeded: 49_000, rejected: 400, failed: 300, unfinished: 200, dropped: 100 },
  perSecond: 4_940,
  latency: { p50: 0.85, p90: 2.25, p99: null, p999: null, max: 1_234, mean: 1.5, min: 0.1 },
  service: { p50: 0.8, p90: 2, p99: null, p999: null, max: 99.9, mean: 1.25, min: 0.1 },
  statuses: { 200: 49_000, 503: 400 },
  grpcStatuses: {},
  errors: { PEER_RESET: { count: 300, message: 'the server reset the connection' } },
  unopened: {},
  protocols: { h1: 49_400 },
  connectionsOpened: 12,
  moved: 3,
  bytes: { received: 5_000_000, sent: 0 },
  generator: {
    cpu: 1.5,
    utilization: 0.95,
    loopDelay: { p50: 0.1, p99: 30, max: 60 },
    lateness: { ...none, p50: 0.002, p99: 12 },
    limits: ['its event loop was up to 30 ms late (p99)'],
  },
  thresholds: [
    { threshold: 'p50>1ms', failed: false, measured: 0.85, reason: 'p50 is 850 µs' },
    { threshold: 'errors>1%', failed: true, measured: 0.02, reason: 'errors is 2%' },
  ],
  kinds: [],
  distribution: [],
  gaveUp: null,
  interrupted: false,
}

test('a report', () => {
  equal(
    reportOf(result),
    `HTTP load on http://localhost:8080/
5,000 due per second, 10 connections, 2 threads, measured for 10 s

requests   50,000 due, 4,940 succeeded per second
errors     1,000 (2%): 400 answered with an error, 300 failed, 200 unanswered at the end, 100 never begun
content    4.77 MiB received (488 KiB/s), 0 B sent
moved      3 times, to another connection: the server had not acted on the request

                  p50       p90       p99     p99.9       max      mean
latency        850 µs   2.25 ms         –         –    1.23 s    1.5 ms
service        800 µs      2 ms         –         –   99.9 ms   1.25 ms
latency is from when a request was due, service from when it was given to a connection
–: not known, for so many had no answer

status     200 × 49,000, 503 × 400
opened     12 connections; answers over HTTP/1.1 × 49,400
error      PEER_RESET × 300: the server reset the connection

generator  1.50 cores, event loop 95% busy, late p99 30 ms max 60 ms, begins late p50 2 µs p99 12 ms
NOT TO BE TRUSTED: the load generator was itself at its limit
  its event loop was up to 30 ms late (p99)
  more --threads, a lower --rate or another machine may help

passed     p50>1ms: p50 is 850 µs
FAILED     errors>1%: errors is 2%
`,
  )
})

test('what there is not is not mentioned', () => {
  const quiet = reportOf({
    ...result,
    loop: 'closed',
    rate: null,
    requests: { due: 1, succeeded: 1, rejected: 0, failed: 0, unfinished: 0, dropped: 0 },
    latency: { p50: 1, p90: 1, p99: 1, p999: 1, max: 1, mean: 1, min: 1 },
    errors: {},
    moved: 0,
    generator: { ...result.generator, lateness: null, limits: [] },
    thresholds: [],
  })
  for (const words of ['FAILED', 'NOT TO BE TRUSTED', 'moved', 'was due', 'not known', 'begins late', 'grpc'])
    equal(quiet.includes(words), false, words)
  match(quiet, /closed loop, 10 connections/)
  match(quiet, /errors {5}0 \(0%\)\n/)
})

test('kinds, gRPC and the reason of an early end', () => {
  const text = reportOf({
    ...result,
    kind: 'grpc',
    streams: 5,
    grpcStatuses: { '-1': 1, 0: 10, 14: 2, 99: 1 },
    unopened: { TLS_FAILED: { count: 2, message: 'no' } },
    kinds: [{ name: 'GET /a', requests: { ...result.requests, due: 7, succeeded: 5 }, latency: result.latency }],
    gaveUp: 'nobody there',
  })
  match(text, /10 connections × 5, 2 threads, measured for 10 s; given up: nobody there/)
  match(text, /grpc {7}0 OK × 10, 14 UNAVAILABLE × 2, 99 × 1, no grpc-status × 1/)
  match(text, /unopened {3}TLS_FAILED × 2: no/)
  match(text, /GET \/a {2}7 begun, 2 errors, p50 850 µs, p99 –/)
  match(reportOf({ ...result, interrupted: true }), /; stopped before its time/)
})

test('a line for now', () => {
  const progress = { phase: 'measuring', elapsed: 12_345, answered: 1_000, errors: 0, inFlight: 10, backlog: 0 } as const
  equal(progressLine(progress, 5_000), '12 s measuring · 5,000/s · 1,000 answered · 10 in flight')
  equal(
    progressLine({ ...progress, errors: 5, backlog: 7 }, 5_000),
    '12 s measuring · 5,000/s · 1,000 answered · 5 errors · 10 in flight · 7 waiting',
  )
})
