import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { TimerWheel, WheelNode } from './timer-wheel.ts'

/** The obvious twin: a list of deadlines, searched from end to end. */
class NaiveTimers {
  readonly pending = new Map<number, number>()

  /** Names due at `now`, in the order of their ticks. */
  due(now: number): number[] {
    return [...this.pending].filter(([, deadline]) => Math.ceil(deadline) <= Math.floor(now)).map(([name]) => name)
  }
}

type Step =
  | { readonly kind: 'set'; readonly node: number; readonly delay: number }
  | { readonly kind: 'clear'; readonly node: number }
  | { readonly kind: 'advance'; readonly by: number }
  | { readonly kind: 'advance to next' }

// Every level of the wheel, its edges, and what lies beyond its horizon of 2^32 ms.
const delay = fc.oneof(
  fc.double({ min: -5, max: 600, noNaN: true }),
  fc.integer({ min: -10, max: 300 }),
  fc.integer({ min: 250, max: 66_000 }),
  fc.integer({ min: 65_000, max: 20_000_000 }),
  fc.integer({ min: 16_000_000, max: 2 ** 33 }),
  fc.constantFrom(0, 255, 256, 257, 65_535, 65_536, 65_537, 2 ** 24 - 1, 2 ** 24, 2 ** 32 - 1, 2 ** 32, 2 ** 40, Infinity),
)
const node = fc.nat({ max: 11 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('set' as const), node, delay }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const), node }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('advance' as const), by: delay.filter((by) => by >= 0 && by < 2 ** 34) }),
  },
  { weight: 3, arbitrary: fc.constant({ kind: 'advance to next' as const }) },
)

/** What an expiring node does besides: sets or clears another (or itself). */
type Reaction = { readonly set: number; readonly delay: number } | { readonly clear: number }
const reaction: fc.Arbitrary<Reaction | undefined> = fc.option(
  fc.oneof(fc.record({ set: node, delay: delay.filter((ms) => ms >= 1) }), fc.record({ clear: node })),
  { nil: undefined },
)

test('the wheel fires what a naive list of timers fires, whatever is set and cleared, also inside expire', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 2 ** 34, noNaN: true }),
      fc.array(step, { maxLength: 60 }),
      fc.array(reaction, { minLength: 12, maxLength: 12 }),
      (start, steps, reactions) => {
        const { model, wheel, act, followNext } = twins(start, reactions)
        for (const action of steps) {
          act(action)
          assert.equal(wheel.size, model.pending.size)
        }
        followNext()
        assert.equal(model.pending.size, 0)
        assert.equal(wheel.size, 0)
        assert.equal(wheel.next(), Infinity)
      },
    ),
    { numRuns: 1500 },
  )
})

interface Twins {
  readonly model: NaiveTimers
  readonly wheel: TimerWheel
  act(step: Step): void
  /** Goes from `next` to `next` until nothing is armed. */
  followNext(): void
}

function twins(start: number, reactions: (Reaction | undefined)[]): Twins {
  let now = start
  let reacting = true
  const wheel = new TimerWheel(now)
  const model = new NaiveTimers()
  /** Armed before the advance that runs now. */
  let armedBefore = new Set<number>()
  let firedTicks: number[] = []
  const set = (name: number, deadline: number): void => {
    wheel.set(nodes[name] as WheelNode, deadline)
    armedBefore.delete(name)
    if (deadline === Infinity) model.pending.delete(name)
    else model.pending.set(name, deadline)
  }
  const clear = (name: number): void => {
    wheel.clear(nodes[name] as WheelNode)
    model.pending.delete(name)
  }
  const expire = (name: number): void => {
    const deadline = model.pending.get(name)
    assert.ok(deadline !== undefined, `node ${name} fired without being armed`)
    assert.ok(deadline <= now, `node ${name} fired at ${now}, early for ${deadline}`)
    model.pending.delete(name)
    if (armedBefore.has(name)) firedTicks.push(Math.ceil(deadline))
    const react = reacting ? reactions[name] : undefined
    if (react === undefined) return
    if ('set' in react) set(react.set, now + react.delay)
    else clear(react.clear)
  }
  const nodes = Array.from({ length: 12 }, (_, name) => new WheelNode(() => expire(name)))
  const advance = (to: number): void => {
    const before = Math.floor(now)
    now = to
    armedBefore = new Set(model.pending.keys())
    firedTicks = []
    wheel.advance(now)
    assert.deepEqual(model.due(now), [], 'everything due has fired')
    // What was overdue before has no tick of its own left.
    const ticks = firedTicks.map((tick) => Math.max(tick, before))
    assert.deepEqual(
      ticks,
      ticks.toSorted((a, b) => a - b),
      'in the order of their ticks',
    )
  }
  const advanceToNext = (): void => {
    const next = wheel.next()
    const first = Math.min(...model.pending.values())
    assert.ok(next <= Math.max(Math.ceil(first), Math.floor(now)), `next() is ${next}, but the first deadline is ${first}`)
    if (next < Infinity) advance(Math.max(now, next))
  }
  return {
    model,
    wheel,
    act: (action) => {
      if (action.kind === 'set') set(action.node, now + action.delay)
      else if (action.kind === 'clear') clear(action.node)
      else if (action.kind === 'advance') advance(now + action.by)
      else advanceToNext()
    },
    followNext: () => {
      reacting = false
      for (let turns = 0; wheel.size > 0; turns++) {
        assert.ok(turns < 4000, 'next() makes progress')
        advanceToNext()
      }
    },
  }
}

test('nodes of one tick fire in the order they were set; earlier ticks first', () => {
  const wheel = new TimerWheel(0)
  const order: string[] = []
  const arm = (name: string, deadline: number): void => wheel.set(new WheelNode(() => order.push(name)), deadline)
  arm('c', 300)
  arm('a', 100)
  arm('d', 300)
  arm('b', 100)
  arm('e', 70_000)
  wheel.advance(100_000)
  assert.deepEqual(order, ['a', 'b', 'c', 'd', 'e'])
})

test('next is exact for what was set within 256 ms of its deadline', () => {
  const wheel = new TimerWheel(1000.7)
  wheel.set(new WheelNode(() => {}), 1000.7 + 200)
  assert.equal(wheel.next(), 1201)
})

test('a fractional deadline never fires early', () => {
  const wheel = new TimerWheel(0)
  let fired = 0
  wheel.set(new WheelNode(() => fired++), 10.3)
  wheel.advance(10.9)
  assert.equal(fired, 0)
  wheel.advance(11)
  assert.equal(fired, 1)
})

test('a node that sets itself anew for now fires in the next advance, not in a loop', () => {
  const wheel = new TimerWheel(0)
  let fired = 0
  const node = new WheelNode(() => {
    fired++
    wheel.set(node, 5)
  })
  wheel.set(node, 5)
  wheel.advance(5)
  assert.equal(fired, 1)
  assert.equal(wheel.size, 1)
  wheel.advance(5)
  assert.equal(fired, 2)
  wheel.advance(6)
  assert.equal(fired, 3)
})

test('an expiry may clear another node that is due as well', () => {
  const wheel = new TimerWheel(0)
  const fired: string[] = []
  const second = new WheelNode(() => fired.push('second'))
  const first = new WheelNode(() => {
    fired.push('first')
    wheel.clear(second)
  })
  wheel.set(first, 7)
  wheel.set(second, 7)
  wheel.advance(10)
  assert.deepEqual(fired, ['first'])
  assert.equal(wheel.size, 0)
  assert.equal(wheel.next(), Infinity)
})

test('an expiry that throws loses no other node', () => {
  const wheel = new TimerWheel(0)
  const fired: number[] = []
  for (let i = 0; i < 4; i++)
    wheel.set(
      new WheelNode(() => {
        fired.push(i)
        if (i === 1) throw new Error('one expiry fails')
      }),
      3,
    )
  assert.throws(() => wheel.advance(5), /one expiry fails/)
  assert.ok(wheel.next() <= 5)
  wheel.advance(5)
  assert.deepEqual(fired, [0, 1, 2, 3])
  assert.equal(wheel.size, 0)
})

test('set on an armed node moves it, and Infinity clears it', () => {
  const wheel = new TimerWheel(0)
  let fired = 0
  const node = new WheelNode(() => fired++)
  wheel.set(node, 10)
  wheel.set(node, 20)
  assert.equal(wheel.size, 1)
  wheel.advance(15)
  assert.equal(fired, 0)
  wheel.set(node, Infinity)
  assert.equal(wheel.size, 0)
  wheel.clear(node)
  wheel.advance(30)
  assert.equal(fired, 0)
})

test('the cost of set and clear does not grow with the number of nodes', () => {
  const cost = (armed: number): number => {
    const wheel = new TimerWheel(0)
    for (let i = 0; i < armed; i++) wheel.set(new WheelNode(() => {}), 1000 + (i % 5000))
    const node = new WheelNode(() => {})
    let best = Infinity
    for (let round = 0; round < 7; round++) {
      const begin = performance.now()
      for (let i = 0; i < 20_000; i++) {
        wheel.set(node, 2000 + (i & 1023))
        wheel.clear(node)
      }
      best = Math.min(best, performance.now() - begin)
    }
    return best
  }
  cost(100)
  const few = cost(100)
  const many = cost(100_000)
  assert.ok(many < few * 8 + 5, `${few} ms with 100 armed, ${many} ms with 100,000`)
})
