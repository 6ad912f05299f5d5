import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noHttp2 } from '../http2-counts.ts'
import { noHttp3 } from '../http3-counts.ts'
import type { EndpointStats } from '../upstream/index.ts'
import { mergeSnapshots, pastOf, Traffic, withPast, type Snapshot } from './index.ts'

function snapshotOf(endpoint: Partial<EndpointStats>, consecutiveFailures = 5): Snapshot {
  const idle = { waiting: 0, streams: 0, name: 'h:1', active: 0, requests: 0, failures: 0, ejections: 0, connections: 0 }
  const unknown = { ejected: false, failing: false, failuresInRow: 0, answering: false }
  return {
    processes: [],
    traffic: new Traffic([]).snapshot(),
    listeners: [],
    clusters: [
      {
        name: 'app',
        consecutiveFailures,
        active: 0,
        waiting: 0,
        connections: 0,
        tunnels: 0,
        http2: noHttp2,
        http3: noHttp3,
        endpoints: [{ ...idle, ...unknown, ...endpoint }],
      },
    ],
    accessLog: { lines: 0, dropped: 0, failures: 0 },
  }
}

function isFailing(snapshot: Snapshot): boolean | undefined {
  return snapshot.clusters[0]?.endpoints[0]?.failing
}

const failing = snapshotOf({ failing: true, failuresInRow: 5 })
const unsure = snapshotOf({ failuresInRow: 2 })
const well = snapshotOf({ answering: true })
const idle = snapshotOf({})

test('an endpoint is failing when what all processes saw of it is, and none got an answer last', () => {
  assert.equal(isFailing(mergeSnapshots([failing])), true)
  assert.equal(isFailing(mergeSnapshots([failing, idle])), true, 'a process without requests knows nothing')
  assert.equal(isFailing(mergeSnapshots([failing, well])), false)
  assert.equal(isFailing(mergeSnapshots([well, failing, failing])), false)
  assert.equal(isFailing(mergeSnapshots([unsure, unsure])), false)
  assert.equal(isFailing(mergeSnapshots([unsure, idle, unsure, unsure])), true, 'as many failures as of one process')
  assert.equal(isFailing(mergeSnapshots([snapshotOf({ failuresInRow: 9 }, 0), snapshotOf({ failuresInRow: 9 }, 0)])), false)
})

test('a process that ended bears no witness', () => {
  const past = pastOf([failing])
  assert.equal(isFailing(past), false)
  assert.equal(isFailing(withPast([well], past)), false)
  assert.equal(isFailing(withPast([unsure], past)), false)
  assert.equal(isFailing(withPast([failing], pastOf([well]))), true)
})
