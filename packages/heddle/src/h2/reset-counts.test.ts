import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ResetCounts } from './reset-counts.ts'

test('resets are counted by the name of their code, and codes nobody knows together', () => {
  const counts = new ResetCounts()
  counts.countSent(0x8)
  counts.countSent(0x8)
  counts.countReceived(0x0)
  counts.countReceived(0xe)
  counts.countReceived(0xffff_ffff)
  assert.deepEqual(counts.sent, { CANCEL: 2 })
  assert.deepEqual(counts.received, { NO_ERROR: 1, unknown: 2 })
})
