import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryNow } from './leaks.ts'

test('memoryNow counts what is held, in heap and array buffers, and not what was let go', async () => {
  const before = await memoryNow()
  let held: unknown[] = [new Uint8Array(20_000_000), Array.from({ length: 200_000 }, (_, i) => ({ i }))]
  const with_ = await memoryNow()
  assert.ok(with_ - before > 22_000_000, `${with_ - before}`)
  assert.equal(held.length, 2)
  held = []
  const after = await memoryNow()
  assert.ok(after - before < 1_000_000, `${after - before}`)
})
