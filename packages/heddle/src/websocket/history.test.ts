import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { History } from './history.ts'

test('it is the last bytes of all that went through, and never holds more than a quarter on top', () => {
  const pieces = fc.array(fc.tuple(fc.nat(4), fc.oneof(fc.nat(40), fc.nat(700), fc.nat(3000))), { maxLength: 60 })
  fc.assert(
    fc.property(fc.constantFrom(512, 1024, 2048), pieces, (size, lengths) => {
      const history = new History(size)
      let all = Buffer.alloc(0)
      let next = 0
      for (const [margin, length] of lengths) {
        const bytes = Buffer.alloc(length + 2 * margin, 0xee)
        for (let i = 0; i < length; i++) bytes[margin + i] = next++ & 0xff
        history.append(bytes, margin, margin + length)
        all = Buffer.concat([all, bytes.subarray(margin, margin + length)]).subarray(-size)
        assert.deepEqual(history.window ?? Buffer.alloc(0), all)
        assert.ok(history.memory <= size + size / 4 || history.memory <= 1024, `${history.memory}`)
      }
    }),
  )
})

test('it takes no memory before the first byte, and none after clear', () => {
  const history = new History(32_768)
  assert.equal(history.memory, 0)
  history.append(Buffer.alloc(0), 0, 0)
  assert.equal(history.memory, 0)
  history.append(Buffer.from('abc'), 1, 3)
  assert.equal(history.window?.toString(), 'bc')
  assert.ok(history.memory <= 1024)
  history.clear()
  assert.equal(history.memory, 0)
  assert.equal(history.window, undefined)
})
