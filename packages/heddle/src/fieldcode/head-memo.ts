import { Head, noFields, type Fields } from '../http/index.ts'

const slots = 4
/** Blocks longer than this are not kept. */
const longest = 1_024

/** A head that was encoded before, and its block, which is true while the table is at `version`. */
class Slot {
  head: Head
  /** The fields as they were: the caller's array may change. */
  fields: Fields
  date: string
  version: number
  /** Undefined until the head came a second time. */
  block: Uint8Array | undefined
  required: number
  smallest: number

  constructor() {
    this.head = new Head('', '', '', '', '', 0, noFields)
    this.fields = noFields
    this.date = ''
    this.version = -1
    this.block = undefined
    this.required = 0
    this.smallest = 0
  }
}

/**
 * Heads a connection sends again and again, with the blocks they come to: one costs a comparison of its
 * strings and a copy. Strings are compared, not arrays, so an array that changes is not mistaken.
 */
export class HeadMemo {
  /** Of QPACK, for the block found last: its Required Insert Count … */
  required: number
  /** … and the number of the oldest entry it refers to. */
  smallest: number
  readonly #slots: readonly Slot[]
  #next: number
  /** The slot `find` missed in for want of a block. */
  #candidate: Slot | undefined

  constructor() {
    this.required = 0
    this.smallest = 0
    this.#slots = Array.from({ length: slots }, () => new Slot())
    this.#next = 0
    this.#candidate = undefined
  }

  /** The block of this head, if it was encoded with the table at `version`. Call `keep` after a miss. */
  find(head: Head, date: string, version: number): Uint8Array | undefined {
    this.#candidate = undefined
    for (let i = 0; i < slots; i++) {
      const slot = this.#slots[i] as Slot
      if (!isSame(slot, head, date)) continue
      if (slot.block !== undefined && slot.version === version) {
        this.required = slot.required
        this.smallest = slot.smallest
        return slot.block
      }
      this.#candidate = slot
      return undefined
    }
    const slot = this.#slots[this.#next] as Slot
    this.#next = (this.#next + 1) % slots
    slot.head = head
    slot.fields = head.fields
    slot.date = date
    slot.block = undefined
    return undefined
  }

  /** `buffer[start, limit)` is what the head that was just not found came to; `version`: the table did not change meanwhile. */
  keep(head: Head, buffer: Uint8Array, start: number, limit: number, version: number, required = 0, smallest = 0): void {
    const slot = this.#candidate
    if (slot === undefined || limit - start > longest) return
    slot.head = head
    slot.fields = head.fields.slice()
    slot.version = version
    slot.block = Uint8Array.prototype.slice.call(buffer, start, limit)
    slot.required = required
    slot.smallest = smallest
  }
}

function isSame(slot: Slot, head: Head, date: string): boolean {
  const known = slot.head
  if (known !== head) {
    if (known.status !== head.status || known.path !== head.path || known.method !== head.method) return false
    if (known.authority !== head.authority || known.scheme !== head.scheme || known.protocol !== head.protocol) return false
  }
  if (slot.date !== date) return false
  const a = slot.fields
  const b = head.fields
  if (a.length !== b.length) return false
  for (let i = a.length - 1; i >= 0; i--) if (a[i] !== b[i]) return false
  return true
}
