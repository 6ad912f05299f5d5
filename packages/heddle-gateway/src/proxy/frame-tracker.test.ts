import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FrameTracker } from './frame-tracker.ts'

/** A frame with a payload of so many octets. */
function frame(size: number, masked: boolean, opcode = 2, fin = true): Buffer {
  const mask = masked ? 0x80 : 0
  const first = opcode | (fin ? 0x80 : 0)
  let head: Buffer
  if (size < 126) head = Buffer.from([first, mask | size])
  else if (size < 65_536) head = Buffer.from([first, mask | 126, size >> 8, size & 0xff])
  else {
    head = Buffer.alloc(10)
    head.set([first, mask | 127])
    head.writeBigUInt64BE(BigInt(size), 2)
  }
  // What is in it looks like Closes, and is not looked at.
  return Buffer.concat([head, Buffer.alloc(size + (masked ? 4 : 0), 0x88)])
}

/** Where frames end, by a tracker that gets `bytes` in `pieces` and is asked for every boundary. */
function boundaries(bytes: Buffer, pieces: readonly number[]): number[] {
  const tracker = new FrameTracker()
  const found: number[] = []
  let at = 0
  for (let i = 0; at < bytes.length; i++) {
    const limit = Math.min(bytes.length, at + (pieces[i % pieces.length] as number))
    while (at < limit) {
      at = tracker.advance(bytes, at, limit, true)
      if (tracker.atBoundary) found.push(at)
    }
  }
  return found
}

test('frames of every size, masked or not, end where they end, however the bytes come', () => {
  const sizes = fc.constantFrom(0, 1, 2, 125, 126, 127, 128, 255, 256, 65_535, 65_536, 70_000)
  const frames = fc.array(fc.tuple(sizes, fc.boolean(), fc.constantFrom(0, 1, 2, 9, 10), fc.boolean()), { minLength: 1, maxLength: 8 })
  const pieces = fc.array(fc.constantFrom(1, 2, 3, 5, 7, 100, 4_096, 100_000), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(frames, pieces, (all, cuts) => {
      const written = all.map(([size, masked, opcode, fin]) => frame(size, masked, opcode, fin))
      let end = 0
      const ends = written.map(({ length }) => (end += length))
      deepEqual(boundaries(Buffer.concat(written), cuts), ends)
    }),
    { numRuns: 60 },
  )
})

test('what passes in one go is found again at its next boundary', () => {
  const bytes = Buffer.concat([frame(10, true), frame(300, true), frame(5, true)])
  const tracker = new FrameTracker()
  equal(tracker.atBoundary, true)
  equal(tracker.advance(bytes, 0, 100, false), 100)
  equal(tracker.atBoundary, false)
  equal(tracker.advance(bytes, 100, bytes.length, true), 16 + 308)
  equal(tracker.atBoundary, true)
})

test('a Close is the last frame: what follows it is none, and moves no boundary', () => {
  const tracker = new FrameTracker()
  const bytes = Buffer.concat([frame(3, false), frame(2, false, 8), Buffer.from([0x82, 0x7f, 0xff])])
  tracker.advance(bytes, 0, 5, false)
  equal(tracker.closing, false)
  tracker.advance(bytes, 5, 8, false)
  deepEqual([tracker.closing, tracker.atBoundary], [true, false])
  tracker.advance(bytes, 8, bytes.length, false)
  deepEqual([tracker.closing, tracker.atBoundary, tracker.lost], [true, true, false])
})

test('a length that cannot be is the end of knowing', () => {
  for (const length of ['ffffffffffffffff', '8000000000000000', '0020000000000000']) {
    const tracker = new FrameTracker()
    const bytes = Buffer.from(`827f${length}0000`, 'hex')
    equal(tracker.advance(bytes, 0, bytes.length, true), bytes.length)
    deepEqual([tracker.lost, tracker.atBoundary], [true, false])
  }
  const tracker = new FrameTracker()
  tracker.advance(Buffer.from('827f001fffffffffffff', 'hex'), 0, 10, false)
  deepEqual([tracker.lost, tracker.atBoundary], [false, false])
})
