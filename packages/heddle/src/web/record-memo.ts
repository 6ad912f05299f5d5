import type { Fields } from '../http/index.ts'
import { fieldsFromInit } from './header-text.ts'

/** A power of two. */
const slots = 64
/** Records with more lines, or longer values, are not kept. */
const mostPairs = 16
const longestValue = 128

/** A record of headers, and the lines it comes to. */
class Slot {
  /** What tells records that are worth keeping, because they come again, from others. */
  sum: number
  /** Its names and values as they were given. */
  pairs: readonly string[]
  fields: Fields

  constructor() {
    this.sum = -1
    this.pairs = nothing
    this.fields = nothing
  }
}

const nothing: readonly string[] = Object.freeze([])
const { hasOwnProperty } = Object.prototype
const memo = Array.from({ length: slots }, () => new Slot())
/** The slot found last. */
let last = new Slot()

/**
 * The lines of a record, such as `{ 'content-type': 'text/html' }`: most programs give the same few again and
 * again, and comparing one costs less than checking its names and values. The array may be shared and is
 * not to be changed; who sends it again is recognised by it. Throws TypeError as `new Headers`.
 */
export function recordFields(record: Readonly<Record<string, string>>): Fields {
  const { pairs, fields } = last
  let at = 0
  for (const name in record) {
    // What is inherited is none of its lines. This way of asking costs nothing in such a loop; Object.hasOwn would double it.
    if (pairs[at] !== name || pairs[at + 1] !== record[name] || !hasOwnProperty.call(record, name)) return otherFields(record)
    at += 2
  }
  return pairs.length === at ? fields : otherFields(record)
}

/** Those of a record that is not like the one before. */
function otherFields(record: Readonly<Record<string, string>>): Fields {
  const pairs = Object.entries(record)
  const [first] = pairs
  if (first === undefined) return nothing
  const slot = memo[slotOf(first[0], first[1])] as Slot
  if (!isLike(slot.pairs, pairs)) return newFields(record, pairs, slot)
  last = slot
  return slot.fields
}

function isLike(known: readonly string[], pairs: readonly [string, string][]): boolean {
  if (known.length !== pairs.length * 2) return false
  for (let i = 0; i < pairs.length; i++) {
    const [name, value] = pairs[i] as [string, string]
    if (known[i * 2] !== name || known[i * 2 + 1] !== value) return false
  }
  return true
}

function slotOf(name: string, value: unknown): number {
  return (name.length * 31 + (typeof value === 'string' ? value.length : 0)) & (slots - 1)
}

function newFields(record: Readonly<Record<string, string>>, pairs: readonly [string, string][], slot: Slot): Fields {
  const fields = fieldsFromInit(record, 'constructor')
  if (pairs.length > mostPairs) return fields
  let sum = 0
  for (const [name, value] of pairs) {
    if (typeof value !== 'string' || value.length > longestValue || isSecret(name)) return fields
    sum += name.length * 31 + value.length
  }
  if (slot.sum === sum) {
    slot.pairs = pairs.flat()
    slot.fields = fields
  } else slot.sum = sum
  return fields
}

/** What belongs to one client is not kept for the next. */
function isSecret(name: string): boolean {
  return /cookie|auth/i.test(name)
}
