import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { mostGaps, Reassembly } from './reassembly.ts'
import { octets } from './stream-end.test.ts'

/** Slow and obvious: every octet by its offset; the first that came is kept. */
class Twin {
  base = 0
  readonly #octets = new Map<number, number>()

  insert(offset: number, bytes: Uint8Array): void {
    bytes.forEach((octet, index) => {
      if (offset + index >= this.base && !this.#octets.has(offset + index)) this.#octets.set(offset + index, octet)
    })
  }

  takeAll(): number[] {
    const taken: number[] = []
    for (let octet = this.#octets.get(this.base); octet !== undefined; octet = this.#octets.get(this.base)) {
      taken.push(octet)
      this.#octets.delete(this.base++)
    }
    return taken
  }

  skipTo(offset: number): void {
    while (this.base < offset) this.#octets.delete(this.base++)
  }

  get isEmpty(): boolean {
    return this.#octets.size === 0
  }
}

function takeAll(reassembly: Reassembly): number[] {
  const taken: number[] = []
  for (let bytes = reassembly.take(); bytes !== undefined; bytes = reassembly.take()) taken.push(...bytes)
  return taken
}

function insert(reassembly: Reassembly, offset: number, limit: number): boolean {
  const bytes = octets(offset, limit)
  return reassembly.insert(offset, bytes, 0, bytes.length)
}

const step = fc.record({
  offset: fc.oneof(fc.nat(60), fc.integer({ min: 8_150, max: 8_230 }), fc.integer({ min: 16_300, max: 16_400 })),
  size: fc.oneof(fc.nat(20), fc.integer({ min: 0, max: 9_000 })),
  fill: fc.nat(255),
  does: fc.constantFrom('insert', 'insert', 'insert', 'take', 'skip'),
})

test('whatever comes, in any order and twice with other octets, is what the slow twin keeps', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const reassembly = new Reassembly()
      const twin = new Twin()
      for (const { offset, size, fill, does } of steps) {
        if (does === 'take') assert.deepEqual(takeAll(reassembly), twin.takeAll())
        else if (does === 'skip') {
          const to = twin.base + size
          reassembly.skipTo(to)
          twin.skipTo(to)
        } else {
          const bytes = new Uint8Array(size).fill(fill)
          assert.ok(reassembly.insert(offset, bytes, 0, size))
          twin.insert(offset, bytes)
        }
        assert.equal(reassembly.base, twin.base)
        assert.equal(reassembly.isEmpty, twin.isEmpty)
        if (twin.isEmpty) assert.equal(reassembly.pinned, 0)
      }
      assert.deepEqual(takeAll(reassembly), twin.takeAll())
    }),
    { numRuns: 200 },
  )
})

test('what comes is a copy, from where it lies in the buffer', () => {
  const reassembly = new Reassembly()
  const buffer = Uint8Array.of(9, 9, 1, 2, 3, 9)
  reassembly.insert(1, buffer, 2, 5)
  buffer.fill(7)
  reassembly.insert(0, Uint8Array.of(0), 0, 1)
  assert.deepEqual(takeAll(reassembly), [0, 1, 2, 3])
  assert.equal(reassembly.base, 4)
})

test('a window full of octets, one by one and the last first, pins a window of memory and not more', () => {
  const reassembly = new Reassembly()
  const size = 50_000
  // Every gap that opens is closed before the next one does.
  for (let offset = size - 1; offset > 0; offset--) assert.ok(insert(reassembly, offset, offset + 1))
  assert.ok(reassembly.pinned < size + 2 * 8_192, `${reassembly.pinned} octets`)
  assert.equal(reassembly.take(), undefined)
  insert(reassembly, 0, 1)
  assert.deepEqual(Uint8Array.from(takeAll(reassembly)), octets(0, size))
  assert.equal(reassembly.pinned, 0)
})

test('memory goes block by block as octets are taken', () => {
  const reassembly = new Reassembly()
  insert(reassembly, 0, 40_000)
  const before = reassembly.pinned
  assert.equal(reassembly.take()?.length, 8_192)
  assert.equal(reassembly.pinned, before - 8_192)
  assert.equal(reassembly.take()?.length, 8_192)
  assert.equal(reassembly.pinned, before - 2 * 8_192)
})

test('one octet far away pins one block', () => {
  const reassembly = new Reassembly()
  insert(reassembly, 1 << 20, (1 << 20) + 1)
  assert.equal(reassembly.pinned, 8_192)
})

test('gaps are counted, and a gap that is closed is none', () => {
  const reassembly = new Reassembly()
  for (let gap = 0; gap < mostGaps; gap++) assert.ok(insert(reassembly, 1 + 2 * gap, 2 + 2 * gap))
  assert.ok(insert(reassembly, 2, 3))
  assert.ok(insert(reassembly, 5_001, 5_002))
  assert.equal(insert(reassembly, 6_001, 6_002), false)
})

test('however far a stream has come: what waits costs what it is', () => {
  const reassembly = new Reassembly()
  insert(reassembly, 5, 6)
  for (const base of [2 ** 33 + 7, 2 ** 52]) {
    reassembly.skipTo(base)
    insert(reassembly, base + 1, base + 2)
    assert.equal(reassembly.pinned, 8_192)
    insert(reassembly, base, base + 1)
    assert.deepEqual(takeAll(reassembly), [...octets(base, base + 2)])
    assert.equal(reassembly.base, base + 2)
  }
})

test('what is let go is gone, and what comes then stands behind the base', () => {
  const reassembly = new Reassembly()
  insert(reassembly, 10, 20_000)
  reassembly.clear()
  assert.ok(reassembly.isEmpty)
  assert.equal(reassembly.pinned, 0)
  reassembly.skipTo(30_000)
  insert(reassembly, 30_000, 30_001)
  assert.deepEqual(takeAll(reassembly), [...octets(30_000, 30_001)])
})
