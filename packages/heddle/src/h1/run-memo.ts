import type { FieldLine } from './field-line.ts'
import type { FieldSection } from './section.ts'

const slots = 256
const longest = 2048
const mostPatience = 255

/**
 * A remembered run: field lines that follow each other, none of them individual, by their raw bytes.
 * Immutable but for `message` and `used`, so connections may hold on to it.
 */
export class Run<Message extends object> {
  readonly bytes: Buffer
  readonly lines: readonly FieldLine[]
  /** Octets of the longest of them. */
  readonly longestLine: number
  /** name + value + 32 of every line. */
  readonly size: number
  /** The empty line at the end of the section is part of the run. */
  readonly closes: boolean
  /** What the run came to if it is a whole section. */
  readonly section: FieldSection | undefined
  /** The last message whose section this is, so a repeated head costs no object either. */
  message: Message | undefined
  /** It was found since it was inserted. */
  used: boolean

  constructor(bytes: Buffer, lines: readonly FieldLine[], longestLine: number, closes: boolean, section: FieldSection | undefined) {
    this.bytes = bytes
    this.lines = lines
    this.longestLine = longestLine
    this.size = lines.reduce((sum, line) => sum + line.size, 0)
    this.closes = closes
    this.section = section
    this.message = undefined
    this.used = false
  }

  /** True if `buffer[start, limit)` begins with exactly these bytes. */
  matches(buffer: Uint8Array, start: number, limit: number): boolean {
    const { bytes } = this
    const { length } = bytes
    if (limit - start < length) return false
    // The last octet of the last line tells most runs apart that begin alike.
    const probe = this.closes ? length - 5 : length - 3
    if (buffer[start] !== bytes[0] || buffer[start + probe] !== bytes[probe]) return false
    if (length > 96) return compare.call(bytes, buffer, start, start + length, 0, length) === 0
    for (let i = 1; i < length; i++) if (buffer[start + i] !== bytes[i]) return false
    return true
  }
}

/**
 * Remembers runs: clients and servers repeat them from message to message, and one comparison then
 * stands for all their lines. Bounded and direct-mapped as the line cache. A slot whose runs are
 * never seen again learns less and less often, so unique heads cost little.
 */
export class RunMemo<Message extends object> {
  private readonly runs: (Run<Message> | undefined)[]
  /** By slot: how many runs are passed over before one is learnt, and how many still are. */
  private readonly patience: Uint8Array
  private readonly waits: Uint8Array

  constructor() {
    this.runs = Array.from({ length: slots }, () => undefined)
    this.patience = new Uint8Array(slots)
    this.waits = new Uint8Array(slots)
  }

  /** The run whose bytes stand at `start`, or undefined. */
  find(buffer: Uint8Array, start: number, limit: number): Run<Message> | undefined {
    const run = this.runs[slotOf(buffer, start, limit)]
    if (run === undefined || !run.matches(buffer, start, limit)) return undefined
    run.used = true
    return run
  }

  /**
   * Remembers that `buffer[start, end)` came to `lines`, the longest of `longestLine` octets, or to all of `section`; `limit` is where the
   * received bytes end, as in `find`. Undefined: it is not to be remembered.
   */
  insert(
    buffer: Uint8Array,
    start: number,
    end: number,
    limit: number,
    lines: readonly FieldLine[],
    longestLine: number,
    closes: boolean,
    section: FieldSection | undefined,
  ): Run<Message> | undefined {
    if (end - start > longest) return undefined
    const slot = slotOf(buffer, start, limit)
    const before = this.runs[slot]
    if (before !== undefined && !before.used) {
      const waits = this.waits[slot] as number
      if (waits > 0) {
        this.waits[slot] = waits - 1
        return undefined
      }
      this.waits[slot] = this.patience[slot] = Math.min(mostPatience, 2 * (this.patience[slot] as number) + 1)
    } else {
      this.patience[slot] = 0
    }
    // Memory of its own: a piece of Buffer's pool would hold on to all of that.
    const bytes = Buffer.allocUnsafeSlow(end - start)
    copy.call(buffer, bytes, 0, start, end)
    const run = new Run<Message>(bytes, lines, longestLine, closes, section)
    this.runs[slot] = run
    return run
  }
}

const { compare, copy } = Buffer.prototype as unknown as {
  copy(this: Uint8Array, target: Uint8Array, at: number, start: number, limit: number): number
  compare(this: Uint8Array, target: Uint8Array, targetStart: number, targetEnd: number, start: number, end: number): number
}

/** Mixes the first octets and how many there are: a head that comes alone is then told by its length too. */
function slotOf(buffer: Uint8Array, start: number, limit: number): number {
  let hash = Math.min(limit - start, longest)
  const end = Math.min(limit, start + 24)
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ (buffer[i] as number), 0x01000193)
  return (hash ^ (hash >>> 15)) & (slots - 1)
}
