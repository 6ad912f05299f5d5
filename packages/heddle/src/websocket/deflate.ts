import { constants, createDeflateRaw, deflateRawSync } from 'node:zlib'
import { BufferPool } from '../bytes/index.ts'
import type { CodecSink } from '../ws/index.ts'
import { flushingEachWrite, ZlibEngine } from './zlib-engine.ts'
import { mostRunning, ZlibJob, type JobError, type JobOwner } from './zlib-job.ts'

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

/** Copies of what is compressed in the thread pool, for as long as that takes. */
const inputs = new BufferPool(65_536, mostRunning)

/**
 * Compressors without a dictionary that wait for the next job, by what they are like, and how many there are.
 * Each has a quarter of a MiB, which to get and to give back costs more than it is to make it as new.
 */
const kept = new Map<string, ZlibEngine[]>()
let keptCount = 0

function keptEngine(key: string): ZlibEngine | undefined {
  const engine = kept.get(key)?.pop()
  if (engine !== undefined) keptCount--
  return engine
}

function keep(key: string, engine: ZlibEngine): void {
  if (keptCount === mostRunning) dropOne(key)
  let engines = kept.get(key)
  if (engines === undefined) {
    engines = []
    kept.set(key, engines)
  }
  engines.push(engine)
  keptCount++
}

/** Makes room for one that is like `key`: what was used last is likely to be used next. */
function dropOne(key: string): void {
  for (const [other, engines] of kept) {
    if (other !== key || kept.size === 1) {
      engines.pop()?.destroy()
      if (engines.length === 0) kept.delete(other)
      keptCount--
      return
    }
  }
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
  readonly #input: Buffer
  readonly #job: ZlibJob

  /** Copies both `bytes` and `window`, which zlib reads later, in its thread. */
  constructor(sink: CodecSink, end: boolean, owner: DeflateOwner, setting: DeflateSetting, bytes: Uint8Array, window: Buffer | undefined) {
    const { length } = bytes
    this.sink = sink
    this.end = end
    this.#owner = owner
    this.#setting = setting
    this.#length = length
    // To refer to what is less than a quarter of the message saves a percent or two, and costs a new compressor.
    this.#dictionary = window !== undefined && window.length * 4 > length ? Buffer.from(window) : undefined
    this.#input = length <= inputs.size ? inputs.acquire() : Buffer.allocUnsafeSlow(length)
    this.#input.set(bytes)
    this.#job = new ZlibJob(this, [this.#input.subarray(0, length)], Infinity)
    this.#job.start()
  }

  /** The owner is not told any more. */
  cancel(): void {
    this.#job.cancel()
  }

  makeEngine(): ZlibEngine {
    const dictionary = this.#dictionary
    const options = optionsFor(this.#setting, this.#length, dictionary)
    if (dictionary !== undefined) return new ZlibEngine(createDeflateRaw(options))
    const key = `${options.windowBits} ${options.level} ${options.memLevel}`
    return (
      keptEngine(key) ??
      new ZlibEngine(createDeflateRaw({ ...options, ...flushingEachWrite, chunkSize: 65_536 }), (engine) => keep(key, engine))
    )
  }

  onJobDone(_job: ZlibJob, output: Buffer): void {
    inputs.release(this.#input)
    this.#owner.onDeflated(this, output)
  }

  onJobFailed(_job: ZlibJob, error: JobError): void {
    this.#owner.onDeflated(this, error as Error)
  }
}
