import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Ledger } from './ledger.ts'

test('it says what a list would', () => {
  const enter = fc.record({
    kind: fc.constantFrom('message', 'pong', 'other'),
    wire: fc.integer({ min: 2, max: 70_000 }),
    payload: fc.nat(70_000),
  })
  const settle = fc.record({ kind: fc.constant('settle'), wire: fc.nat(150_000), payload: fc.constant(0) })
  fc.assert(
    fc.property(fc.array(fc.oneof({ weight: 2, arbitrary: enter }, { weight: 1, arbitrary: settle }), { maxLength: 100 }), (steps) => {
      const ledger = new Ledger()
      const list: { kind: string; wire: number; payload: number }[] = []
      let messages = 0
      for (const step of steps) {
        if (step.kind === 'message') ledger.enterMessage(step.wire, step.payload)
        else if (step.kind === 'pong') ledger.enterPong(step.wire)
        else if (step.kind === 'other') ledger.enterOther(step.wire)
        else {
          let left = step.wire
          ledger.settle(left)
          for (let first = list[0]; first !== undefined && left > 0; first = list[0]) {
            const count = Math.min(left, first.wire)
            first.wire -= count
            left -= count
            if (first.wire > 0) break
            list.shift()
            if (first.kind === 'message') messages++
          }
        }
        if (step.kind !== 'settle') list.push({ ...step })
        const waiting = list.filter(({ kind }) => kind === 'message')
        assert.equal(ledger.messages, messages)
        assert.equal(ledger.waitingMessages, waiting.length)
        assert.equal(
          ledger.payload,
          waiting.reduce((sum, { payload }) => sum + payload, 0),
        )
        assert.equal(ledger.waitingPongs, list.filter(({ kind }) => kind === 'pong').length)
      }
    }),
  )
})

test('a message of many GiB is counted', () => {
  const ledger = new Ledger()
  const size = 2 ** 40 + 1
  ledger.enterMessage(size + 10, size)
  ledger.settle(size)
  assert.equal(ledger.payload, size)
  ledger.settle(10)
  assert.deepEqual([ledger.messages, ledger.payload], [1, 0])
})
