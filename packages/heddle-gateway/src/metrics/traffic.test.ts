import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RequestRecord } from '../record.ts'
import { methodLimit } from './calls.ts'
import { seriesLimit, ValueFamily } from './family.ts'
import { familiesOf, mergeSnapshots, pastOf, renderPrometheus, summarize, Traffic, withPast, type Snapshot } from './index.ts'
import { parsePrometheus, type ParsedFamily, type Sample } from '../../test/parse-prometheus.ts'

function record(change: Partial<RequestRecord> = {}): RequestRecord {
  return {
    startedAt: 0,
    listener: 'web',
    route: 'api',
    cluster: 'app',
    endpoint: '10.0.0.1:80',
    remoteAddress: '127.0.0.1',
    protocol: 'h1',
    upstreamProtocol: 'h1',
    method: 'GET',
    authority: 'example.org',
    path: '/',
    status: 200,
    reason: '',
    attempts: 1,
    requestSize: 0,
    responseSize: 100,
    duration: 20,
    timeToHead: 10,
    upstreamLatency: 8,
    upstreamDuration: 18,
    tunnel: false,
    grpc: undefined,
    grpcStatus: -1,
    ...change,
  }
}

function snapshotOf(traffic: Traffic, pid = 1): Snapshot {
  return {
    processes: [{ pid, startedAt: 1_000, cpu: 1.5, memory: 2_000 }],
    traffic: traffic.snapshot(),
    listeners: [
      {
        name: 'web',
        url: 'http://127.0.0.1:8080',
        connections: 2,
        accepted: 3,
        refused: 0,
        handshakesFailed: 0,
        exchanges: 1,
        deadlines: 2,
        waiting: 1,
        http2: {
          connections: 1,
          streams: 4,
          frames: 30,
          writes: 10,
          resetsSent: { CANCEL: 1 },
          resetsReceived: { CANCEL: 2, NO_ERROR: 1 },
        },
        http3: { connections: 2, streams: 5, resetsSent: {}, resetsReceived: { H3_NO_ERROR: 1 }, datagrams: 120, writes: 30 },
      },
    ],
    clusters: [
      {
        name: 'app',
        consecutiveFailures: 5,
        active: 1,
        waiting: 0,
        connections: 1,
        tunnels: 0,
        http2: { connections: 1, streams: 3, frames: 9, writes: 3, resetsSent: {}, resetsReceived: { REFUSED_STREAM: 1 } },
        http3: { connections: 1, streams: 2, resetsSent: { H3_REQUEST_CANCELLED: 3 }, resetsReceived: {} },
        endpoints: [
          {
            name: '10.0.0.1:80',
            active: 1,
            requests: 5,
            failures: 1,
            ejections: 1,
            ejected: pid === 1,
            failing: pid === 1,
            failuresInRow: pid === 1 ? 5 : 0,
            answering: pid !== 1,
            waiting: 2,
            connections: 1,
            streams: 3,
          },
        ],
      },
    ],
    accessLog: { lines: 4, dropped: 1, failures: 1 },
  }
}

function text(...snapshots: Snapshot[]): Map<string, ParsedFamily> {
  return parsePrometheus(renderPrometheus(familiesOf(mergeSnapshots(snapshots))))
}

function samples(families: Map<string, ParsedFamily>, name: string, labels: Record<string, string> = {}): Sample[] {
  const family = families.get(name.replace(/_(?:bucket|sum|count)$/, '')) ?? families.get(name)
  return (family?.samples ?? []).filter(
    (sample) => sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )
}

function serve(traffic: Traffic, change: Partial<RequestRecord> = {}): void {
  traffic.onRequestStart(change.listener ?? 'web')
  traffic.onRequestEnd(record(change))
}

const listeners = [{ name: 'web', scheme: 'https' }]

describe('metrics', () => {
  test('name a request as OpenTelemetry does', () => {
    const traffic = new Traffic(listeners)
    serve(traffic)
    serve(traffic, { duration: 30_000 })
    const families = text(snapshotOf(traffic))
    const buckets = samples(families, 'http_server_request_duration_seconds_bucket')
    assert.deepEqual(buckets[0]?.labels, {
      heddle_listener: 'web',
      http_route: 'api',
      url_scheme: 'https',
      http_request_method: 'GET',
      http_response_status_code: '200',
      network_protocol_version: '1.1',
      le: '0.005',
    })
    assert.deepEqual(
      buckets.map((bucket) => [bucket.labels['le'], bucket.value]),
      [
        ['0.005', 0],
        ['0.01', 0],
        ['0.025', 1],
        ['0.05', 1],
        ['0.075', 1],
        ['0.1', 1],
        ['0.25', 1],
        ['0.5', 1],
        ['0.75', 1],
        ['1', 1],
        ['2.5', 1],
        ['5', 1],
        ['7.5', 1],
        ['10', 1],
        ['+Inf', 2],
      ],
    )
    assert.equal(samples(families, 'http_server_request_duration_seconds_sum')[0]?.value, 30.02)
    assert.equal(samples(families, 'http_server_request_duration_seconds_count')[0]?.value, 2)
    assert.deepEqual(samples(families, 'http_client_request_duration_seconds_count')[0]?.labels, {
      heddle_cluster: 'app',
      server_address: '10.0.0.1',
      server_port: '80',
      http_request_method: 'GET',
      http_response_status_code: '200',
      network_protocol_version: '1.1',
    })
  })

  test('count requests under way', () => {
    const traffic = new Traffic(listeners)
    assert.equal(samples(text(snapshotOf(traffic)), 'http_server_active_requests')[0]?.value, 0)
    traffic.onRequestStart('web')
    traffic.onRequestStart('web')
    traffic.onRequestEnd(record())
    assert.equal(samples(text(snapshotOf(traffic)), 'http_server_active_requests')[0]?.value, 1)
  })

  test('count bytes, retries and errors', () => {
    const traffic = new Traffic(listeners)
    serve(traffic, { requestSize: 7, responseSize: 11, attempts: 3 })
    serve(traffic, { status: 502, reason: 'connect_failed', requestSize: 1 })
    const families = text(snapshotOf(traffic))
    const value = (name: string, labels = {}): number | undefined => samples(families, name, labels)[0]?.value
    assert.equal(value('heddle_server_request_content_bytes_total'), 8)
    assert.equal(value('heddle_server_response_content_bytes_total'), 111)
    assert.equal(value('heddle_upstream_retries_total', { heddle_cluster: 'app' }), 2)
    assert.equal(value('heddle_errors_total', { error_type: 'connect_failed', http_route: 'api', heddle_cluster: 'app' }), 1)
    assert.equal(value('http_server_request_duration_seconds_count', { error_type: 'connect_failed', http_response_status_code: '502' }), 1)
  })

  test('count tunnels apart: how many, how long, and bytes also while they are open', () => {
    const traffic = new Traffic(listeners)
    const begin = (): RequestRecord => {
      const begun = record({ tunnel: true, status: 101, timeToHead: 2, upstreamLatency: 1, responseSize: 0 })
      traffic.onRequestStart('web')
      traffic.onTunnelStart(begun)
      return begun
    }
    serve(traffic)
    const [first, second] = [begin(), begin()]
    Object.assign(first, { requestSize: 5, responseSize: 50 })
    Object.assign(second, { requestSize: 7, responseSize: 70 })
    const now = (): { value(name: string, labels?: Record<string, string>): number | undefined } => {
      const families = text(snapshotOf(traffic))
      return { value: (name, labels = {}) => samples(families, name, labels)[0]?.value }
    }
    const open = now()
    assert.deepEqual([open.value('heddle_server_open_tunnels'), open.value('heddle_server_tunnels_opened_total')], [2, 2])
    assert.equal(open.value('heddle_server_tunnel_bytes_total', { heddle_direction: 'received', http_route: 'api' }), 12)

    // Days are no ceiling.
    traffic.onRequestEnd(Object.assign(first, { responseSize: 60, duration: 200_000_002 }))
    traffic.onRequestEnd(Object.assign(second, { duration: 1_002, reason: 'shutdown' }))
    const over = now()
    assert.deepEqual([over.value('heddle_server_open_tunnels'), over.value('heddle_server_tunnel_duration_seconds_sum')], [0, 200_001])
    assert.equal(over.value('heddle_server_tunnels_closed_total', { error_type: 'shutdown' }), 1)
    assert.equal(over.value('heddle_server_tunnel_bytes_total', { heddle_direction: 'sent' }), 130)
    assert.equal(over.value('heddle_server_response_content_bytes_total'), 100, 'they are no content')

    const alone = snapshotOf(traffic, 2)
    for (const snapshot of [mergeSnapshots([alone]), withPast([snapshotOf(new Traffic(listeners))], pastOf([alone]))]) {
      const { requests, listeners: served, routes } = summarize(snapshot, 0)
      for (const { tunnels, duration, latency } of [requests, served[0], routes[0]] as (typeof requests)[]) {
        const { duration: lasted, ...counts } = tunnels
        assert.deepEqual(counts, { open: 0, opened: 2, closed: 2, received: 12, sent: 130 })
        assert.deepEqual([lasted.count, lasted.min, lasted.max], [2, 1_000, 200_000_000])
        // What can be slow about a tunnel as a request is its opening.
        assert.deepEqual([duration.count, duration.min, duration.max, latency.min], [3, 2, 20, 2])
      }
    }
  })

  test('give an error type to what the upstream failed with, and no status where none was sent', () => {
    const traffic = new Traffic(listeners)
    serve(traffic, { status: 503 })
    serve(traffic, { status: 0, reason: 'client_gone' })
    const counts = samples(text(snapshotOf(traffic)), 'http_server_request_duration_seconds_count')
    assert.deepEqual(
      counts.map(({ labels }) => [labels['http_response_status_code'], labels['error_type']]),
      [
        ['503', '503'],
        [undefined, 'client_gone'],
      ],
    )
  })

  test('do not grow with the methods clients invent', () => {
    const traffic = new Traffic(listeners)
    for (let i = 0; i < 50; i++) serve(traffic, { method: `M${i}` })
    const counts = samples(text(snapshotOf(traffic)), 'http_server_request_duration_seconds_count')
    assert.deepEqual(
      counts.map(({ labels, value }) => [labels['http_request_method'], value]),
      [['_OTHER', 50]],
    )
  })

  test('count what is too much under one overflow series', () => {
    const family = new ValueFamily('counter', 'x_total', 'X.')
    for (let i = 0; i < seriesLimit + 10; i++) family.series([['n', String(i)]]).value++
    family.series([['n', '0']]).value++
    const { series } = family.snapshot()
    assert.equal(series.length, seriesLimit + 1)
    assert.deepEqual(series.at(-1), { labels: [['otel_metric_overflow', 'true']], value: 10, counts: [] })
    assert.equal(series[0]?.value, 2)
  })

  test('forget endpoints that were not used for long, when there are very many', () => {
    const traffic = new Traffic(listeners)
    serve(traffic, { endpoint: 'first:1' })
    serve(traffic, { endpoint: 'second:1' })
    for (let i = 0; i < 126; i++) serve(traffic, { endpoint: `e${i}:1` })
    serve(traffic, { endpoint: 'first:1' })
    serve(traffic, { endpoint: 'new:1', reason: 'body_timeout' })
    const counts = samples(text(snapshotOf(traffic)), 'http_client_request_duration_seconds_count')
    const addresses = counts.map(({ labels }) => labels['server_address'])
    assert.equal(addresses.length, 128)
    assert.deepEqual(
      ['first', 'second', 'new'].map((address) => addresses.includes(address)),
      [true, false, true],
    )
    assert.equal(traffic.snapshot().upstream.length, 128)
  })

  test('of workers that ended go on counting, and take no more room for many than for one', () => {
    const one = new Traffic(listeners)
    serve(one)
    one.onRequestStart('web')
    let past = pastOf([snapshotOf(one)])
    for (let i = 0; i < 10; i++) past = pastOf([past, snapshotOf(one)])
    assert.equal(past.traffic.served.length, 1)
    const living = new Traffic(listeners)
    serve(living)
    const now = snapshotOf(living, 2)
    const summary = summarize(withPast([now], past), 0)
    assert.equal(summary.requests.duration.count, 12)
    assert.equal(summary.requests.active, 0)
    assert.equal(summary.listeners[0]?.connections, 2)
    assert.equal(summary.listeners[0]?.accepted, 36)
    assert.deepEqual(
      summary.processes.map(({ pid }) => pid),
      [2],
    )
    assert.equal(summary.clusters[0]?.endpoints[0]?.requests, 60)
    assert.equal(summary.clusters[0]?.endpoints[0]?.ejected, false)
    const moved = { ...now, clusters: now.clusters.map((cluster) => ({ ...cluster, endpoints: [] })) }
    assert.deepEqual(withPast([moved], past).clusters[0]?.endpoints, [])
  })

  test('of several workers are one', () => {
    const [one, two] = [new Traffic(listeners), new Traffic(listeners)]
    serve(one)
    serve(two)
    serve(two, { duration: 40 })
    serve(two, { status: 404 })
    const families = text(snapshotOf(one, 1), snapshotOf(two, 2))
    const value = (name: string, labels = {}): number | undefined => samples(families, name, labels)[0]?.value
    assert.equal(value('http_server_request_duration_seconds_count', { http_response_status_code: '200' }), 3)
    assert.equal(value('http_server_request_duration_seconds_count', { http_response_status_code: '404' }), 1)
    assert.equal(value('heddle_server_open_connections'), 4)
    assert.equal(value('heddle_endpoint_requests_total'), 10)
    assert.equal(value('heddle_endpoint_ejected'), 0)
    assert.equal(value('heddle_access_log_lines_total'), 8)
    assert.deepEqual(
      samples(families, 'process_cpu_time_seconds_total').map(({ labels }) => labels['process_pid']),
      ['1', '2'],
    )
    const summary = summarize(mergeSnapshots([snapshotOf(one, 1), snapshotOf(two, 2)]), 5)
    assert.equal(summary.requests.duration.count, 4)
    assert.deepEqual(summary.requests.statuses, { '2xx': 3, '4xx': 1 })
    assert.equal(summary.clusters[0]?.endpoints[0]?.duration.count, 4)
  })

  test('tell the time to the head of a response from the time a stream took', () => {
    const traffic = new Traffic(listeners)
    serve(traffic, { timeToHead: 10, duration: 5_000, upstreamLatency: 8, upstreamDuration: 4_998 })
    serve(traffic, { status: 503, reason: 'no_endpoint', endpoint: '', timeToHead: -1, duration: 1 })
    serve(traffic, { status: 0, reason: 'client_closed', timeToHead: -1, duration: 70, upstreamLatency: -1, upstreamDuration: 60 })
    const { requests, clusters, listeners: served } = summarize(snapshotOf(traffic), 0)
    assert.deepEqual([requests.latency.count, requests.latency.min, requests.latency.max], [2, 1, 10])
    assert.deepEqual([requests.duration.count, requests.duration.min, requests.duration.max], [3, 1, 5_000])
    assert.equal(served[0]?.latency.count, 2)
    const endpoint = clusters[0]?.endpoints[0]
    assert.deepEqual([endpoint?.latency.count, endpoint?.latency.max], [1, 8])
    assert.deepEqual([endpoint?.duration.count, endpoint?.duration.min, endpoint?.duration.max], [2, 60, 4_998])
    const families = text(snapshotOf(traffic))
    assert.equal(samples(families, 'heddle_server_response_latency_seconds_count', { http_route: 'api' })[0]?.value, 2)
    assert.equal(samples(families, 'heddle_upstream_response_latency_seconds_sum', { heddle_cluster: 'app' })[0]?.value, 0.008)
    assert.equal(samples(families, 'http_client_request_duration_seconds_sum')[0]?.value, 4.998)
  })

  test('show streams, resets and frames for each write', () => {
    const snapshots = [snapshotOf(new Traffic(listeners), 1), snapshotOf(new Traffic(listeners), 2)]
    const families = text(...snapshots)
    const value = (name: string, labels = {}): number | undefined => samples(families, name, labels)[0]?.value
    assert.equal(value('heddle_server_open_http2_connections', { heddle_listener: 'web' }), 2)
    assert.equal(value('heddle_server_open_http3_connections', { heddle_listener: 'web' }), 4)
    assert.equal(value('heddle_cluster_open_http3_connections', { heddle_cluster: 'app' }), 2)
    assert.equal(value('heddle_server_open_streams'), 18)
    assert.equal(value('heddle_server_http3_datagrams_total'), 240)
    assert.equal(value('heddle_server_http3_writes_total'), 60)
    assert.equal(value('heddle_server_http3_resets_total', { heddle_direction: 'received', heddle_http3_code: 'H3_NO_ERROR' }), 2)
    assert.equal(value('heddle_cluster_http3_resets_total', { heddle_cluster: 'app', heddle_http3_code: 'H3_REQUEST_CANCELLED' }), 6)
    assert.equal(value('heddle_server_waiting_requests'), 2)
    assert.equal(value('heddle_server_http2_frames_total'), 60)
    assert.equal(value('heddle_server_http2_writes_total'), 20)
    assert.equal(value('heddle_server_http2_resets_total', { heddle_direction: 'received', heddle_http2_code: 'CANCEL' }), 4)
    assert.equal(value('heddle_cluster_http2_resets_total', { heddle_cluster: 'app', heddle_http2_code: 'REFUSED_STREAM' }), 2)
    assert.equal(value('heddle_endpoint_open_streams', { heddle_endpoint: '10.0.0.1:80' }), 6)
    const summary = summarize(mergeSnapshots(snapshots), 0)
    assert.equal(summary.listeners[0]?.http2.framesPerWrite, 3)
    assert.deepEqual(summary.listeners[0]?.http2.resetsReceived, { CANCEL: 4, NO_ERROR: 2 })
    assert.deepEqual([summary.clusters[0]?.http2.streams, summary.clusters[0]?.endpoints[0]?.waiting], [6, 4])
    const past = summarize(withPast([snapshots[0] as Snapshot], pastOf([snapshots[1] as Snapshot])), 0)
    const resets = { resetsSent: {}, resetsReceived: { H3_NO_ERROR: 2 } }
    assert.deepEqual(past.listeners[0]?.http3, { connections: 2, streams: 5, ...resets, datagrams: 240, writes: 60 })
    assert.deepEqual(past.clusters[0]?.http3, { connections: 1, streams: 2, resetsSent: { H3_REQUEST_CANCELLED: 6 }, resetsReceived: {} })
    assert.deepEqual([past.listeners[0]?.http2.streams, past.listeners[0]?.http2.frames, past.listeners[0]?.waiting], [4, 60, 1])
  })

  test('count gRPC calls by method and status', () => {
    const traffic = new Traffic(listeners)
    const grpc = { service: 'a.B', method: 'C' }
    const path = '/a.B/C'
    serve(traffic, { path, grpc, grpcStatus: 0, duration: 10 })
    serve(traffic, { path, grpc, grpcStatus: 0, duration: 30 })
    serve(traffic, { path, grpc, grpcStatus: 14, reason: 'connect_failed', duration: 20 })
    serve(traffic, { path, grpc, grpcStatus: 99, duration: 20 })
    const families = text(snapshotOf(traffic))
    assert.deepEqual(
      samples(families, 'rpc_server_duration_seconds_count').map(({ labels, value }) => [labels, value]),
      [
        [
          { heddle_listener: 'web', http_route: 'api', rpc_system: 'grpc', rpc_service: 'a.B', rpc_method: 'C', rpc_grpc_status_code: '0' },
          2,
        ],
        [
          {
            heddle_listener: 'web',
            http_route: 'api',
            rpc_system: 'grpc',
            rpc_service: 'a.B',
            rpc_method: 'C',
            rpc_grpc_status_code: '14',
          },
          1,
        ],
        [
          { heddle_listener: 'web', http_route: 'api', rpc_system: 'grpc', rpc_service: 'a.B', rpc_method: 'C', rpc_grpc_status_code: '2' },
          1,
        ],
      ],
    )
    assert.deepEqual(summarize(snapshotOf(traffic), 0).grpc, [
      { listener: 'web', route: 'api', service: 'a.B', method: 'C', calls: 4, statuses: { OK: 2, UNAVAILABLE: 1, UNKNOWN: 1 }, avg: 20 },
    ])
  })

  test('do not grow with the methods clients call that no upstream has', () => {
    const traffic = new Traffic(listeners)
    const call = (method: string, change: Partial<RequestRecord>): void =>
      serve(traffic, { path: `/a.B/${method}`, grpc: { service: 'a.B', method }, ...change })
    for (let i = 0; i < 50; i++) {
      call(`Invented${i}`, { grpcStatus: 12 })
      call(`Refused${i}`, { grpcStatus: 14, reason: 'no_endpoint' })
    }
    call('Real', { grpcStatus: 0 })
    call('Real', { grpcStatus: 12 })
    for (let i = 0; i < methodLimit + 20; i++) call(`Generated${i}`, { grpcStatus: 5 })
    const { grpc } = summarize(snapshotOf(traffic), 0)
    assert.equal(grpc.length, methodLimit + 1)
    const others = grpc.find(({ method }) => method === '_OTHER')
    assert.deepEqual(others?.statuses, { UNIMPLEMENTED: 50, UNAVAILABLE: 50, NOT_FOUND: 21 })
    assert.deepEqual(grpc.find(({ method }) => method === 'Real')?.statuses, { OK: 1, UNIMPLEMENTED: 1 })
  })

  test('escape what a label may not hold', () => {
    const family = new ValueFamily('gauge', 'x', 'A "help" with \\ and\nbreak.')
    family.series([
      ['a', 'quote " slash \\ break \n end'],
      ['b', ''],
      ['c', 'caf\u00e9 {}'],
    ]).value = 0.5
    const rendered = renderPrometheus([family.snapshot()])
    assert.equal(
      rendered,
      '# HELP x A "help" with \\\\ and\\nbreak.\n# TYPE x gauge\nx{a="quote \\" slash \\\\ break \\n end",c="caf\u00e9 {}"} 0.5\n',
    )
    assert.deepEqual(parsePrometheus(rendered).get('x')?.samples[0]?.labels, { a: 'quote " slash \\ break \n end', c: 'caf\u00e9 {}' })
  })

  test('are summed up in ms', () => {
    const traffic = new Traffic(listeners)
    for (let i = 1; i <= 100; i++) serve(traffic, { duration: i })
    const { duration } = summarize(snapshotOf(traffic), 0).requests
    assert.deepEqual([duration.count, duration.min, duration.max, duration.avg], [100, 1, 100, 50.5])
    assert.ok(Math.abs(duration.p50 - 50) < 0.5 && Math.abs(duration.p99 - 99) < 0.8, JSON.stringify(duration))
  })
})
