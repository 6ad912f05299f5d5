import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { World } from 'heddle/testing'
import { DeadlineQueue, type Waiting } from './deadlines.ts'

class Guest implements Waiting {
  deadlineQueue: DeadlineQueue | undefined
  deadline = 0
  before: Waiting | undefined
  after: Waiting | undefined
  readonly name: string
  readonly told: string[]
  readonly action: (() => void) | undefined

  constructor(name: string, told: string[], action?: () => void) {
    this.name = name
    this.told = told
    this.action = action
  }

  onDeadline(now: number): void {
    this.told.push(`${this.name} ${now}`)
    this.action?.()
  }
}

test('everyone is told once, when their time is up and not before', () => {
  const world = new World({ start: 1_000 })
  const queue = new DeadlineQueue(100, world)
  const told: string[] = []
  queue.add(new Guest('a', told))
  world.advance(30)
  queue.add(new Guest('b', told))
  world.advance(69)
  deepEqual(told, [])
  world.advance(1)
  deepEqual(told, ['a 1100'])
  equal(queue.length, 1)
  world.advance(30)
  deepEqual(told, ['a 1100', 'b 1130'])
  equal(queue.length, 0)
  equal(world.armed, 0)
})

test('who left is not told, wherever they stood, and nothing stays armed', () => {
  const world = new World({ start: 1_000 })
  const queue = new DeadlineQueue(100, world)
  const told: string[] = []
  const guests = ['a', 'b', 'c', 'd', 'e'].map((name) => new Guest(name, told))
  for (const guest of guests) queue.add(guest)
  for (const i of [0, 2, 4]) queue.remove(guests[i] as Guest)
  equal(queue.length, 2)
  world.advance(100)
  deepEqual(told, ['b 1100', 'd 1100'])
  queue.add(guests[0] as Guest)
  queue.remove(guests[0] as Guest)
  equal(world.armed, 0)
  equal(guests[0]?.deadlineQueue, undefined)
})

test('the alarm of one who left rings for the next one, early and harmlessly', () => {
  const world = new World({ start: 1_000 })
  const queue = new DeadlineQueue(100, world)
  const told: string[] = []
  const first = new Guest('first', told)
  queue.add(first)
  world.advance(50)
  queue.add(new Guest('second', told))
  queue.remove(first)
  world.advance(99)
  deepEqual(told, [])
  world.advance(1)
  deepEqual(told, ['second 1150'])
})

test('being told may remove the next one and add oneself again', () => {
  const world = new World({ start: 1_000 })
  const queue = new DeadlineQueue(100, world)
  const told: string[] = []
  const second = new Guest('second', told)
  const again = new Guest('again', told, () => {
    if (second.deadlineQueue !== undefined) queue.remove(second)
    if (told.length < 2) queue.add(again)
  })
  queue.add(again)
  queue.add(second)
  world.advance(100)
  world.advance(100)
  deepEqual(told, ['again 1100', 'again 1200'])
  equal(world.armed, 0)
})
