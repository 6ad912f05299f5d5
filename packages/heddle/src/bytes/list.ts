/** A node that can stand in one {@link List}. Extend it, or hold the two links yourself. */
export interface Linked {
  previous: Linked | undefined
  next: Linked | undefined
}

/**
 * An intrusive doubly linked list: append, remove and take-first touch at most two neighbours and
 * allocate nothing, however long the list is. A node stands in at most one list at a time.
 */
export class List<T extends Linked> {
  first: T | undefined
  last: T | undefined
  length: number

  constructor() {
    this.first = undefined
    this.last = undefined
    this.length = 0
  }

  /** Adds `node` at the end. `node` must not stand in a list. */
  append(node: T): void {
    node.previous = this.last
    node.next = undefined
    if (this.last === undefined) this.first = node
    else this.last.next = node
    this.last = node
    this.length++
  }

  /** Adds `node` at the start. `node` must not stand in a list. */
  prepend(node: T): void {
    node.previous = undefined
    node.next = this.first
    if (this.first === undefined) this.last = node
    else this.first.previous = node
    this.first = node
    this.length++
  }

  /** Adds `node` in front of `next`, which stands in this list. `node` must not stand in a list. */
  insertBefore(node: T, next: T): void {
    const previous = next.previous as T | undefined
    if (previous === undefined) return this.prepend(node)
    node.previous = previous
    node.next = next
    previous.next = node
    next.previous = node
    this.length++
  }

  /** Takes `node` out. `node` must stand in this list. */
  remove(node: T): void {
    const { previous, next } = node
    if (previous === undefined) this.first = next as T | undefined
    else previous.next = next
    if (next === undefined) this.last = previous as T | undefined
    else next.previous = previous
    node.previous = undefined
    node.next = undefined
    this.length--
  }

  /** Takes the first node out and returns it. */
  shift(): T | undefined {
    const { first } = this
    if (first !== undefined) this.remove(first)
    return first
  }

  /** Takes the last node out and returns it. */
  pop(): T | undefined {
    const { last } = this
    if (last !== undefined) this.remove(last)
    return last
  }
}
