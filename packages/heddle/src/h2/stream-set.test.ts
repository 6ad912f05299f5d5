import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Stream } from './stream.ts'
import { StreamSet } from './stream-set.ts'

function stream(id: number): Stream {
  return { id } as Stream
}

test('a stream set behaves as a map does, whoever stays long', () => {
  // Numbers grow; any of the open ones may go.
  const action = fc.oneof(fc.constant('add' as const), fc.record({ remove: fc.nat() }), fc.record({ skip: fc.nat({ max: 200 }) }))
  fc.assert(
    fc.property(fc.array(action, { maxLength: 400 }), (actions) => {
      const set = new StreamSet()
      const model = new Map<number, Stream>()
      let next = 1
      for (const act of actions) {
        if (act === 'add') {
          const one = stream(next)
          next += 2
          set.add(one)
          model.set(one.id, one)
        } else if ('skip' in act) next += act.skip * 2
        else {
          const victim = [...model.values()][act.remove % Math.max(1, model.size)]
          if (victim === undefined) continue
          assert.equal(set.delete(victim), true)
          assert.equal(set.delete(victim), false)
          model.delete(victim.id)
        }
        assert.equal(set.size, model.size)
      }
      for (let id = 1; id < next; id += 2) assert.equal(set.get(id), model.get(id))
      assert.deepEqual(new Set(set.all()), new Set(model.values()))
    }),
  )
})

test('one stream that outlives all others neither gets lost nor lets the set grow', () => {
  const set = new StreamSet()
  const old = stream(1)
  set.add(old)
  for (let id = 3; id < 200_000; id += 2) {
    const one = stream(id)
    set.add(one)
    assert.equal(set.get(id), one)
    assert.equal(set.get(1), old)
    assert.ok(set.delete(one))
    assert.equal(set.get(id), undefined)
  }
  assert.deepEqual(set.all(), [old])
})
