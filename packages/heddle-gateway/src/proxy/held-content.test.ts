import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HeldContent } from './held-content.ts'

/** What `held` sends, and the memory it stands in. */
function sent(held: HeldContent): { content: string; memory: number; ends: number } {
  let content = ''
  let ends = 0
  const memories = new Set<ArrayBufferLike>()
  held.sendTo(
    {
      sendOwned(chunk: Uint8Array, end: boolean) {
        equal(ends, 0, 'nothing comes behind the end')
        content += Buffer.from(chunk).toString('latin1')
        memories.add(chunk.buffer)
        if (end) ends++
        return true
      },
    } as never,
    true,
  )
  return { content, ends, memory: [...memories].reduce((sum, { byteLength }) => sum + byteLength, 0) }
}

test('what was added is sent, again and again', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 20 }), (sizes) => {
      const held = new HeldContent()
      let all = ''
      sizes.forEach((size, index) => {
        const piece = String.fromCharCode(65 + index).repeat(size)
        all += piece
        equal(Buffer.from(held.add(Buffer.from(`<${piece}>`), 1, size + 1)).toString('latin1'), piece)
        equal(held.size, all.length)
      })
      for (let i = 0; i < 2; i++) {
        const { content, ends } = sent(held)
        equal(content === all, true)
        equal(ends, 1)
      }
    }),
  )
})

test('content in pieces of one byte takes little more memory than in one', () => {
  const held = new HeldContent()
  for (let i = 0; i < 65_536; i++) held.add(Buffer.from('x'), 0, 1)
  let chunks = 0
  held.sendTo({ sendOwned: () => chunks++ } as never, false)
  ok(chunks <= 18, `${chunks} buffers`)
  ok(sent(held).memory <= 2 * 65_536, `${sent(held).memory} bytes`)
})
