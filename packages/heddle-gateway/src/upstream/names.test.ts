import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { World } from 'heddle/testing'
import { machines, NameWatch } from './names.ts'

test('one address, or one of each family, is one machine; more are a machine each', () => {
  deepEqual(machines(['192.0.2.1']), [['192.0.2.1']])
  deepEqual(machines(['::1', '127.0.0.1']), [['::1', '127.0.0.1']])
  deepEqual(machines(['192.0.2.1', '192.0.2.2', '192.0.2.1']), [['192.0.2.1'], ['192.0.2.2']])
  deepEqual(machines(['2001:db8::1', '2001:db8::2', '192.0.2.1']), [['2001:db8::1'], ['2001:db8::2'], ['192.0.2.1']])
})

test('a name is resolved at once and again after each interval; failures and empty answers change nothing', () => {
  const world = new World()
  const answers: (Error | string[])[] = [['192.0.2.1'], new Error('SERVFAIL'), [], ['not an address'], ['192.0.2.2', 'junk']]
  const told: unknown[] = []
  const errors: unknown[] = []
  let asked = 0
  const watch = new NameWatch(
    'app.example',
    world,
    30_000,
    (host, done) => {
      equal(host, 'app.example')
      const answer = answers[asked++] ?? []
      world.after(5, () => {
        if (answer instanceof Error) done(answer, [])
        else done(undefined, answer)
      })
    },
    (addresses) => told.push(addresses),
  )
  for (let i = 0; i < 5; i++) {
    world.advance(30_005)
    errors.push(watch.error?.message)
  }
  deepEqual(told, [['192.0.2.1'], ['192.0.2.2']])
  deepEqual(errors, [undefined, 'SERVFAIL', undefined, undefined, undefined])
  watch.close()
  const before = asked
  world.advance(120_000)
  equal(asked, before)
  equal(world.armed, 0)
})

test('an answer that comes after the end is ignored, and arms nothing', () => {
  const world = new World()
  let answer: (() => void) | undefined
  const watch = new NameWatch(
    'app.example',
    world,
    1_000,
    (_host, done) => {
      answer = () => done(undefined, ['192.0.2.1'])
    },
    () => {
      throw new Error('told after the end')
    },
  )
  watch.close()
  answer?.()
  equal(world.armed, 0)
})
