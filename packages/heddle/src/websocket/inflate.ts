import { createInflateRaw, inflateRawSync } from 'node:zlib'
import type { CodecSink } from '../ws/index.ts'
import type { History } from './history.ts'
import { ZlibEngine } from './zlib-engine.ts'
import { ZlibJob, type JobError, type JobOwner } from './zlib-job.ts'

/** How to inflate the messages of one connection. */
export interface InflateSetting {
  /** 9–15: what the sender refers to is at most 2^this bytes back. */
  readonly windowBits: number
  /** With context takeover: what came before. What is inflated is not put into it here. */
  readonly history: History | undefined
}

/** The payload is longer, inflated, than it may be. */
export const tooLong = 'too long'

/**
 * What is put behind each payload: first the four bytes its sender took off (RFC 7692 §7.2.2), then an
 * empty last block. So the decompressor has to arrive at an end, and a payload that breaks off in the middle
 * of a block is told from one that is whole.
 */
const tail = Buffer.from([0x00, 0x00, 0xff, 0xff, 0x01, 0x00, 0x00, 0xff, 0xff])

/**
 * DEFLATE streams that one payload may consist of. A sender may end each block with BFINAL set (RFC 7692
 * §7.2.3.4), and every such end costs a new decompressor: two bytes of payload are enough for one.
 */
const mostStreams = 64

const noBytes = Buffer.alloc(0)

/** Payload and tail, side by side, for as long as a call takes. */
let joined = Buffer.allocUnsafeSlow(16_384)

/**
 * Inflates the payload `buffer[start, limit)` on this thread. The result is the caller's: the bytes,
 * `tooLong` as soon as there are more than `mostLength`, or the error of data that is no DEFLATE.
 */
export function inflateNow(
  setting: InflateSetting,
  buffer: Uint8Array,
  start: number,
  limit: number,
  mostLength: number,
): Buffer | typeof tooLong | Error {
  const length = limit - start
  // No bytes at all are no DEFLATE data, but there are those who send an empty message so.
  if (length === 0) return noBytes
  const end = length + tail.length
  if (joined.length < end) joined = Buffer.allocUnsafeSlow(2 * end)
  joined.set(start === 0 && limit === buffer.length ? buffer : buffer.subarray(start, limit))
  joined.set(tail, length)

  // Most messages come to less; more would be put together from chunks.
  const chunkSize = Math.min(65_600, Math.max(256, 5 * length))
  let whole: Buffer | undefined
  let at = 0
  for (let streams = 0; streams < mostStreams; streams++) {
    const produced: number = whole === undefined ? 0 : whole.length
    const options = {
      windowBits: setting.windowBits,
      chunkSize,
      // 0 is not allowed, so the sum is looked at below.
      maxOutputLength: Math.max(1, mostLength - produced),
      info: true,
    }
    const dictionary = dictionaryBehind(setting.history, whole)
    let result: { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } }
    try {
      result = inflateRawSync(
        joined.subarray(at, end),
        dictionary === undefined ? options : { ...options, dictionary },
      ) as unknown as typeof result
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? tooLong : (error as Error)
    }
    whole = whole === undefined ? result.buffer : Buffer.concat([whole, result.buffer])
    if (whole.length > mostLength) return tooLong
    at += result.engine.bytesWritten
    if (isWhole(at, length)) return whole
  }
  return tooManyStreams()
}

/** All of the tail was read; or all of the payload, of a sender that does without the padding of RFC 7692 §7.2.3.4. */
function isWhole(at: number, length: number): boolean {
  return at === length + tail.length || at === length
}

/** What the next DEFLATE stream may refer to: what came before this message, and `whole`, what it has led to so far. */
function dictionaryBehind(history: History | undefined, whole: Buffer | undefined): Buffer | undefined {
  const window = history?.window
  if (whole === undefined || whole.length === 0) return window
  return (window === undefined ? whole : Buffer.concat([window, whole])).subarray(-32_768)
}

function tooManyStreams(): Error {
  return new Error(`a message of more than ${mostStreams} DEFLATE streams`)
}

/** Who waits for an {@link Inflating}. */
export interface InflateOwner {
  /** As the result of `inflateNow`. */
  onInflated(inflating: Inflating, result: Buffer | typeof tooLong | Error): void
}

/** A payload of one connection that is inflated in the thread pool. */
export class Inflating implements JobOwner {
  readonly sink: CodecSink
  readonly #owner: InflateOwner
  readonly #setting: InflateSetting
  readonly #payload: Uint8Array
  readonly #mostLength: number
  #at: number
  #streams: number
  #whole: Buffer | undefined
  #job: ZlibJob | undefined

  /** `payload` must not change until the end. */
  constructor(sink: CodecSink, owner: InflateOwner, setting: InflateSetting, payload: Uint8Array, mostLength: number) {
    this.sink = sink
    this.#owner = owner
    this.#setting = setting
    this.#payload = payload
    this.#mostLength = mostLength
    this.#at = 0
    this.#streams = 0
    this.#whole = undefined
    this.#job = undefined
    this.#start()
  }

  /** The owner is not told any more. */
  cancel(): void {
    this.#job?.cancel()
    this.#job = undefined
  }

  makeEngine(): ZlibEngine {
    const options = {
      windowBits: this.#setting.windowBits,
      // Each chunk is one turn through the thread pool, and what may be allocated beyond the limit.
      chunkSize: Math.min(262_144, Math.max(65_536, 4 * this.#payload.length), this.#mostLength + 64),
    }
    const dictionary = dictionaryBehind(this.#setting.history, this.#whole)
    return new ZlibEngine(createInflateRaw(dictionary === undefined ? options : { ...options, dictionary }))
  }

  onJobDone(job: ZlibJob, output: Buffer): void {
    const whole = this.#whole === undefined ? output : Buffer.concat([this.#whole, output])
    this.#whole = whole
    this.#at += job.taken
    if (isWhole(this.#at, this.#payload.length)) this.#finish(whole)
    else if (this.#streams === mostStreams) this.#finish(tooManyStreams())
    else this.#start()
  }

  onJobFailed(_job: ZlibJob, error: JobError): void {
    this.#finish(error)
  }

  #start(): void {
    this.#streams++
    const { length } = this.#payload
    const input =
      this.#at < length ? [this.#at === 0 ? this.#payload : this.#payload.subarray(this.#at), tail] : [tail.subarray(this.#at - length)]
    const produced = this.#whole === undefined ? 0 : this.#whole.length
    this.#job = new ZlibJob(this, input, this.#mostLength - produced)
    this.#job.start()
  }

  #finish(result: Buffer | typeof tooLong | Error): void {
    this.#job = undefined
    this.#owner.onInflated(this, result)
  }
}
