import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BufferPool } from './buffer-pool.ts'

test('a released buffer is handed out again', () => {
  const pool = new BufferPool(1024, 4)
  const buffer = pool.acquire()
  assert.equal(buffer.length, 1024)
  assert.notEqual(pool.acquire(), buffer)
  pool.release(buffer)
  assert.equal(pool.free, 1)
  assert.equal(pool.acquire(), buffer)
  assert.equal(pool.free, 0)
})

test('no more than `most` are kept, and none of another size', () => {
  const pool = new BufferPool(16, 2)
  for (let i = 0; i < 5; i++) pool.release(Buffer.alloc(16))
  assert.equal(pool.free, 2)
  pool.acquire()
  pool.release(Buffer.alloc(17))
  assert.equal(pool.free, 1)
})

test('a buffer has its memory for itself, not a slice of a slab', () => {
  const buffer = new BufferPool(512, 1).acquire()
  assert.equal(buffer.buffer.byteLength, 512)
})
