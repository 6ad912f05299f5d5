import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../testing/index.ts'
import { SkippedNumbers } from './skipped-numbers.ts'

function seeded(seed: number): (byteCount: number) => Uint8Array {
  const random = new Random(seed)
  return (byteCount) => Uint8Array.from({ length: byteCount }, () => random.integer(0, 255))
}

test('numbers are left out here and there, never two in a row, and everybody who acknowledges one is found out', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const skips = new SkippedNumbers(seeded(seed))
    let number = 0
    const missing: number[] = []
    for (let sent = 0; sent < 50_000; sent++) {
      const next = skips.next(number + 1)
      if (next > number + 1) {
        assert.equal(next, number + 2)
        missing.push(number + 1)
      }
      number = next
    }
    assert.ok(missing.length > 8 && missing.length < 200, `${missing.length}`)
    assert.ok((missing[0] as number) <= 65, 'soon')
    const last = missing.at(-1) as number
    assert.ok(skips.isAcknowledged(Float64Array.of(0, number), 1))
    assert.ok(skips.isAcknowledged(Float64Array.of(last, last), 1))
    assert.ok(skips.isAcknowledged(Float64Array.of(number, number, last - 5, last + 5), 2))
    assert.ok(!skips.isAcknowledged(Float64Array.of(last + 1, number + 1, last - 1, last - 1), 2))
    const honest = Float64Array.from(
      [...missing.reverse(), -1].flatMap((gap, index, gaps) => [gap + 1, (gaps[index - 1] ?? number + 1) - 1]),
    )
    assert.ok(!skips.isAcknowledged(honest, honest.length / 2))
  }
})

test('the places differ', () => {
  const places = new Set<number>()
  for (let seed = 1; seed <= 40; seed++) {
    const skips = new SkippedNumbers(seeded(seed))
    let number = 0
    while (skips.next(number + 1) === number + 1) number++
    places.add(number)
  }
  assert.ok(places.size > 15)
})
