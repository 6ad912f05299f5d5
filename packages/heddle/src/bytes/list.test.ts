import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { List, type Linked } from './list.ts'

class Node implements Linked {
  previous: Linked | undefined = undefined
  next: Linked | undefined = undefined
  readonly name: number
  constructor(name: number) {
    this.name = name
  }
}

function forwards(list: List<Node>): number[] {
  const names: number[] = []
  for (let node = list.first; node !== undefined; node = node.next as Node | undefined) names.push(node.name)
  return names
}

function backwards(list: List<Node>): number[] {
  const names: number[] = []
  for (let node = list.last; node !== undefined; node = node.previous as Node | undefined) names.unshift(node.name)
  return names
}

test('a list behaves as an array does', () => {
  const action = fc.oneof(
    fc.constant('append' as const),
    fc.constant('shift' as const),
    fc.constant('pop' as const),
    fc.nat({ max: 30 }), // remove the node at this place
  )
  fc.assert(
    fc.property(fc.array(action, { maxLength: 80 }), (actions) => {
      const list = new List<Node>()
      const model: Node[] = []
      let name = 0
      for (const act of actions) {
        if (act === 'append') {
          const node = new Node(name++)
          list.append(node)
          model.push(node)
        } else if (act === 'shift') {
          assert.equal(list.shift(), model.shift())
        } else if (act === 'pop') {
          assert.equal(list.pop(), model.pop())
        } else if (model.length > 0) {
          const [node] = model.splice(act % model.length, 1) as [Node]
          list.remove(node)
          assert.equal(node.next, undefined)
          assert.equal(node.previous, undefined)
          // A node that left can come back.
          if (act % 3 === 0) {
            list.append(node)
            model.push(node)
          }
        }
        const names = model.map((node) => node.name)
        assert.equal(list.length, names.length)
        assert.deepEqual(forwards(list), names)
        assert.deepEqual(backwards(list), names)
      }
    }),
  )
})

test('a node goes in front of another', () => {
  const list = new List<Node>()
  const [one, two, three, four] = [new Node(1), new Node(2), new Node(3), new Node(4)]
  list.append(three)
  list.insertBefore(one, three)
  list.insertBefore(two, three)
  list.append(four)
  assert.deepEqual(forwards(list), [1, 2, 3, 4])
  assert.deepEqual(backwards(list), [1, 2, 3, 4])
  assert.equal(list.length, 4)
  list.remove(two)
  list.insertBefore(two, one)
  assert.deepEqual(forwards(list), [2, 1, 3, 4])
  assert.deepEqual(backwards(list), [2, 1, 3, 4])
})
