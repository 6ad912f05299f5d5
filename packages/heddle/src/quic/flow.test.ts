import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ReceiveWindow, SendWindow } from './flow.ts'

test('the peer may send up to its limit, and not one octet more', () => {
  const window = new ReceiveWindow(100, 100)
  assert.ok(window.take(99))
  assert.ok(window.take(1))
  assert.equal(window.take(1), false)
})

test('credit is due with half of the window used, and not before', () => {
  const window = new ReceiveWindow(100, 100)
  window.take(100)
  assert.equal(window.consume(49), false)
  assert.equal(window.isDue, false)
  assert.equal(window.consume(1), true)
  assert.equal(window.refill(10, 0), 150)
  assert.equal(window.isDue, false)
})

test('a window that is used up within two round trips doubles, up to its most', () => {
  const window = new ReceiveWindow(100, 350)
  window.consume(50)
  assert.equal(window.refill(10, 1_000), 150)
  window.consume(50)
  assert.equal(window.refill(10, 1_019), 300)
  assert.equal(window.size, 200)
  window.consume(100)
  assert.equal(window.refill(10, 1_030), 200 + 350)
  window.consume(200)
  assert.equal(window.refill(10, 1_031), 400 + 350)
})

test('a window that lasts for two round trips stays as it is', () => {
  const window = new ReceiveWindow(100, 350)
  window.consume(50)
  window.refill(10, 1_000)
  window.consume(50)
  assert.equal(window.refill(10, 1_020), 200)
  assert.equal(window.size, 100)
})

test('a limit that is told once more, for it was lost, neither rises nor widens the window', () => {
  const window = new ReceiveWindow(100, 1_000)
  window.consume(60)
  assert.equal(window.refill(10, 0), 160)
  assert.equal(window.refill(10, 1), 160)
  assert.equal(window.size, 100)
})

test('a window that is made smaller takes nothing back, and gives less', () => {
  const window = new ReceiveWindow(100, 1_000)
  window.fix(20)
  assert.equal(window.refill(10, 0), 100)
  window.consume(80)
  assert.equal(window.isDue, false)
  window.consume(10)
  assert.equal(window.refill(10, 0), 110)
  window.consume(10)
  assert.equal(window.refill(10, 0), 120)
  assert.equal(window.size, 20)
})

test('a window that is made larger is given at once', () => {
  const window = new ReceiveWindow(100, 100)
  window.fix(1_000)
  assert.ok(window.isDue)
  assert.equal(window.refill(10, 0), 1_000)
})

test('a window of nothing is never due', () => {
  const window = new ReceiveWindow(0, 0)
  assert.equal(window.isDue, false)
  assert.equal(window.consume(0), false)
})

test('whatever is consumed: the limit never falls, and the peer is never ahead of what is consumed by more than the window', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(600), fc.nat(40))), (steps) => {
      const window = new ReceiveWindow(1_000, 8_000)
      let now = 0
      for (const [count, wait] of steps) {
        now += wait
        const before = window.limit
        const isDue = window.consume(Math.min(count, window.limit - window.consumed))
        if (isDue) window.refill(10, now)
        assert.ok(window.limit >= before)
        assert.ok(window.limit - window.consumed <= window.size)
        assert.ok((window.limit - window.consumed) * 2 > window.size, 'a peer that has less than half of its window is given more')
        assert.ok(window.size <= 8_000)
      }
    }),
  )
})

test('a limit of the peer rises, and what is less is ignored (RFC 9000 §4.1)', () => {
  const window = new SendWindow(10)
  window.used = 10
  assert.equal(window.left, 0)
  assert.equal(window.raise(9), false)
  assert.equal(window.raise(10), false)
  assert.equal(window.raise(15), true)
  assert.equal(window.left, 5)
})
