import assert from 'node:assert/strict'
import { test } from 'node:test'
import { World, worldTest } from '../testing/index.ts'
import { interleave, lookupResult, type IpAddress } from './addresses.ts'
import { Race, type AttemptFailure } from './happy-eyeballs.ts'

function address(text: string): IpAddress {
  return { address: text, family: text.includes(':') ? 6 : 4 }
}

/** How each address behaves: connects or fails after so many ms, or never answers. */
type Behaviour = { readonly connects: number } | { readonly fails: number } | 'silent' | 'throws'

interface Story {
  readonly log: string[]
  readonly open: Set<string>
  outcome: { failures: readonly AttemptFailure[]; winner: string | undefined } | undefined
  readonly race: Race<string>
}

function race(world: World, behaviours: Readonly<Record<string, Behaviour>>, delay = 250): Story {
  const start = world.now()
  const story: { -readonly [K in keyof Story]?: Story[K] } & Pick<Story, 'log' | 'open' | 'outcome'> = {
    log: [],
    open: new Set(),
    outcome: undefined,
  }
  const { log, open } = story
  story.race = new Race<string>(
    Object.keys(behaviours).map(address),
    world,
    delay,
    ({ address: name }, done) => {
      const behaviour = behaviours[name] as Behaviour
      log.push(`${world.now() - start} ${name}`)
      if (behaviour === 'throws') throw new Error(`${name} throws`)
      open.add(name)
      const event =
        behaviour === 'silent'
          ? undefined
          : world.after('connects' in behaviour ? behaviour.connects : behaviour.fails, () => {
              if ('connects' in behaviour) return done(undefined, name)
              open.delete(name)
              done(new Error(`${name} refused`), undefined)
            })
      return {
        cancel: () => {
          event?.cancel()
          open.delete(name)
        },
      }
    },
    (failures, winner) => {
      assert.equal(story.outcome, undefined, 'told once')
      log.push(`${world.now() - start} ${winner === undefined ? 'lost' : `won by ${winner}`}`)
      story.outcome = { failures, winner }
    },
  )
  return story as Story
}

function run(behaviours: Readonly<Record<string, Behaviour>>, delay?: number): Story {
  const world = new World()
  const story = race(world, behaviours, delay)
  story.race.start()
  world.advance(60_000)
  assert.equal(world.armed, 0)
  return story
}

test('one address that answers', () => {
  const { log, outcome } = run({ '192.0.2.1': { connects: 30 } })
  assert.deepEqual(log, ['0 192.0.2.1', '30 won by 192.0.2.1'])
  assert.deepEqual(outcome?.failures, [])
})

test('a silent first address costs 250 ms, and keeps running meanwhile', () => {
  const { log, open } = run({ '2001:db8::1': 'silent', '192.0.2.1': { connects: 40 }, '2001:db8::2': { connects: 1 } })
  assert.deepEqual(log, ['0 2001:db8::1', '250 192.0.2.1', '290 won by 192.0.2.1'])
  assert.deepEqual([...open], ['192.0.2.1'], 'losers are cancelled')
})

test('a slow first address may still win', () => {
  const { log } = run({ '2001:db8::1': { connects: 280 }, '192.0.2.1': { connects: 100 } })
  assert.deepEqual(log, ['0 2001:db8::1', '250 192.0.2.1', '280 won by 2001:db8::1'])
})

test('a failure starts the next attempt at once, and the delay counts from there', () => {
  const { log, outcome } = run({ '192.0.2.1': { fails: 20 }, '192.0.2.2': 'silent', '192.0.2.3': { connects: 5 } })
  assert.deepEqual(log, ['0 192.0.2.1', '20 192.0.2.2', '270 192.0.2.3', '275 won by 192.0.2.3'])
  assert.equal(outcome?.failures[0]?.error.message, '192.0.2.1 refused')
})

test('attempts run side by side', () => {
  const { log } = run({ '192.0.2.1': 'silent', '192.0.2.2': 'silent', '192.0.2.3': 'silent', '192.0.2.4': { connects: 1 } }, 100)
  assert.deepEqual(log, ['0 192.0.2.1', '100 192.0.2.2', '200 192.0.2.3', '300 192.0.2.4', '301 won by 192.0.2.4'])
})

test('when all fail every failure is told, in the order they failed', () => {
  const { log, outcome } = run({ '192.0.2.1': { fails: 300 }, '192.0.2.2': { fails: 10 }, '192.0.2.3': 'throws' })
  assert.deepEqual(log, ['0 192.0.2.1', '250 192.0.2.2', '260 192.0.2.3', '300 lost'])
  assert.deepEqual(
    outcome?.failures.map(({ error }) => error.message),
    ['192.0.2.2 refused', '192.0.2.3 throws', '192.0.2.1 refused'],
  )
})

test('attempts that throw at once do not stop the rest', () => {
  const { outcome } = run({ '192.0.2.1': 'throws', '192.0.2.2': 'throws', '192.0.2.3': { connects: 1 } })
  assert.equal(outcome?.winner, '192.0.2.3')
})

test('no address at all is a loss', () => {
  const { outcome } = run({})
  assert.deepEqual(outcome, { failures: [], winner: undefined })
})

worldTest('cancelled at any moment it leaves nothing behind and tells nothing', { seeds: 50 }, (world) => {
  const { random } = world
  const behaviours: Record<string, Behaviour> = {}
  for (let i = 1; i <= 6; i++) {
    const ms = random.integer(0, 600)
    behaviours[`192.0.2.${i}`] = random.chance(0.2) ? 'silent' : random.chance(0.7) ? { fails: ms } : { connects: ms }
  }
  const story = race(world, behaviours)
  story.race.start()
  world.advance(random.integer(0, 1000))
  const before = story.outcome
  const won = before?.winner
  story.race.cancel()
  const { length } = story.log
  world.advance(60_000)
  assert.equal(story.log.length, length)
  assert.equal(story.outcome, before)
  assert.equal(world.armed, 0)
  assert.deepEqual([...story.open], won === undefined ? [] : [won])
})

test('families take turns, beginning with the first one; duplicates and nonsense are dropped', () => {
  const found = lookupResult([
    { address: '2001:db8::1', family: 6 },
    { address: '2001:db8::2', family: 6 },
    { address: '192.0.2.1', family: 4 },
    { address: '2001:db8::3', family: 6 },
    { address: '192.0.2.1', family: 4 },
    { address: 'nonsense', family: 4 },
  ])
  assert.deepEqual(
    interleave(found).map((one) => one.address),
    ['2001:db8::1', '192.0.2.1', '2001:db8::2', '2001:db8::3'],
  )
  assert.deepEqual(interleave([]), [])
  assert.deepEqual(lookupResult('192.0.2.9'), [{ address: '192.0.2.9', family: 4 }])
  assert.deepEqual(lookupResult(undefined), [])
})
