import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DynamicTable } from './dynamic-table.ts'
import { Entry } from './entry.ts'

test('a table is what a plain list of its entries would be, by index and by number', () => {
  const step = fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(0, 0, 0, 5, 100, 600).map((length) => ({ length, capacity: -1 })) },
    { weight: 1, arbitrary: fc.constantFrom(0, 31, 32, 100, 512, 544).map((capacity) => ({ length: 0, capacity })) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
      const evicted: number[] = []
      const table = new DynamicTable(512, (entry, number) => {
        assert.equal(entry.name, `n${number}`.padEnd(entry.name.length, '-'))
        evicted.push(number)
      })
      let entries: Entry[] = []
      let gone = 0
      const evictTo = (most: number): void => {
        while (entries.length > 0 && entries.reduce((sum, entry) => sum + entry.size, 0) > most) {
          entries = entries.slice(1)
          gone++
        }
      }
      for (const { length, capacity } of steps) {
        if (capacity >= 0) {
          table.resize(capacity)
          evictTo(capacity)
        } else {
          const entry = new Entry(`n${table.inserted}`.padEnd(length, '-'), '', 0)
          const fits = entry.size <= table.capacity
          evictTo(table.capacity - entry.size)
          table.insert(entry)
          if (fits) entries.push(entry)
        }
        assert.deepEqual([table.count, table.inserted], [entries.length, gone + entries.length])
        assert.equal(
          table.size,
          entries.reduce((sum, entry) => sum + entry.size, 0),
        )
        for (let number = -1; number <= table.inserted + 1; number++) {
          assert.equal(table.byNumber(number), entries[number - gone])
          if (number < table.inserted) assert.equal(table.at(table.inserted - 1 - number), entries[number - gone])
        }
      }
      assert.deepEqual(
        evicted,
        Array.from({ length: gone }, (_, number) => number),
      )
    }),
    { numRuns: 200 },
  )
})
