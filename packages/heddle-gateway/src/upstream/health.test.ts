import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { Health, Outage } from './health.ts'

const ejection = { consecutiveFailures: 3, baseTime: 1_000, maxTime: 4_000, maxShare: 0.5 }

function pairOf(options: Partial<typeof ejection> = {}): { outage: Outage; a: Health; b: Health } {
  const outage = new Outage({ ...ejection, ...options })
  outage.members = 2
  return { outage, a: new Health(outage), b: new Health(outage) }
}

function failTimes(health: Health, times: number, now = 0): void {
  for (let i = 0; i < times; i++) health.fail(now, false, -1)
}

test('so many failures in a row take an endpoint out; a success in between starts the count anew', () => {
  const { a } = pairOf()
  failTimes(a, 2)
  equal(a.succeed(), 2)
  failTimes(a, 2)
  equal(a.isOut, false)
  failTimes(a, 1)
  equal(a.isOut, true)
  equal(a.isUsable(999), false)
  equal(a.ejections, 1)
})

test('a trial at a time; its success brings the endpoint back, its failure doubles the time', () => {
  const { a, outage } = pairOf()
  failTimes(a, 3, 0)
  const times: number[] = []
  let now = 0
  for (let i = 0; i < 4; i++) {
    times.push(a.outUntil - now)
    now = a.outUntil
    equal(a.isUsable(now - 1), false)
    equal(a.isUsable(now), true)
    equal(a.startAttempt(now), true)
    equal(a.isUsable(now), false, 'one trial is enough')
    equal(a.startAttempt(now), false)
    a.fail(now, true, -1)
  }
  deepEqual(times, [1_000, 2_000, 4_000, 4_000])
  equal(outage.out, 1)
  now = a.outUntil
  a.startAttempt(now)
  a.succeed()
  equal(a.isOut, false)
  equal(outage.out, 0)
  failTimes(a, 3, now)
  equal(a.outUntil, now + 1_000, 'after a success the time starts at its base')
})

test('attempts begun before the ejection neither prolong it nor count as the trial', () => {
  const { a } = pairOf()
  failTimes(a, 3, 0)
  failTimes(a, 5, 10)
  equal(a.outUntil, 1_000)
  equal(a.startAttempt(1_000), true)
  a.fail(1_001, false, -1)
  a.endUndecided(false)
  equal(a.isUsable(1_001), false, 'the trial is still on')
  a.endUndecided(true)
  equal(a.isUsable(1_001), true, 'a trial that showed nothing is repeated')
})

test('never more than the share is out: the last ones are used whatever their state', () => {
  const { a, b, outage } = pairOf()
  failTimes(a, 3)
  failTimes(b, 10)
  equal(a.isOut, true)
  equal(b.isOut, false)
  a.startAttempt(1_000)
  a.succeed()
  failTimes(b, 1, 1_000)
  equal(b.isOut, true, 'there is room now')
  equal(outage.out, 1)
  const alone = new Outage(ejection)
  alone.members = 1
  const only = new Health(alone)
  failTimes(only, 100)
  equal(only.isOut, false)
})

test('consecutiveFailures 0 turns ejection off, and the judgement', () => {
  const { a } = pairOf({ consecutiveFailures: 0 })
  failTimes(a, 1_000)
  equal(a.isOut, false)
  equal(a.isFailing(0), false)
})

test('who fails so often is failing, also where the share keeps it in, until it succeeds', () => {
  const { a, b } = pairOf()
  failTimes(a, 3)
  failTimes(b, 2)
  equal(a.isFailing(0), true, 'it is out')
  equal(b.isFailing(0), false)
  failTimes(b, 1)
  equal(b.isOut, false)
  equal(b.isFailing(0), true, 'it is in')
  equal(b.isAnswering(0), false)
  b.succeed()
  equal(b.isFailing(0), false)
  equal(b.isAnswering(0), true)
  const { a: kept } = pairOf({ maxShare: 0 })
  failTimes(kept, 3)
  equal(kept.isOut, false)
  equal(kept.isFailing(0), true)
})

test('failures that nobody has repeated for maxTime are forgotten until the next one', () => {
  const { a, b } = pairOf()
  failTimes(a, 3, 100)
  failTimes(b, 3, 100)
  for (const health of [a, b]) {
    equal(health.isFailing(4_099), true)
    equal(health.isFailing(4_100), false)
  }
  equal(b.recentFailures(4_100), 0)
  b.fail(5_000, false, -1)
  equal(b.isFailing(5_000), true, 'one more is enough')
  equal(a.startAttempt(6_000), true)
  equal(a.isFailing(6_000), true, 'what it was is not over while it is on trial')
  a.succeed()
  equal(a.isFailing(6_000), false)
})

test('who answers is one whose last attempt did, and not long ago', () => {
  const { a } = pairOf()
  equal(a.isAnswering(0), false, 'nobody asked it yet')
  a.startAttempt(100)
  equal(a.isAnswering(100), false, 'nor has it answered')
  a.succeed()
  equal(a.isAnswering(4_099), true)
  equal(a.isAnswering(4_100), false)
  a.startAttempt(5_000)
  equal(a.isAnswering(5_000), true)
  a.fail(5_000, false, -1)
  equal(a.isAnswering(5_000), false)
})

test('an endpoint that breaks every response off is taken out although it sends heads', () => {
  const { a } = pairOf()
  for (let i = 0; i < 3; i++) {
    const earlier = a.succeed()
    a.fail(0, false, earlier)
  }
  equal(a.isOut, true)
})

test('who leaves the cluster makes room', () => {
  const { a, outage } = pairOf()
  failTimes(a, 3)
  a.leave()
  equal(outage.out, 0)
  equal(a.isUsable(0), true)
})

test('a trial that shows nothing for baseTime leaves the endpoint to another', () => {
  const { a, outage } = pairOf()
  failTimes(a, 3)
  const start = a.outUntil
  equal(a.startAttempt(start), true)
  const end = start + outage.config.baseTime
  equal(a.isUsable(end - 1), false)
  equal(a.startAttempt(end - 1), false)
  equal(a.isUsable(end), true)
  equal(a.startAttempt(end), true, 'the next trial')
  equal(a.isUsable(end), false)
  a.succeed()
  equal(a.isOut, false)
})
