import { latin1Slice } from '../bytes/index.ts'
import { isFieldValue } from '../http/index.ts'
import { maxDecodedLength, readHuffman } from './huffman.ts'
import { Kind, kindOfName } from './entry.ts'

const slotSize = 128
const scratch = new Uint8Array(maxDecodedLength(65_536 + 8))

/** The string cannot be decoded: a coding error. */
export const undecodable = -1
/** The string was read, but does not stand in the cache: it is in `text`. */
export const uncached = -2

/**
 * Strings by the octets they were coded in, so that a literal sent again costs a comparison and not a
 * decoding, a validation and a new string. Direct-mapped and bounded: a collision replaces, and no
 * chain can be made to grow. Shared by all connections of the thread, therefore never asked about
 * `cookie` and `authorization`.
 */
export class InternCache {
  /** The string read last. */
  text: string
  readonly texts: string[]
  /** Of names: what they make of a line. Of values: 0, or `Kind.Malformed`. */
  readonly kinds: Uint8Array
  readonly #slots: number
  readonly #names: boolean
  readonly #lengths: Uint16Array
  readonly #octets: Uint8Array

  /** `slots`: a power of two; each pins 128 octets and a string. `names`: kinds are those of names. */
  constructor(slots: number, names: boolean) {
    this.text = ''
    this.texts = Array.from({ length: slots }, () => '')
    this.kinds = new Uint8Array(slots)
    this.#slots = slots
    this.#names = names
    this.#lengths = new Uint16Array(slots)
    this.#octets = new Uint8Array(slots * slotSize)
  }

  /**
   * Reads the string coded in `buffer[start, limit)` into `text` and returns its slot, `uncached`, or
   * `undecodable`.
   */
  read(buffer: Uint8Array, start: number, limit: number, huffman: boolean): number {
    const length = limit - start
    if (length > slotSize || length === 0) return this.#decode(buffer, start, limit, huffman) ? uncached : undecodable
    // The length with the coding: 0 stands for an empty slot.
    const mark = (length << 1) | (huffman ? 1 : 0)
    let hash = mark
    for (let i = start; i < limit; i++) hash = Math.imul(hash ^ (buffer[i] as number), 0x0100_0193)
    hash ^= hash >>> 15
    const slot = hash & (this.#slots - 1)
    const base = slot * slotSize
    const octets = this.#octets
    if (this.#lengths[slot] === mark) {
      let i = 0
      while (i < length && octets[base + i] === buffer[start + i]) i++
      if (i === length) {
        this.text = this.texts[slot] as string
        return slot
      }
    }
    if (!this.#decode(buffer, start, limit, huffman)) return undecodable
    this.#lengths[slot] = mark
    for (let i = 0; i < length; i++) octets[base + i] = buffer[start + i] as number
    this.texts[slot] = this.text
    this.kinds[slot] = this.#names ? kindOfName(this.text) : isFieldValue(this.text) ? 0 : Kind.Malformed
    return slot
  }

  /** Reads as `read` does, but leaves the cache alone. */
  readSecret(buffer: Uint8Array, start: number, limit: number, huffman: boolean): number {
    return this.#decode(buffer, start, limit, huffman) ? uncached : undecodable
  }

  #decode(buffer: Uint8Array, start: number, limit: number, huffman: boolean): boolean {
    if (!huffman) {
      this.text = latin1Slice(buffer, start, limit)
      return true
    }
    const most = maxDecodedLength(limit - start)
    const target = most <= scratch.length ? scratch : new Uint8Array(most)
    const length = readHuffman(buffer, start, limit, target)
    if (length < 0) return false
    this.text = latin1Slice(target, 0, length)
    return true
  }
}
