import { constants, createDeflateRaw, deflateRawSync, type DeflateRaw } from 'node:zlib'
import type { CodecSink } from '../ws/index.ts'
import { ZlibJob, type JobError, type JobOwner } from './zlib-job.ts'

/** How to compress the messages of one connection. */
export interface DeflateSetting {
  /** 9–15: nothing refers further back than 2^this bytes. */
  readonly windowBits: number
  /** zlib's level, 0–9, or -1 for its default. */
  readonly level: number
  /** zlib's memory level, 1–9. */
  readonly memoryLevel: number
}

/** zlib does not look as far back as its window is wide: MIN_LOOKAHEAD, 262 bytes, are kept free. */
const lookAhead = 262

/** The window that is as good as any for `reach` bytes: 2^this bytes, `windowBits` at most. */
export function usefulBits(windowBits: number, reach: number): number {
  let bits = 9
  while (bits < windowBits && 2 ** bits < reach + lookAhead) bits++
  return bits
}

/** The options for `length` bytes behind `dictionary`: a window and tables that are no larger than they need, since each message makes its own. */
function optionsFor(setting: DeflateSetting, length: number, dictionary: Buffer | undefined) {
  const options = {
    windowBits: usefulBits(setting.windowBits, length + (dictionary === undefined ? 0 : dictionary.length)),
    level: setting.level,
    memLevel: length > 512 ? setting.memoryLevel : Math.min(setting.memoryLevel, 5),
    // RFC 7692 §7.2.1: the blocks end with an empty one without compression, at the boundary of a byte.
    finishFlush: constants.Z_SYNC_FLUSH,
    // DEFLATE data are longer than their input by a few bytes at most.
    chunkSize: Math.min(65_536, length + 64),
  }
  return dictionary === undefined ? options : { ...options, dictionary }
}

/** Compresses `buffer[start, limit)` on this thread; the result, which ends with 00 00 FF FF, is the caller's. */
export function deflateNow(
  setting: DeflateSetting,
  buffer: Uint8Array,
  start: number,
  limit: number,
  dictionary: Buffer | undefined,
): Buffer {
  const bytes = start === 0 && limit === buffer.length ? buffer : buffer.subarray(start, limit)
  return deflateRawSync(bytes, optionsFor(setting, limit - start, dictionary))
}

/** Who waits for a {@link Deflating}. */
export interface DeflateOwner {
  /** As the result of `deflateNow`, or what zlib complains of. */
  onDeflated(deflating: Deflating, result: Buffer | Error): void
}

/** Bytes of one connection that are compressed in the thread pool. */
export class Deflating implements JobOwner {
  readonly sink: CodecSink
  /** The message ends with these bytes. */
  readonly end: boolean
  readonly #owner: DeflateOwner
  readonly #setting: DeflateSetting
  readonly #length: number
  readonly #dictionary: Buffer | undefined
  readonly #job: ZlibJob

  /** `bytes` and `dictionary` must not change until the end. */
  constructor(sink: CodecSink, end: boolean, owner: DeflateOwner, setting: DeflateSetting, bytes: Buffer, dictionary: Buffer | undefined) {
    this.sink = sink
    this.end = end
    this.#owner = owner
    this.#setting = setting
    this.#length = bytes.length
    this.#dictionary = dictionary
    this.#job = new ZlibJob(this, [bytes], Infinity)
    this.#job.start()
  }

  /** The owner is not told any more. */
  cancel(): void {
    this.#job.cancel()
  }

  makeEngine(): DeflateRaw {
    return createDeflateRaw(optionsFor(this.#setting, this.#length, this.#dictionary))
  }

  onJobDone(_job: ZlibJob, output: Buffer): void {
    this.#owner.onDeflated(this, output)
  }

  onJobFailed(_job: ZlibJob, error: JobError): void {
    this.#owner.onDeflated(this, error as Error)
  }
}
