import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SentValue } from './sent-value.ts'

function stateOf(value: SentValue): string {
  return [value.isSet && 'set', value.isDue && 'due', value.isInFlight && 'in flight', value.isReceived && 'received']
    .filter(Boolean)
    .join(', ')
}

test('a value is due, in flight, received', () => {
  const value = new SentValue()
  assert.equal(stateOf(value), '')
  value.set()
  assert.equal(stateOf(value), 'set, due')
  value.onSent(0)
  assert.equal(stateOf(value), 'set, in flight')
  value.onAckedLatest(0)
  assert.equal(stateOf(value), 'set, received')
  value.clear()
  assert.equal(stateOf(value), '')
})

test('a lost value is due again, unless a later packet has it', () => {
  const value = new SentValue()
  value.set()
  value.onSent(3)
  value.onLost(3)
  assert.ok(value.isDue)
  value.onSent(5)
  value.onSent(9)
  value.onLost(5)
  assert.ok(value.isInFlight)
  value.onLost(9)
  assert.ok(value.isDue)
})

test('a value that changed is not received with its old self', () => {
  const value = new SentValue()
  value.set()
  value.onSent(3)
  value.set()
  value.onAckedLatest(3)
  assert.ok(value.isDue)
  value.onSent(4)
  value.onAckedLatest(3)
  assert.ok(value.isInFlight)
})

test('one that never changes is received with any packet that had it', () => {
  const value = new SentValue()
  value.set()
  value.onSent(3)
  value.onSent(7)
  value.onAcked()
  assert.ok(value.isReceived)
  value.onLost(7)
  assert.ok(value.isReceived)
  const cleared = new SentValue()
  cleared.onAcked()
  assert.equal(stateOf(cleared), '')
})
