import type { Ffi } from './ffi.ts'

/**
 * Memory that native code is given the addresses of: one block outside of V8's heap that stays where it is, cut into
 * pieces. Whoever holds a piece's address must hold this object too, for with it the block would go.
 */
export class Memory {
  readonly bytes: Uint8Array
  readonly words: Uint32Array
  readonly view: DataView
  /** The address of the first octet. */
  readonly base: number
  readonly pointer: bigint
  #used: number

  constructor(ffi: Ffi, size: number) {
    const block = new ArrayBuffer((size + 15) & ~15)
    this.bytes = new Uint8Array(block)
    this.words = new Uint32Array(block)
    this.view = new DataView(block)
    this.pointer = ffi.getRawPointer(block)
    this.base = numberOf(this.pointer)
    this.#used = 0
  }

  /** The offset of a new piece, at a multiple of 16. */
  take(size: number): number {
    const start = this.#used
    this.#used = start + ((size + 15) & ~15)
    if (this.#used > this.bytes.length) throw new RangeError('memory for native calls is used up')
    return start
  }

  /** The address of an offset, as native calls take it. */
  pointerTo(offset: number): bigint {
    return this.pointer + BigInt(offset)
  }

  /** Writes the 64-bit address `base + offset` to octet `at`, a multiple of 4. */
  writeAddress(at: number, address: number): void {
    const low = address >>> 0
    this.words[at >> 2] = low
    this.words[(at >> 2) + 1] = (address - low) / 0x1_0000_0000
  }
}

/**
 * The address of the caller's buffers, remembered for the one used last. The block is held for as long as its address
 * is remembered, so the address never outlives it; a block that was detached has length 0, and callers check lengths first.
 */
export class LastAddress {
  readonly #ffi: Ffi
  #block: ArrayBufferLike | undefined
  #base: number

  constructor(ffi: Ffi) {
    this.#ffi = ffi
    this.#block = undefined
    this.#base = 0
  }

  /** The address of the first octet of `bytes`. */
  of(bytes: Uint8Array): number {
    // `.buffer` also moves small arrays out of V8's heap, for good.
    const block = bytes.buffer
    if (block !== this.#block) {
      this.#base = numberOf(this.#ffi.getRawPointer(block as ArrayBuffer))
      this.#block = block
    }
    return this.#base + bytes.byteOffset
  }
}

/** An address as a number: exact, for user space ends far below 2^53 on every machine that `native/` admits. */
function numberOf(pointer: bigint): number {
  const address = Number(pointer)
  if (!Number.isSafeInteger(address)) throw new RangeError('an address is too large to count with')
  return address
}
