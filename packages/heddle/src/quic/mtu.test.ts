import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PathMtu, smallestDatagram } from './mtu.ts'

/** Probes until nothing is left to try, over a path that carries `carries` octets. */
function search(mtu: PathMtu, carries: number): number {
  let probes = 0
  for (let size = mtu.probeSize; size !== 0; size = mtu.probeSize) {
    assert.ok(++probes < 100)
    mtu.onProbeSent()
    assert.equal(mtu.probeSize, 0, 'one probe at a time')
    if (size <= carries) mtu.onProbeAcked(size)
    else mtu.onProbeLost(size)
  }
  return probes
}

test('a path that carries the most has it after one probe', () => {
  const mtu = new PathMtu(1452)
  assert.equal(mtu.size, 1200)
  assert.equal(search(mtu, 1452), 1)
  assert.equal(mtu.size, 1452)
})

test('the size found is one the path carries, and nearly the largest', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1200, max: 9000 }), fc.integer({ min: 1200, max: 9000 }), (most, carries) => {
      const mtu = new PathMtu(most)
      search(mtu, carries)
      assert.ok(mtu.size <= carries && mtu.size <= most)
      assert.ok(Math.min(most, carries) - mtu.size <= 32, `${mtu.size} of ${carries}`)
    }),
  )
})

test('a size is given up at its third loss only', () => {
  const mtu = new PathMtu(1452)
  for (let loss = 0; loss < 3; loss++) {
    assert.equal(mtu.probeSize, 1452)
    mtu.onProbeSent()
    mtu.onProbeLost(1452)
  }
  assert.equal(mtu.probeSize, 1326)
})

test('another path is searched from the beginning', () => {
  const mtu = new PathMtu(1452)
  mtu.setPeer(1400)
  search(mtu, 1452)
  mtu.restart()
  assert.deepEqual([mtu.size, mtu.probeSize], [1200, 1400])
})

test('what the peer takes bounds the search, and what was found', () => {
  const mtu = new PathMtu(1452)
  mtu.setPeer(1300)
  assert.equal(mtu.probeSize, 1300)
  search(mtu, 1500)
  assert.equal(mtu.size, 1300)
  mtu.setPeer(1200)
  assert.equal(mtu.size, smallestDatagram)
  assert.equal(mtu.probeSize, 0)
  assert.equal(new PathMtu(0).probeSize, 0)
})

test('a path that became narrower is noticed, and searched again below what it carried', () => {
  const mtu = new PathMtu(1452)
  search(mtu, 1452)
  const lose = (count: number, sentAt: number, now: number): void => {
    for (let i = 0; i < count; i++) mtu.onLost(1452, sentAt, now)
  }
  lose(30, 100, 200)
  mtu.onAcked(1452)
  mtu.settle()
  assert.equal(mtu.size, 1452, 'others arrived with them')
  lose(30, 210, 300)
  mtu.settle()
  assert.equal(mtu.size, 1452, 'all of them left before any was known to be lost')
  mtu.onLost(1200, 310, 400)
  mtu.onAcked(1200)
  mtu.settle()
  assert.equal(mtu.size, 1452, 'small ones tell nothing')
  lose(1, 310, 400)
  mtu.settle()
  assert.equal(mtu.size, 1200)
  search(mtu, 1300)
  assert.ok(mtu.size > 1260 && mtu.size <= 1300)
})
