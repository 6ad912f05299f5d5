import { noFields, type Fields } from '../http/index.ts'
import { combined, fieldName, fieldsFromInit, fieldText, sortedAndCombined, type HeadersInit } from './header-text.ts'

/** What iterating Headers gives: the types of Node's, so that one can stand for the other. */
export type HeadersEntries = ReturnType<globalThis.Headers['entries']>
/** What iterating their names gives. */
export type HeadersNames = ReturnType<globalThis.Headers['keys']>

/** Headers over `fields`, which must be valid; shared until changed. `immutable`: changes throw TypeError, as for a fetched response. */
export let headersFrom: (fields: Fields, immutable: boolean) => Headers
/** The lines of `headers` in the order they were given: what goes on the wire. Not to be changed. */
export let fieldsOf: (headers: Headers) => Fields

/**
 * The WHATWG Headers interface over one flat {@link Fields} array: making one from received fields
 * costs a small object, and the array is copied only when something is changed.
 *
 * As in Node there are no forbidden names. Unlike Node, control characters in a value throw a
 * TypeError at once (RFC 9110 §5.5), not only NUL, CR and LF.
 */
export class Headers implements Iterable<[string, string]> {
  #fields: string[]
  /** False: `#fields` is shared, copy before writing. */
  #owned: boolean
  #immutable: boolean
  /** Counts changes, for iterators that are under way. */
  #version: number

  static {
    headersFrom = (fields, immutable) => {
      const headers = new Headers()
      headers.#fields = fields as string[]
      headers.#immutable = immutable
      return headers
    }
    fieldsOf = (headers) => {
      // From now on the array is the caller's as well.
      headers.#owned = false
      return headers.#fields
    }
  }

  /** Throws TypeError for an invalid name or value. */
  constructor(init?: HeadersInit) {
    this.#fields = noFields as string[]
    this.#owned = false
    this.#immutable = false
    this.#version = 0
    if (init !== undefined) {
      this.#fields = fieldsFrom(init)
      this.#owned = !(init instanceof Headers)
    }
  }

  /** Adds a line; those of the same name stay. */
  append(name: string, value: string): void {
    const lower = fieldName(name, 'append')
    const text = fieldText(value, name, 'append')
    this.#own('append').push(lower, text)
  }

  delete(name: string): void {
    const lower = fieldName(name, 'delete')
    const fields = this.#own('delete')
    let kept = 0
    for (let i = 0; i < fields.length; i += 2) {
      if (fields[i] === lower) continue
      fields[kept] = fields[i] as string
      fields[kept + 1] = fields[i + 1] as string
      kept += 2
    }
    fields.length = kept
  }

  /** The values of `name` joined with ", " (cookies with "; "), or null. */
  get(name: string): string | null {
    return combined(this.#fields, fieldName(name, 'get'))
  }

  getSetCookie(): string[] {
    const values: string[] = []
    const fields = this.#fields
    for (let i = 0; i < fields.length; i += 2) if (fields[i] === 'set-cookie') values.push(fields[i + 1] as string)
    return values
  }

  has(name: string): boolean {
    const lower = fieldName(name, 'has')
    const fields = this.#fields
    for (let i = 0; i < fields.length; i += 2) if (fields[i] === lower) return true
    return false
  }

  /** Replaces the first line of that name and removes the others. */
  set(name: string, value: string): void {
    const lower = fieldName(name, 'set')
    const text = fieldText(value, name, 'set')
    const fields = this.#own('set')
    let kept = 0
    let done = false
    for (let i = 0; i < fields.length; i += 2) {
      if (fields[i] === lower) {
        if (done) continue
        done = true
        fields[i + 1] = text
      }
      fields[kept] = fields[i] as string
      fields[kept + 1] = fields[i + 1] as string
      kept += 2
    }
    fields.length = kept
    if (!done) fields.push(lower, text)
  }

  forEach(callback: (value: string, name: string, headers: this) => void, thisArgument?: unknown): void {
    if (typeof callback !== 'function') throw new TypeError('Headers.forEach: the callback is not a function.')
    for (const [name, value] of this) callback.call(thisArgument, value, name, this)
  }

  /** Sorted by name, values of one name combined, set-cookie one by one; sees changes made meanwhile. */
  entries(): HeadersEntries {
    return this.#walk(both) as unknown as HeadersEntries
  }

  keys(): HeadersNames {
    return this.#walk(first) as unknown as HeadersNames
  }

  values(): HeadersNames {
    return this.#walk(second) as unknown as HeadersNames
  }

  [Symbol.iterator](): HeadersEntries {
    return this.entries()
  }

  get [Symbol.toStringTag](): string {
    return 'Headers'
  }

  *#walk<T>(part: (entry: [string, string]) => T): Generator<T, undefined> {
    let seen = this.#version
    let entries = sortedAndCombined(this.#fields)
    for (let i = 0; i < entries.length; i++) {
      yield part(entries[i] as [string, string])
      // WebIDL §3.7.10: an iterator is an index into the pairs as they are now.
      if (this.#version === seen) continue
      seen = this.#version
      entries = sortedAndCombined(this.#fields)
    }
  }

  #own(method: string): string[] {
    if (this.#immutable) throw new TypeError(`Headers.${method}: these headers are immutable.`)
    if (!this.#owned) {
      this.#fields = [...this.#fields]
      this.#owned = true
    }
    this.#version++
    return this.#fields
  }
}

function both(entry: [string, string]): [string, string] {
  return entry
}

function first(entry: [string, string]): string {
  return entry[0]
}

function second(entry: [string, string]): string {
  return entry[1]
}

/** The flat array of any `HeadersInit`. Throws TypeError for an invalid name or value. */
export function fieldsFrom(init: HeadersInit): string[] {
  return init instanceof Headers ? (fieldsOf(init) as string[]) : fieldsFromInit(init, 'constructor')
}
