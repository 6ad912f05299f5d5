import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IdHeap, type Placed } from './id-heap.ts'

test('whoever comes and goes: the lowest id is first', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40), { maxLength: 200 }), (steps) => {
      const items: Placed[] = Array.from({ length: 41 }, (_, id) => ({ id, place: -1 }))
      const heap = new IdHeap<Placed>()
      const twin = new Set<number>()
      for (const id of steps) {
        const item = items[id] as Placed
        if (twin.delete(id)) heap.remove(item)
        else {
          twin.add(id)
          heap.add(item)
        }
        assert.equal(heap.length, twin.size)
        assert.equal(heap.first?.id, twin.size === 0 ? undefined : Math.min(...twin))
        assert.deepEqual(
          items.filter(({ place }) => place >= 0).map(({ id: each }) => each),
          [...twin].toSorted((a, b) => a - b),
        )
      }
      for (const id of [...twin].toSorted((a, b) => a - b)) {
        assert.equal(heap.first?.id, id)
        heap.remove(heap.first as Placed)
      }
      assert.equal(heap.first, undefined)
    }),
  )
})
