import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { LiveLine } from './live-line.ts'

test('a line is written over, with the rate since the last one, and cleared', () => {
  const written: string[] = []
  const line = new LiveLine({ columns: 61, write: (text) => written.push(text) })
  const progress = { phase: 'measuring', errors: 0, inFlight: 10, backlog: 0 } as const
  line.show({ ...progress, elapsed: 500, answered: 1_000 })
  line.show({ ...progress, elapsed: 1_000, answered: 4_000, errors: 2, backlog: 12_345 })
  line.clear()
  deepEqual(written, [
    `\r${'0 s measuring · 2,000/s · 1,000 answered · 10 in flight'.padEnd(60)}`,
    `\r${'1 s measuring · 6,000/s · 4,000 answered · 2 errors · 10 in flight · 12,345 waiting'.slice(0, 60)}`,
    `\r${' '.repeat(60)}`,
    '\r',
  ])
})
