/** Something that can be told that time is up for all. */
export interface Underway {
  /** Owned by the list it stands in. */
  previous: Underway | undefined
  next: Underway | undefined
  /** Says what it still has to say, and may leave its list. */
  onShutdown(): void
}

/** The requests that are under way: in and out cost two links, and nothing is allocated. */
export class UnderwayList {
  length: number
  #first: Underway | undefined
  #last: Underway | undefined

  constructor() {
    this.length = 0
    this.#first = undefined
    this.#last = undefined
  }

  /** `request` must stand in no list. */
  add(request: Underway): void {
    const last = this.#last
    request.previous = last
    if (last === undefined) this.#first = request
    else last.next = request
    this.#last = request
    this.length++
  }

  /** `request` must stand in this list. */
  remove(request: Underway): void {
    const { previous, next } = request
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    request.previous = undefined
    request.next = undefined
    this.length--
  }

  /** Tells all that stand in it now, in the order they came. */
  shutdown(): void {
    const all: Underway[] = []
    for (let request = this.#first; request !== undefined; request = request.next) all.push(request)
    for (const request of all) request.onShutdown()
  }
}
