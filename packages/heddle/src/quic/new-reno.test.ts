import assert from 'node:assert/strict'
import { test } from 'node:test'
import { initialWindow } from './congestion.ts'
import { NewReno } from './new-reno.ts'

const size = 1200

test('the first window is ten datagrams, or 14,720 octets if they are large (RFC 9002 §7.2)', () => {
  assert.equal(initialWindow(1200), 12_000)
  assert.equal(initialWindow(1472), 14_720)
  assert.equal(initialWindow(1500), 14_720)
  assert.equal(initialWindow(9000), 18_000)
})

test('slow start grows by what is acknowledged, congestion avoidance by a datagram for a window (§7.3)', () => {
  const reno = new NewReno(size)
  reno.onAcked(12_000)
  assert.equal(reno.window, 24_000)
  reno.onCongestionEvent()
  assert.deepEqual([reno.window, reno.threshold, reno.isSlowStart], [12_000, 12_000, false])
  reno.onAcked(6_000)
  assert.equal(reno.window, 12_000)
  reno.onAcked(6_000)
  assert.equal(reno.window, 13_200)
})

test('a loss halves the window, and persistent congestion leaves two datagrams (§7.3.2, §7.6.2)', () => {
  const reno = new NewReno(size)
  reno.onCongestionEvent()
  assert.equal(reno.window, 6000)
  for (let i = 0; i < 5; i++) reno.onCongestionEvent()
  assert.equal(reno.window, 2400)
  const other = new NewReno(size)
  other.onAcked(100_000)
  other.onPersistentCongestion()
  assert.equal(other.window, 2400)
  assert.ok(other.isSlowStart)
  other.resize(1400)
  assert.equal(other.window, 2800)
})

test('what was acknowledged before a pause does not count behind it', () => {
  const reno = new NewReno(size)
  reno.onCongestionEvent()
  reno.onAcked(5_000)
  reno.onUnused()
  reno.onAcked(5_000)
  assert.equal(reno.window, 6_000)
})
