const littleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1
/** From here on, words are faster than octets, a view of them included. */
const worthWords = 48
/** Views of larger memory are not kept: they would keep it alive. */
const mostKept = 131_072

// The view used last: a socket that reads into one buffer, and the scratch of frames, find theirs again.
let keptMemory: ArrayBufferLike = new ArrayBuffer(0)
let keptWords: Int32Array = new Int32Array(keptMemory)

/**
 * Masks or unmasks `buffer[start, limit)` in place (RFC 6455 §5.3). `key`: 32 bits, whose most significant
 * octet applies to the octet at `start`.
 */
export function applyMask(buffer: Uint8Array, start: number, limit: number, key: number): void {
  if (limit - start >= worthWords) maskWords(buffer, start, limit, key)
  else maskOctets(buffer, start, limit, key)
}

function maskOctets(buffer: Uint8Array, start: number, limit: number, key: number): void {
  let at = start
  const whole = start + ((limit - start) & ~3)
  if (at < whole) {
    const first = key >>> 24
    const second = key >>> 16
    const third = key >>> 8
    do {
      // Stored modulo 256.
      buffer[at] = (buffer[at] as number) ^ first
      buffer[at + 1] = (buffer[at + 1] as number) ^ second
      buffer[at + 2] = (buffer[at + 2] as number) ^ third
      buffer[at + 3] = (buffer[at + 3] as number) ^ key
      at += 4
    } while (at < whole)
  }
  for (let shift = 24; at < limit; shift -= 8) {
    buffer[at] = (buffer[at] as number) ^ (key >>> shift)
    at++
  }
}

function maskWords(buffer: Uint8Array, start: number, limit: number, key: number): void {
  const { byteOffset } = buffer
  const before = -(byteOffset + start) & 3
  const aligned = start + before
  if (before > 0) maskOctets(buffer, start, aligned, key)
  const rotated = rotateKey(key, before)
  const word = littleEndian ? reverseOctets(rotated) : rotated
  const words = wordsOf(buffer)
  const last = (byteOffset + limit) >>> 2
  for (let at = (byteOffset + aligned) >>> 2; at < last; at++) words[at] = (words[at] as number) ^ word
  maskOctets(buffer, last * 4 - byteOffset, limit, rotated)
}

/** The key for what comes `count` octets later. */
export function rotateKey(key: number, count: number): number {
  const bits = (count & 3) << 3
  return bits === 0 ? key : (key << bits) | (key >>> (32 - bits))
}

function reverseOctets(word: number): number {
  return (word >>> 24) | ((word >>> 8) & 0xff00) | ((word << 8) & 0xff_0000) | (word << 24)
}

function wordsOf(buffer: Uint8Array): Int32Array {
  const memory = buffer.buffer
  if (memory === keptMemory) return keptWords
  const words = new Int32Array(memory, 0, memory.byteLength >>> 2)
  if (memory.byteLength <= mostKept) {
    keptMemory = memory
    keptWords = words
  }
  return words
}
