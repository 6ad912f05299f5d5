import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ecn, EcnValidation } from './ecn.ts'
import { Space } from './space.ts'

const { application, handshake } = Space

function sendMarked(ecn: EcnValidation, count: number): void {
  for (let i = 0; i < count; i++) ecn.onSent(application)
}

test('ten packets are marked, then none until marks are known to get through (RFC 9000 §A.4)', () => {
  const ecn = new EcnValidation(true)
  for (let i = 0; i < 10; i++) {
    assert.equal(ecn.mark, Ecn.ect0)
    ecn.onSent(application)
  }
  assert.deepEqual([ecn.state, ecn.mark], ['unknown', Ecn.none])
  assert.equal(ecn.onAcked(application, 5, { ect0: 5, ect1: 0, ce: 0 }, true), false)
  assert.deepEqual([ecn.state, ecn.mark], ['capable', Ecn.ect0])
})

test('who does not want marks sends none', () => {
  const ecn = new EcnValidation(false)
  assert.equal(ecn.mark, Ecn.none)
  ecn.restart()
  assert.equal(ecn.mark, Ecn.none)
})

test('CE is congestion each time it rises', () => {
  const ecn = new EcnValidation(true)
  sendMarked(ecn, 10)
  assert.equal(ecn.onAcked(application, 3, { ect0: 2, ect1: 0, ce: 1 }, true), true)
  assert.equal(ecn.onAcked(application, 2, { ect0: 4, ect1: 0, ce: 1 }, true), false)
  assert.equal(ecn.onAcked(application, 2, { ect0: 4, ect1: 0, ce: 3 }, true), true)
  assert.equal(ecn.state, 'capable')
})

const failures: [string, number, { ect0: number; ect1: number; ce: number } | undefined][] = [
  ['marked packets are acknowledged without counts', 1, undefined],
  ['fewer marks than marked packets', 3, { ect0: 2, ect1: 0, ce: 0 }],
  ['more marks than were sent', 1, { ect0: 11, ect1: 0, ce: 0 }],
  ['more CE than marks were sent', 1, { ect0: 0, ect1: 0, ce: 11 }],
  ['a mark that is never sent', 1, { ect0: 1, ect1: 1, ce: 0 }],
]
for (const [what, marked, counts] of failures) {
  test(`marks are given up: ${what} (RFC 9000 §13.4.2.1)`, () => {
    const ecn = new EcnValidation(true)
    sendMarked(ecn, 10)
    assert.equal(ecn.onAcked(application, marked, counts, true), false)
    assert.deepEqual([ecn.state, ecn.mark], ['failed', Ecn.none])
    assert.equal(ecn.onAcked(application, 1, { ect0: 1, ect1: 0, ce: 1 }, true), false)
  })
}

test('counts that fall are wrong', () => {
  const ecn = new EcnValidation(true)
  sendMarked(ecn, 10)
  ecn.onAcked(application, 4, { ect0: 4, ect1: 0, ce: 0 }, true)
  ecn.onAcked(application, 0, { ect0: 3, ect1: 0, ce: 0 }, true)
  assert.equal(ecn.state, 'failed')
})

test('an ACK frame out of order proves nothing, and counts are by space', () => {
  const ecn = new EcnValidation(true)
  sendMarked(ecn, 9)
  ecn.onSent(handshake)
  ecn.onAcked(application, 4, { ect0: 4, ect1: 0, ce: 0 }, true)
  ecn.onAcked(application, 2, { ect0: 2, ect1: 0, ce: 0 }, false)
  ecn.onAcked(application, 1, undefined, false)
  ecn.onAcked(handshake, 1, { ect0: 1, ect1: 0, ce: 0 }, true)
  assert.equal(ecn.state, 'capable')
})

test('marks are given up if no marked packet gets through, and not tried longer if timeouts follow each other', () => {
  const early = new EcnValidation(true)
  sendMarked(early, 2)
  early.onLost(2)
  assert.equal(early.state, 'testing', 'two losses are no proof')

  const ecn = new EcnValidation(true)
  sendMarked(ecn, 10)
  ecn.onLost(9)
  assert.equal(ecn.state, 'unknown')
  ecn.onLost(1)
  assert.equal(ecn.state, 'failed')

  const silent = new EcnValidation(true)
  sendMarked(silent, 2)
  silent.onProbeTimeout(1)
  assert.equal(silent.mark, Ecn.ect0)
  silent.onProbeTimeout(2)
  assert.equal(silent.mark, Ecn.none)
  silent.restart()
  assert.equal(silent.mark, Ecn.ect0)
})
