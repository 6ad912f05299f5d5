import { constants, type DeflateRaw, type InflateRaw } from 'node:zlib'

/** Who uses a {@link ZlibEngine}. */
export interface EngineUser {
  onOutput(chunk: Buffer): void
  /** All of the input was read, and all it led to was told. */
  onOutputEnd(): void
  onEngineError(error: Error): void
}

/** A compressor or decompressor in the thread pool, for one job at a time. */
export class ZlibEngine {
  readonly #stream: DeflateRaw | InflateRaw
  /** Takes it back for the next job; undefined: it is good for one. */
  readonly #keep: ((engine: ZlibEngine) => void) | undefined
  #user: EngineUser | undefined

  /**
   * `keep`: of a compressor that flushes with every write, which is then told of each end and is as new when
   * this is called. Others end with their first input.
   */
  constructor(stream: DeflateRaw | InflateRaw, keep?: (engine: ZlibEngine) => void) {
    this.#stream = stream
    this.#keep = keep
    this.#user = undefined
    stream.on('data', (chunk: Buffer) => this.#user?.onOutput(chunk))
    stream.on('error', (error) => this.#user?.onEngineError(error))
    if (keep === undefined) stream.on('end', () => this.#user?.onOutputEnd())
  }

  /** Input bytes that zlib took: fewer than there are if DEFLATE data comes to an end before. */
  get taken(): number {
    return this.#stream.bytesWritten
  }

  /** Begins; `user` is told later, never during this call. `input` must not change until the end. */
  start(user: EngineUser, input: readonly Uint8Array[]): void {
    this.#user = user
    const last = input.length - 1
    for (let i = 0; i < last; i++) this.#stream.write(input[i])
    if (this.#keep === undefined) this.#stream.end(input[last])
    else this.#stream.write(input[last], () => this.#user?.onOutputEnd())
  }

  /** The user is not told any more. `completed`: it was told of the end, so nothing is in the thread pool. */
  stop(completed: boolean): void {
    this.#user = undefined
    if (completed && this.#keep !== undefined) {
      this.#stream.reset()
      this.#keep(this)
    } else {
      this.#stream.destroy()
    }
  }

  /** It is not used any more. */
  destroy(): void {
    this.#stream.destroy()
  }
}

/** For the options of a compressor that is kept: RFC 7692 §7.2.1, each write ends with an empty block at the boundary of a byte. */
export const flushingEachWrite: { readonly flush: number } = { flush: constants.Z_SYNC_FLUSH }
