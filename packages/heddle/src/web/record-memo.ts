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

/**
 * The lines of a record, such as `{ 'content-type': 'text/html' }`: most programs give the same few again and
 * again, and comparing one costs less than checking its names and values. The array may be shared and is
 * not to be changed; who sends it again is recognised by it. Throws TypeError as `new Headers`.
 */
export function recordFields(record: Readonly<Record<string, string>>): Fields {
  let slot: Slot | undefined
  let at = 0
  for (const name in record) {
    const value = record[name] as string
    slot ??= memo[slotOf(name, value)] as Slot
    // What is inherited is none of its lines. This way of asking costs nothing in such a loop; Object.hasOwn would double it.
    if (slot.pairs[at] !== name || slot.pairs[at + 1] !== value || !hasOwnProperty.call(record, name)) return newFields(record, slot)
    at += 2
  }
  if (slot === undefined) return nothing
  return slot.pairs.length === at ? slot.fields : newFields(record, slot)
}

function slotOf(name: string, value: unknown): number {
  return (name.length * 31 + (typeof value === 'string' ? value.length : 0)) & (slots - 1)
}

function newFields(record: Readonly<Record<string, string>>, slot: Slot): Fields {
  const fields = fieldsFromInit(record, 'constructor')
  const pairs = Object.entries(record)
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
