import type { OpenSsl } from './openssl.ts'
import type { Level } from './types.ts'

/** Octets of CRYPTO frames that OpenSSL reads where they are, so they stay in memory until it lets them go. */
interface Piece {
  readonly level: Level
  readonly bytes: Uint8Array
  readonly pointer: bigint
  /** What has been released. */
  start: number
}

/** What has come in CRYPTO frames and TLS has not read yet. */
export class TlsInput {
  readonly #openssl: OpenSsl
  readonly #pieces: Piece[]

  constructor(openssl: OpenSsl) {
    this.#openssl = openssl
    this.#pieces = []
  }

  push(level: Level, bytes: Uint8Array): void {
    // Off the heap, and nobody else's.
    const copy = new Uint8Array(new ArrayBuffer(bytes.length))
    copy.set(bytes)
    this.#pieces.push({ level, bytes: copy, pointer: this.#openssl.ffi.getRawPointer(copy), start: 0 })
  }

  /** The first piece that is not read, if it is of `level`: where it is, and how long. */
  next(level: Level): { readonly pointer: bigint; readonly length: number } | undefined {
    const piece = this.#pieces[0]
    if (piece === undefined || piece.level !== level) return undefined
    return { pointer: piece.pointer + BigInt(piece.start), length: piece.bytes.length - piece.start }
  }

  release(byteCount: number): void {
    let left = byteCount
    for (;;) {
      const [piece] = this.#pieces
      if (piece === undefined || left === 0) return
      const taken = Math.min(left, piece.bytes.length - piece.start)
      piece.start += taken
      left -= taken
      if (piece.start === piece.bytes.length) this.#pieces.shift()
    }
  }

  /** Octets of `level` that nobody has read. */
  unread(level: Level): number {
    let count = 0
    for (const piece of this.#pieces) if (piece.level === level) count += piece.bytes.length - piece.start
    return count
  }
}
