import { codeLengths, codes } from './huffman-table.ts'

const eos = 256
/** What a transition holds: next state (bits 0–7), first and second symbol (8–15, 16–23), how many (24–25), failure (26). */
const failure = 1 << 26
/** 256 states (the inner nodes of the code's tree) × 256 octets. */
const transitions = new Uint32Array(256 * 256)
/** 1 where a string may end: at most seven bits of padding, all ones (RFC 7541 §5.2). */
const accepting = new Uint8Array(256)

build()

function build(): void {
  // The tree: child of node n for bit b is children[2n + b]; an inner node's number, or -1 - symbol.
  const children: number[] = [0, 0]
  for (let symbol = 0; symbol <= eos; symbol++) {
    let node = 0
    for (let bit = (codeLengths[symbol] as number) - 1; bit >= 0; bit--) {
      const at = 2 * node + (((codes[symbol] as number) >>> bit) & 1)
      if (bit === 0) children[at] = -1 - symbol
      else {
        if (children[at] === 0) {
          children[at] = children.length / 2
          children.push(0, 0)
        }
        node = children[at] as number
      }
    }
  }
  for (let state = 0; state < 256; state++) {
    for (let octet = 0; octet < 256; octet++) transitions[state * 256 + octet] = transition(children, state, octet)
  }
  for (let node = 0, depth = 0; depth < 8; depth++) {
    accepting[node] = 1
    node = children[2 * node + 1] as number
  }
}

function transition(children: readonly number[], state: number, octet: number): number {
  let node = state
  let symbols = 0
  let count = 0
  for (let bit = 7; bit >= 0; bit--) {
    const child = children[2 * node + ((octet >>> bit) & 1)] as number
    if (child >= 0) node = child
    else {
      const symbol = -1 - child
      // RFC 7541 §5.2: the EOS symbol inside a string is a decoding error.
      if (symbol === eos) return failure
      symbols |= symbol << (8 + 8 * count)
      count++
      node = 0
    }
  }
  return symbols | (count << 24) | node
}

/**
 * Decodes `buffer[start, limit)` into `target` from its beginning and returns the number of octets,
 * or -1 for a coding error: EOS, or padding that is too long or not all ones. `target` must have room
 * for `maxDecodedLength(limit - start)` octets.
 */
export function readHuffman(buffer: Uint8Array, start: number, limit: number, target: Uint8Array): number {
  let state = 0
  let at = 0
  for (let i = start; i < limit; i++) {
    const step = transitions[(state << 8) | (buffer[i] as number)] as number
    const count = step >>> 24
    if (count !== 0) {
      if (count > 2) return -1
      target[at++] = step >>> 8
      if (count === 2) target[at++] = step >>> 16
    }
    state = step & 0xff
  }
  return accepting[state] === 1 ? at : -1
}

/** The most octets that `encodedLength` octets can decode to: the shortest code has five bits. */
export function maxDecodedLength(encodedLength: number): number {
  return Math.floor((encodedLength * 8) / 5)
}

/** Octets that `text` (latin1) takes when Huffman-coded. */
export function huffmanLength(text: string): number {
  let bits = 0
  for (let i = 0; i < text.length; i++) bits += codeLengths[text.charCodeAt(i)] as number
  return (bits + 7) >>> 3
}

/** Writes `text` (latin1) Huffman-coded to `target` at `at` and returns the position behind it. */
export function writeHuffman(text: string, target: Uint8Array, at: number): number {
  let bits = 0
  let pending = 0
  for (let i = 0; i < text.length; i++) {
    const symbol = text.charCodeAt(i)
    const length = codeLengths[symbol] as number
    const value = codes[symbol] as number
    // At most 7 bits are pending, and 7 + 30 do not fit in 32: a long code goes in two parts.
    const high = length > 16 ? length - 16 : 0
    if (high > 0) {
      bits = (bits << high) | (value >>> 16)
      pending += high
      while (pending >= 8) target[at++] = bits >>> (pending -= 8)
    }
    const low = length - high
    bits = (bits << low) | (high > 0 ? value & 0xffff : value)
    pending += low
    while (pending >= 8) target[at++] = bits >>> (pending -= 8)
  }
  // RFC 7541 §5.2: padded with the most significant bits of EOS, which are ones.
  if (pending > 0) target[at++] = (bits << (8 - pending)) | (0xff >>> pending)
  return at
}
