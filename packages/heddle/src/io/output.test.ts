import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { defaultTurnLimit, Output, pooledBytes } from './output.ts'

interface Flight {
  readonly view: Buffer
  readonly fill: number
}

/** One connection: what it has in flight must stay as it was until it left. */
class Sender {
  readonly output = new Output()
  readonly flights: Flight[] = []
  #fill = 0

  /** One turn whose pieces have these sizes; it leaves at once, or stays in flight. */
  turn(pieces: readonly number[], leaves: boolean): void {
    const { output, flights } = this
    output.startTurn(defaultTurnLimit, flights.length === 0)
    assert.equal(output.pending, 0)
    assert.equal(output.room, defaultTurnLimit)
    this.#fill = (this.#fill + 1) & 0xff
    for (const size of pieces) {
      output.reserve(size)
      output.buffer.fill(this.#fill, output.length, output.length + size)
      output.length += size
    }
    const view = output.finishTurn()
    const total = pieces.reduce((sum, size) => sum + size, 0)
    assert.equal(view.length, total)
    if (view.length > 0) flights.push({ view, fill: this.#fill })
    this.check()
    if (leaves && flights.length <= 1) this.drain()
  }

  /** Everything in flight has left. */
  drain(): void {
    this.check()
    this.flights.length = 0
    this.output.release()
    assert.equal(this.output.buffer.length, 0)
  }

  check(): void {
    for (const { view, fill } of this.flights) {
      assert.ok(view.equals(Buffer.alloc(view.length, fill)), `${view.length} octets in flight were overwritten`)
    }
  }
}

test('bytes in flight are never touched, whoever takes buffers from the pool meanwhile', () => {
  const pieces = fc.array(fc.oneof(fc.nat({ max: 2000 }), fc.nat({ max: 70_000 }), fc.constantFrom(16_384, 49_152, 65_536, 300_000)), {
    maxLength: 4,
  })
  const action = fc.oneof(
    { weight: 6, arbitrary: fc.record({ sender: fc.nat({ max: 2 }), pieces, leaves: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ sender: fc.nat({ max: 2 }), drain: fc.constant(true) }) },
    { weight: 1, arbitrary: fc.record({ sender: fc.nat({ max: 2 }), drop: fc.nat({ max: 100_000 }) }) },
  )
  fc.assert(
    fc.property(fc.array(action, { maxLength: 25 }), (actions) => {
      const senders = [new Sender(), new Sender(), new Sender()]
      for (const act of actions) {
        const sender = senders[act.sender] as Sender
        if ('pieces' in act) sender.turn(act.pieces, act.leaves)
        else if ('drain' in act) sender.drain()
        else {
          sender.output.startTurn(defaultTurnLimit, sender.flights.length === 0)
          sender.output.reserve(act.drop)
          sender.output.length += act.drop
          sender.output.dropTurn()
        }
        for (const one of senders) one.check()
      }
      for (const sender of senders) sender.drain()
    }),
    { numRuns: 150 },
  )
})

test('a buffer is taken with the first byte, not before', () => {
  const output = new Output()
  output.startTurn(defaultTurnLimit, true)
  assert.equal(output.buffer.length, 0)
  output.writeLatin1('x')
  assert.ok(output.buffer.length > 0)
})

test('what was taken comes back: turns that leave at once need one buffer for all connections', () => {
  const sender = new Sender()
  sender.turn([100], true)
  const pooled = pooledBytes()
  for (let i = 0; i < 50; i++) new Sender().turn([1000, 20], true)
  assert.equal(pooledBytes(), pooled)
})

test('who had much to send gets a large buffer at once the next time', () => {
  const sender = new Sender()
  sender.turn([40_000, 200_000], true)
  sender.output.startTurn(defaultTurnLimit, true)
  sender.output.writeLatin1('x')
  assert.ok(sender.output.buffer.length >= defaultTurnLimit)
  sender.output.release()
})
