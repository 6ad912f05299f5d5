import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { makePlan } from './make-plan.ts'
import { limitsOf, type GeneratorFacts } from './saturation.ts'

const url = 'http://localhost/'
const idle: GeneratorFacts = { cpu: 0.3, utilization: 0.5, loopDelay: { p99: 2 }, lateness: null }
const closed = makePlan({ url })
const open = makePlan({ url, rate: 10 })

test('a generator that has time to spare has no limits', () => {
  deepEqual(limitsOf(closed, idle), [])
  deepEqual(limitsOf(open, { ...idle, utilization: 1, cpu: 1, lateness: { p99: 0.1 } }), [], 'spinning is no work')
})

test('a busy thread is one; a machine that others use is told', () => {
  deepEqual(limitsOf(closed, { ...idle, utilization: 0.97, cpu: 0.96 }), ['its thread was busy 97% of the time'])
  deepEqual(limitsOf({ ...closed, threads: 2 }, { ...idle, utilization: 0.97, cpu: 1.2 }), [
    'its busiest thread was busy 97% of the time',
    'it got only 1.20 of the 2 cores it would have used: others were using the machine',
  ])
  deepEqual(limitsOf({ ...open, pacing: 'timer' }, { ...idle, utilization: 0.97, cpu: 0.96 }), ['its thread was busy 97% of the time'])
})

test('so is being late', () => {
  deepEqual(limitsOf(open, { ...idle, lateness: { p99: 12 } }), ['it noticed that requests were due up to 12 ms late (p99)'])
  deepEqual(limitsOf(open, { cpu: 0.5, utilization: 1, loopDelay: { p99: 1 }, lateness: { p99: 12 } }), [
    'it noticed that requests were due up to 12 ms late (p99)',
    'it got only 0.50 of the core it would have used: others were using the machine',
  ])
  deepEqual(limitsOf(closed, { ...idle, loopDelay: { p99: 30 } }), ['its event loop was up to 30 ms late (p99)'])
})

test('so is asking HTTP/1.1 for what it has not', () => {
  const plan = makePlan({ url: 'https://localhost/', streams: 10 })
  deepEqual(limitsOf(plan, idle, 0), [])
  deepEqual(limitsOf(plan, idle, 5), [
    'the server chose HTTP/1.1, which has one request at a time on a connection: of 10 the others waited here',
  ])
})
