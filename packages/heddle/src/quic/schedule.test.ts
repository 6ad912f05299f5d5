import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Linked } from '../bytes/index.ts'
import { Schedule, type Scheduled } from './schedule.ts'

class Item implements Scheduled {
  previous: Linked | undefined = undefined
  next: Linked | undefined = undefined
  place = -1
  isReady = false
  readonly id: number
  urgency: number
  incremental: boolean

  constructor(id: number, urgency = 3, incremental = false) {
    this.id = id
    this.urgency = urgency
    this.incremental = incremental
  }
}

/** Serves `count` frames; each stream has as many as `lengths` says, or no end. */
function serve(schedule: Schedule<Item>, count: number, lengths = new Map<number, number>()): number[] {
  const served: number[] = []
  for (let i = 0; i < count; i++) {
    const { first } = schedule
    if (first === undefined) break
    served.push(first.id)
    const left = (lengths.get(first.id) ?? Infinity) - 1
    lengths.set(first.id, left)
    if (left === 0) schedule.remove(first)
    else schedule.rotate(first)
  }
  return served
}

function scheduleOf(...items: Item[]): Schedule<Item> {
  const schedule = new Schedule<Item>()
  for (const item of items) schedule.add(item)
  return schedule
}

test('the most urgent goes first', () => {
  const schedule = scheduleOf(new Item(0, 7), new Item(4, 0), new Item(8, 3))
  const lengths = new Map([
    [0, 1],
    [4, 2],
    [8, 1],
  ])
  assert.deepEqual(serve(schedule, 9, lengths), [4, 4, 8, 0])
  assert.equal(schedule.first, undefined)
})

test('those that do not share are served one by one, in the order of their ids, whoever was ready first', () => {
  const schedule = scheduleOf(new Item(8), new Item(0), new Item(12), new Item(4))
  const lengths = new Map([0, 4, 8, 12].map((id) => [id, 2]))
  assert.deepEqual(serve(schedule, 9, lengths), [0, 0, 4, 4, 8, 8, 12, 12])
})

test('those that share take turns, behind those that do not', () => {
  const schedule = scheduleOf(new Item(0, 3, true), new Item(4, 3, true), new Item(8), new Item(12, 3, true))
  assert.deepEqual(serve(schedule, 7, new Map([[8, 1]])), [8, 0, 4, 12, 0, 4, 12])
})

test('a stream is added and taken out once', () => {
  const item = new Item(0)
  const schedule = scheduleOf(item, item)
  schedule.remove(item)
  assert.equal(schedule.first, undefined)
  schedule.remove(item)
  schedule.rotate(item)
  assert.equal(schedule.first, undefined)
  assert.equal(item.isReady, false)
})

test('whatever comes and goes: the first is the one that a sorted list has first', () => {
  const step = fc.record({
    does: fc.constantFrom('add', 'add', 'remove', 'rotate'),
    index: fc.nat(15),
  })
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(7), fc.boolean()), { minLength: 16, maxLength: 16 }), fc.array(step), (kinds, steps) => {
      const items = kinds.map(([urgency, incremental], index) => new Item(index * 4, urgency, incremental))
      const schedule = new Schedule<Item>()
      /** In the order in which turns come. */
      let twin: Item[] = []
      for (const { does, index } of steps) {
        const item = items[index] as Item
        if (does === 'add') {
          if (!twin.includes(item)) twin.push(item)
          schedule.add(item)
        } else if (does === 'remove') {
          twin = twin.filter((other) => other !== item)
          schedule.remove(item)
        } else if (schedule.first !== undefined) {
          const { first } = schedule
          if (first.incremental) twin = [...twin.filter((other) => other !== first), first]
          schedule.rotate(first)
        }
        const sorted = twin.toSorted(
          (a, b) =>
            a.urgency - b.urgency ||
            Number(a.incremental) - Number(b.incremental) ||
            (a.incremental ? twin.indexOf(a) - twin.indexOf(b) : a.id - b.id),
        )
        assert.equal(schedule.first, sorted[0])
      }
    }),
  )
})
