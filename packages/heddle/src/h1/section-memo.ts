import type { FieldSection } from './section.ts'

const slots = 128
const longest = 2048

/** One remembered field section: its raw bytes, the empty line included, and what they came to. */
export class MemoEntry<Message extends object> {
  bytes: Buffer
  length: number
  section: FieldSection | undefined
  /** The last whole message head that had this section, so a repeated head costs no object either. */
  message: Message | undefined

  constructor() {
    this.bytes = nothing
    this.length = 0
    this.section = undefined
    this.message = undefined
  }

  /** True if `buffer[start, limit)` begins with exactly these bytes. */
  matches(buffer: Uint8Array, start: number, limit: number): boolean {
    const { bytes, length } = this
    if (length === 0 || limit - start < length) return false
    // The last octet before the empty line tells most sections apart that begin alike.
    if (buffer[start] !== bytes[0] || buffer[start + length - 5] !== bytes[length - 5]) return false
    if (length > 96) return compare.call(bytes, buffer, start, start + length, 0, length) === 0
    for (let i = 1; i < length; i++) if (buffer[start + i] !== bytes[i]) return false
    return true
  }
}

/**
 * Remembers whole field sections by their bytes: clients and servers repeat them from message to
 * message, and one comparison then stands for all lines. Bounded and direct-mapped as the line
 * cache; sections with a line that is not to be cached are never in it.
 */
export class SectionMemo<Message extends object> {
  private readonly entries: (MemoEntry<Message> | undefined)[]

  constructor() {
    this.entries = Array.from({ length: slots }, () => undefined)
  }

  /** The entry whose bytes stand at `start`, or undefined. */
  find(buffer: Uint8Array, start: number, limit: number): MemoEntry<Message> | undefined {
    const entry = this.entries[slotOf(buffer, start, limit)]
    return entry !== undefined && entry.matches(buffer, start, limit) ? entry : undefined
  }

  /**
   * Remembers that `buffer[start, end)` came to `section`; `limit` is where the received bytes end,
   * as in `find`. Returns the entry, or undefined if the section is not to be remembered.
   */
  insert(buffer: Uint8Array, start: number, end: number, limit: number, section: FieldSection): MemoEntry<Message> | undefined {
    const length = end - start
    if (!section.cacheable || length > longest || length < 8) return undefined
    const slot = slotOf(buffer, start, limit)
    // Connections may hold on to an entry: it is rewritten as a whole, so what they hold stays true.
    let entry = this.entries[slot]
    if (entry === undefined) this.entries[slot] = entry = new MemoEntry()
    if (entry.bytes.length < length) entry.bytes = Buffer.allocUnsafeSlow(Math.min(longest, length * 2))
    copy.call(buffer, entry.bytes, 0, start, end)
    entry.length = length
    entry.section = section
    entry.message = undefined
    return entry
  }
}

const nothing = Buffer.alloc(0)
const { compare, copy } = Buffer.prototype as unknown as {
  compare(this: Uint8Array, target: Uint8Array, targetStart: number, targetEnd: number, start: number, end: number): number
  copy(this: Uint8Array, target: Uint8Array, at: number, start: number, limit: number): number
}

/** Mixes the first octets and how many there are: a head that comes alone is then told by its length too. */
function slotOf(buffer: Uint8Array, start: number, limit: number): number {
  let hash = Math.min(limit - start, longest)
  const end = Math.min(limit, start + 24)
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ (buffer[i] as number), 0x01000193)
  return (hash ^ (hash >>> 15)) & (slots - 1)
}
