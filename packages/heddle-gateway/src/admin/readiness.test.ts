import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noHttp2 } from '../http2-counts.ts'
import { noHttp3 } from '../http3-counts.ts'
import type { Snapshot } from '../metrics/index.ts'
import { readinessOf } from './readiness.ts'

/** Clusters by name, each with whether its endpoints are failing; none is ejected. */
function snapshotOf(clusters: Record<string, readonly boolean[]>): Snapshot {
  return {
    processes: [],
    traffic: { families: [], served: [], upstream: [] },
    listeners: [],
    clusters: Object.entries(clusters).map(([name, failing]) => ({
      name,
      consecutiveFailures: 5,
      active: 0,
      waiting: 0,
      connections: 0,
      tunnels: 0,
      http2: noHttp2,
      http3: noHttp3,
      endpoints: failing.map((fails, index) => ({
        name: `e${index}:1`,
        active: 0,
        requests: 0,
        failures: 0,
        ejections: 0,
        ejected: false,
        failing: fails,
        failuresInRow: fails ? 5 : 0,
        answering: !fails,
        waiting: 0,
        connections: 0,
        streams: 0,
      })),
    })),
    accessLog: { lines: 0, dropped: 0, failures: 0 },
  }
}

test('it is ready while a cluster can be used', () => {
  assert.deepEqual(readinessOf(snapshotOf({ a: [true, false], b: [false] }), 'running'), { status: 'ready', unusableClusters: [] })
  assert.deepEqual(readinessOf(snapshotOf({ a: [true, true], b: [false] }), 'running'), { status: 'ready', unusableClusters: ['a'] })
})

test('it is down when none can', () => {
  assert.deepEqual(readinessOf(snapshotOf({ a: [true], b: [] }), 'running'), { status: 'down', unusableClusters: ['a', 'b'] })
})

test('it is draining whatever the clusters do', () => {
  assert.deepEqual(readinessOf(snapshotOf({ a: [false] }), 'draining'), { status: 'draining', unusableClusters: [] })
  assert.deepEqual(readinessOf(snapshotOf({ a: [true] }), 'draining'), { status: 'draining', unusableClusters: ['a'] })
})
