import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Alarm } from './clock.ts'
import { systemClock } from './system-clock.ts'

const clock = systemClock()
// Alarms alone do not keep a process running, and that goes for this one.
const hold = setInterval(() => {}, 1000)
after(() => clearInterval(hold))
const index = fileURLToPath(new URL('index.ts', import.meta.url))

function busy(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Runs a module of its own that imports `io`; resolves with what it printed, fails if it does not end by itself. */
async function ownProcess(source: string): Promise<string> {
  const code = `const io = await import(${JSON.stringify(index)});\n${source}`
  const args = ['--conditions=@heddle/source', '--no-warnings', '--input-type=module', '-e', code]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 20_000 })
  return stdout
}

function expiry(deadline: number): Promise<number> {
  return new Promise((resolve) => clock.set(new Alarm(() => resolve(performance.now())), deadline))
}

test('there is one clock', () => {
  assert.equal(systemClock(), clock)
})

test('now stands still within a turn and is fresh outside of it', async () => {
  const first = clock.startTurn?.() as number
  busy(3)
  assert.equal(clock.now(), first)
  assert.equal(clock.startTurn?.(), first, 'turns nest')
  clock.endTurn?.()
  assert.equal(clock.now(), first)
  clock.endTurn?.()
  assert.ok(clock.now() >= first + 3)
  for (let i = 0; i < 5; i++) {
    await sleep(2)
    const before = performance.now()
    assert.ok(clock.now() > before - 1, 'a later macrotask sees the present')
  }
})

test('alarms expire in order, never early and not much late', async () => {
  const start = clock.now()
  const delays = [30, 5, 5.5, 80, 12, 0, 300]
  const expired: { delay: number; at: number }[] = []
  await Promise.all(delays.map(async (delay) => expired.push({ delay, at: await expiry(start + delay) })))
  assert.deepEqual(
    expired.map(({ delay }) => delay),
    delays.toSorted((a, b) => a - b),
  )
  for (const { delay, at } of expired) assert.ok(at >= start + delay, `the alarm for ${delay} ms came after ${at - start}`)
  assert.ok((expired.at(-1)?.at ?? 0) < start + 10_000)
})

test('an earlier alarm overtakes the timer that is armed', async () => {
  const late = expiry(clock.now() + 10_000)
  const begin = performance.now()
  await expiry(clock.now() + 10)
  assert.ok(performance.now() - begin < 5000)
  void late
})

test('an alarm that arms itself anew keeps going', async () => {
  let count = 0
  await new Promise<void>((resolve) => {
    const alarm = new Alarm(() => {
      if (++count === 5) resolve()
      else clock.set(alarm, clock.now() + 2)
    })
    clock.set(alarm, clock.now() + 2)
  })
  assert.equal(count, 5)
})

test('a cleared alarm does not expire', async () => {
  let expired = false
  const alarm = new Alarm(() => {
    expired = true
  })
  clock.set(alarm, clock.now() + 5)
  clock.clear(alarm)
  await expiry(clock.now() + 30)
  assert.ok(!expired)
})

test('soon runs tasks in order, in one batch, after the input of the turn; those added meanwhile in the next', async () => {
  const order: string[] = []
  await new Promise<void>((resolve) => {
    setImmediate(() => order.push('immediate before'))
    clock.soon(() => {
      order.push('a')
      const now = clock.now()
      busy(2)
      assert.equal(clock.now(), now, 'a batch is one turn')
      clock.soon(() => {
        order.push('next batch')
        resolve()
      })
    })
    clock.soon(() => order.push('b'))
    setImmediate(() => order.push('immediate between'))
    process.nextTick(() => order.push('tick'))
  })
  assert.deepEqual(order, ['tick', 'immediate before', 'a', 'b', 'immediate between', 'next batch'])
})

test('httpDate is the date of now and the same string within a second', () => {
  const date = clock.httpDate()
  assert.match(date, /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/)
  assert.ok(Math.abs(Date.parse(date) - Date.now()) <= 2000)
  assert.ok(Math.abs(clock.wallTime() - Date.now()) < 1000)
})

test('httpDate moves on', async () => {
  const date = clock.httpDate()
  await expiry(clock.now() + 1010)
  assert.notEqual(clock.httpDate(), date)
})

test('alarms alone do not keep a process running', async () => {
  const out = await ownProcess(`
    const clock = io.systemClock()
    clock.set(new io.Alarm(() => console.log('expired')), clock.now() + 60_000)
    process.on('exit', () => console.log('bye'))
  `)
  assert.equal(out.trim(), 'bye')
})

test('a task or an alarm that throws takes nobody else along', async () => {
  const out = await ownProcess(`
    const clock = io.systemClock()
    process.on('uncaughtException', (error) => console.log(error.message))
    setTimeout(() => {}, 200)
    clock.soon(() => console.log('1'))
    clock.soon(() => { clock.soon(() => console.log('4')); throw new Error('2 fails') })
    clock.soon(() => { console.log('3') })
    await new Promise((resolve) => setTimeout(resolve, 20))
    const at = clock.now() + 10
    clock.set(new io.Alarm(() => { throw new Error('alarm fails') }), at)
    clock.set(new io.Alarm(() => console.log('same tick')), at)
    clock.set(new io.Alarm(() => console.log('later')), at + 20)
  `)
  assert.deepEqual(out.trim().split('\n'), ['1', '2 fails', '3', '4', 'alarm fails', 'same tick', 'later'])
})

test('a deadline beyond what a timer of Node can wait does not expire at once', async () => {
  let expired = false
  const alarm = new Alarm(() => {
    expired = true
  })
  clock.set(alarm, clock.now() + 2 ** 33)
  await sleep(20)
  assert.ok(!expired)
  clock.clear(alarm)
})
