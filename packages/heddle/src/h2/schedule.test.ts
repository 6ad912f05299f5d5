import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Schedule } from './schedule.ts'
import type { Stream } from './stream.ts'

function stream(id: number, urgency: number, incremental: boolean): Stream {
  return { id, urgency, incremental, isReady: false, previous: undefined, next: undefined } as Stream
}

test('by urgency; then one by one in the order of requests; then in turns', () => {
  const schedule = new Schedule()
  const streams = [
    stream(9, 3, true),
    stream(7, 3, false),
    stream(1, 7, false),
    stream(11, 3, true),
    stream(5, 3, false),
    stream(13, 0, true),
    stream(3, 3, false),
  ]
  for (const one of streams) schedule.add(one)
  const served: number[] = []
  for (let turns = 0; schedule.first !== undefined; turns++) {
    const { first } = schedule
    served.push(first.id)
    schedule.rotate(first)
    // Those that share are served twice, the others at once.
    if (!first.incremental || served.filter((id) => id === first.id).length === 2) schedule.remove(first)
    assert.ok(turns < 100)
  }
  assert.deepEqual(served, [13, 13, 3, 5, 7, 9, 11, 9, 11, 1])
})

test('what is first is what sorting would put first', () => {
  const action = fc.record({ id: fc.nat({ max: 30 }), urgency: fc.nat({ max: 7 }) })
  fc.assert(
    fc.property(fc.array(action, { maxLength: 100 }), (actions) => {
      const schedule = new Schedule()
      const ready = new Map<number, Stream>()
      for (const { id, urgency } of actions) {
        const known = ready.get(id)
        if (known === undefined) {
          const one = stream(id, urgency, false)
          schedule.add(one)
          ready.set(id, one)
        } else {
          schedule.remove(known)
          schedule.remove(known)
          ready.delete(id)
        }
        const sorted = [...ready.values()].toSorted((a, b) => a.urgency - b.urgency || a.id - b.id)
        assert.equal(schedule.first, sorted[0])
        assert.equal(schedule.length, sorted.length)
      }
    }),
  )
})
