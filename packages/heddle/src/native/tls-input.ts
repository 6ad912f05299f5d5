import type { OpenSsl } from './openssl.ts'
import type { Level } from './types.ts'

/** Octets that OpenSSL reads where they are, so they stay in memory until it lets them go. */
interface Piece {
  readonly bytes: Uint8Array
  readonly pointer: bigint
  /** What has been released. */
  start: number
}

/** What has come in CRYPTO frames and TLS has not read yet. Each level has a queue, since one may begin before another ends. */
export class TlsInput {
  readonly #openssl: OpenSsl
  readonly #levels: readonly Piece[][]
  /** Where OpenSSL reads. */
  #reading: Level

  constructor(openssl: OpenSsl) {
    this.#openssl = openssl
    this.#levels = [[], [], [], []]
    this.#reading = 0
  }

  push(level: Level, bytes: Uint8Array): void {
    // Off the heap, and nobody else's.
    const copy = new Uint8Array(new ArrayBuffer(bytes.length))
    copy.set(bytes)
    this.#queue(level).push({ bytes: copy, pointer: this.#openssl.ffi.getRawPointer(copy), start: 0 })
  }

  /** The first octets of `level` that are not released: where they are, and how many. */
  next(level: Level): { readonly pointer: bigint; readonly length: number } | undefined {
    this.#reading = level
    const [piece] = this.#queue(level)
    return piece && { pointer: piece.pointer + BigInt(piece.start), length: piece.bytes.length - piece.start }
  }

  /** Lets octets go, of what `next` told last. */
  release(byteCount: number): void {
    const queue = this.#queue(this.#reading)
    let left = byteCount
    for (let piece = queue[0]; piece !== undefined && left > 0; piece = queue[0]) {
      const taken = Math.min(left, piece.bytes.length - piece.start)
      piece.start += taken
      left -= taken
      if (piece.start === piece.bytes.length) queue.shift()
    }
  }

  /** True: nothing of `level` waits. */
  isEmpty(level: Level): boolean {
    return this.#queue(level).length === 0
  }

  #queue(level: Level): Piece[] {
    return this.#levels[level] as Piece[]
  }
}
