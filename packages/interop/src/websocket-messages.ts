/**
 * The messages of a conversation: what both ends send, expect and compare, made anew from their numbers. This
 * file runs in Node and in a browser, its types removed; `go/websocket/messages.go` makes the same.
 */

/** A text, or bytes. */
export type Message = string | Uint8Array<ArrayBuffer>

/** How many messages a conversation has. */
export const messageCount = 10_000

/** Both ways to say a length change here (RFC 6455 §5.2); some windows, chunks and buffers end there, too. */
const edges = [0, 1, 125, 126, 127, 65_535, 65_536, 65_537, 262_144, 400_000]

/** Characters of one to four bytes, those at the ends of their ranges, and what compresses well. */
const words = [
  'heddle ',
  'thread',
  'über',
  'пряжа',
  '織物',
  '\u0000',
  '\u007f\u0080',
  '\u07ff\u0800',
  '\ud7ff\ue000\uffff',
  '🧵🪡',
  '\u{10000}\u{10ffff}',
]
const wordSizes = words.map((word) => new TextEncoder().encode(word).length)

const made: Message[] = []

/** Message `index`, always the same. It is kept: nobody may write to it. */
export function messageOf(index: number): Message {
  return (made[index] ??= makeMessage(index))
}

/** Whether both are the same text or the same bytes. */
export function isSame(received: unknown, expected: Message): boolean {
  if (typeof expected === 'string') return received === expected
  if (!(received instanceof Uint8Array) || received.length !== expected.length) return false
  for (let i = 0; i < expected.length; i++) if (received[i] !== expected[i]) return false
  return true
}

/** How many bytes the messages before `count` have. */
export function totalSize(count: number): number {
  let size = 0
  for (let index = 0; index < count; index++) size += sizeOf(new Random(index), index)
  return size
}

function makeMessage(index: number): Message {
  const random = new Random(index)
  const size = sizeOf(random, index)
  switch (index < 2 * edges.length ? 2 * (index & 1) : random.next() & 3) {
    case 0:
      return scattered(random, size)
    case 1: {
      const pattern = scattered(random, 61)
      return new Uint8Array(size).map((_, i) => pattern[i % 61] as number)
    }
    default:
      return text(random, size)
  }
}

/** Mostly small: some 2.5 KB on average, and 1 of 500 with hundreds of KB. */
function sizeOf(random: Random, index: number): number {
  if (index < 2 * edges.length) return edges[index >>> 1] as number
  const kind = random.next() % 1000
  const some = random.next()
  if (kind < 600) return some % 126
  if (kind < 900) return 126 + (some % 1900)
  if (kind < 985) return 2000 + (some % 18_000)
  if (kind < 998) return 20_000 + (some % 80_000)
  return 100_000 + (some % 300_000)
}

function scattered(random: Random, size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size)
  let four = 0
  for (let i = 0; i < size; i++) {
    four = (i & 3) === 0 ? random.next() : four >>> 8
    bytes[i] = four & 0xff
  }
  return bytes
}

function text(random: Random, size: number): string {
  const parts: string[] = []
  let left = size
  for (;;) {
    const word = random.next() % words.length
    const wordSize = wordSizes[word] as number
    if (wordSize > left) return parts.join('') + 'x'.repeat(left)
    parts.push(words[word] as string)
    left -= wordSize
  }
}

/** Marsaglia's xorshift of 32 bits. */
class Random {
  #state: number

  constructor(index: number) {
    this.#state = Math.imul(index + 1, 0x9e3779b1) >>> 0 // Odd, so no number becomes 0.
  }

  next(): number {
    let state = this.#state
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (this.#state = state >>> 0)
  }
}
