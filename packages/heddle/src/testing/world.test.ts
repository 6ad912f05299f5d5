import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeCertificate } from './certificate.ts'
import { runSeeds, worldTest } from './seeds.ts'
import { alarm, World } from './world.ts'

test('events happen in the order of their instants, then of their planning; time jumps to them', () => {
  const world = new World({ start: 100 })
  const log: string[] = []
  const note = (what: string) => () => log.push(`${world.now()} ${what}`)
  world.after(5, note('second'))
  world.after(1.5, note('first'))
  world.after(5, note('third'))
  world.run()
  assert.deepEqual(log, ['101.5 first', '105 second', '105 third'])
})

test('run leaves alarms alone that nothing else leads up to; advance fires them and stops exactly', () => {
  const world = new World({ start: 0 })
  const log: number[] = []
  const node = alarm(() => log.push(world.now()))
  world.set(node, 300)
  world.run()
  assert.deepEqual([log, world.now(), world.armed], [[], 0, 1])
  world.advance(299.5)
  assert.deepEqual([log, world.now()], [[], 299.5])
  world.advance(10)
  assert.deepEqual([log, world.now(), world.armed], [[300], 309.5, 0])
})

test('an alarm fires on the way to an event behind it, never early, and not once cleared', () => {
  const world = new World({ start: 0 })
  const log: string[] = []
  world.set(
    alarm(() => log.push(`alarm ${world.now()}`)),
    10.2,
  )
  const cleared = alarm(() => log.push('cleared'))
  world.set(cleared, 5)
  world.clear(cleared)
  world.after(20, () => log.push('event'))
  world.run()
  assert.deepEqual(log, ['alarm 11', 'event'])
})

test('tasks run in order, those they add in the next phase; ticks run at the end of each step', () => {
  const world = new World()
  const log: string[] = []
  world.soon(() => {
    log.push('a')
    world.tick(() => log.push('tick of a'))
    world.soon(() => log.push('c'))
  })
  world.soon(() => log.push('b'))
  world.run()
  assert.deepEqual(log, ['a', 'tick of a', 'b', 'c'])
})

test('the seed decides whether a task or an event of this instant comes first', () => {
  const firsts = new Set<string>()
  for (let seed = 1; seed <= 20; seed++) {
    const world = new World({ seed })
    const log: string[] = []
    world.soon(() => log.push('task'))
    world.after(0, () => log.push('event'))
    world.run()
    assert.equal(log.length, 2)
    firsts.add(log[0] as string)
  }
  assert.deepEqual([...firsts].sort(), ['event', 'task'])
})

test('a cancelled event does not happen and does not keep the world busy', () => {
  const world = new World()
  let happened = false
  world
    .after(10, () => {
      happened = true
    })
    .cancel()
  assert.equal(world.run(), 0)
  assert.equal(happened, false)
})

test('settle lets promises go on between the steps', async () => {
  const world = new World({ start: 0 })
  const log: string[] = []
  const script = async (): Promise<void> => {
    for (let i = 0; i < 3; i++) {
      await world.sleep(10)
      log.push(`woken at ${world.now()}`)
    }
  }
  void script()
  await world.settle()
  assert.deepEqual(log, ['woken at 10', 'woken at 20', 'woken at 30'])
})

test('complete runs alarms too, returns the value, passes the rejection on, and waits for work outside', async () => {
  const world = new World()
  const byAlarm = new Promise<number>((resolve) =>
    world.set(
      alarm(() => resolve(world.now())),
      50_000,
    ),
  )
  assert.equal(await world.complete(byAlarm), 50_000)
  await assert.rejects(world.complete(Promise.reject(new Error('no'))), /no/)
  assert.equal(await world.complete(new Promise((resolve) => setTimeout(resolve, 5, 'real'))), 'real')
  await assert.rejects(world.complete(new Promise(() => {}), 5), /idle and the promise is still pending/)
})

test('a world that spins is stopped', () => {
  const world = new World({ seed: 12 })
  const again = (): void => {
    world.after(0, again)
  }
  again()
  assert.throws(() => world.run({ most: 100 }), /seed 12.*still busy after 100 steps/)
})

test('httpDate is the wall time in the form of RFC 9110 and moves on by the second', () => {
  const world = new World({ start: 0 })
  assert.equal(world.httpDate(), 'Thu, 01 Jan 2026 00:00:00 GMT')
  world.advance(1000)
  assert.equal(world.httpDate(), 'Thu, 01 Jan 2026 00:00:01 GMT')
  assert.equal(world.wallTime(), Date.UTC(2026, 0, 1, 0, 0, 1))
})

test('a failing seed is named in the error, with the cause kept', async () => {
  const ran: number[] = []
  await assert.rejects(
    runSeeds('story', [1, 2, 3, 4], (world) => {
      ran.push(world.seed)
      if (world.seed === 3) throw new Error('broken')
    }),
    (error: Error) => /"story" fails with seed 3 \(HEDDLE_SEED=3 replays it\): broken/.test(error.message) && error.cause instanceof Error,
  )
  assert.deepEqual(ran, [1, 2, 3])
})

worldTest('worldTest hands out worlds', { seeds: 2 }, (world) => {
  assert.equal(world.now(), 1000)
})

test('options that are none are refused: a misspelt seed would be seed 1, and no seeds no test', () => {
  assert.throws(() => new World({ sed: 7 } as never), /World: there is no option sed; did you mean seed\?/)
  assert.throws(() => new World().link({ latency: 7 } as never), /link: there is no option latency/)
  assert.throws(() => makeCertificate({ name: 'x' } as never), /makeCertificate: there is no option name; did you mean names\?/)
  assert.throws(() => worldTest('never run', { sedes: 7 } as never, () => {}), /worldTest: there is no option sedes; did you mean seeds\?/)
  const { HEDDLE_SEED, HEDDLE_SEEDS } = process.env
  delete process.env['HEDDLE_SEED']
  delete process.env['HEDDLE_SEEDS']
  try {
    assert.throws(() => worldTest('never run', { seeds: 0 }, () => {}), /0 is no number of seeds/)
    process.env['HEDDLE_SEEDS'] = 'all'
    assert.throws(() => worldTest('never run', {}, () => {}), /all is no number of seeds/)
  } finally {
    for (const [name, value] of Object.entries({ HEDDLE_SEED, HEDDLE_SEEDS })) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
})
