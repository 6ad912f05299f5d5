import { availableParallelism } from 'node:os'
import type { DeflateRaw, InflateRaw } from 'node:zlib'
import { List, type Linked } from '../bytes/index.ts'

/**
 * Jobs of this thread that may be in the thread pool at once. Each has the memory of a compressor, so
 * however many connections have large messages to compress, this many times a quarter of a MiB is what they
 * take; and the pool has threads left for files and names.
 */
const mostRunning = Math.min(4, Math.max(2, availableParallelism()))

let running = 0
const waiting = new List<ZlibJob>()

/** Who gave a job away. */
export interface JobOwner {
  /** Makes what does the work, when there is room for it. */
  makeEngine(job: ZlibJob): DeflateRaw | InflateRaw
  /** `job` is done; `output` is its owner's. Not called after `cancel`. */
  onJobDone(job: ZlibJob, output: Buffer): void
  /** `job` failed. Not called after `cancel`. */
  onJobFailed(job: ZlibJob, error: JobError): void
}

/** Why a job failed: there was more output than was allowed, or zlib says what. */
export type JobError = 'too long' | Error

/** Bytes that are compressed or decompressed in the thread pool, first come first served. */
export class ZlibJob implements Linked {
  previous: Linked | undefined
  next: Linked | undefined
  /** Input bytes that zlib took: fewer than there are if DEFLATE data comes to an end before. */
  taken: number
  #owner: JobOwner | undefined
  #input: readonly Uint8Array[]
  readonly #mostLength: number
  #engine: DeflateRaw | InflateRaw | undefined
  #output: Buffer[]
  #length: number

  /** `input` must not change until the job is over. `mostLength`: bytes of output. */
  constructor(owner: JobOwner, input: readonly Uint8Array[], mostLength: number) {
    this.previous = undefined
    this.next = undefined
    this.taken = 0
    this.#owner = owner
    this.#input = input
    this.#mostLength = mostLength
    this.#engine = undefined
    this.#output = []
    this.#length = 0
  }

  /** Runs it as soon as there is room. The owner is told later, never during this call. */
  start(): void {
    if (running < mostRunning) this.#run(this.#owner as JobOwner)
    else waiting.append(this)
  }

  /** Nobody wants the result any more: all that is kept for it is let go, but for the piece that is in the thread pool. */
  cancel(): void {
    if (this.#owner === undefined) return
    if (this.#engine === undefined) {
      waiting.remove(this)
      this.#forget()
    } else {
      this.#end()
    }
  }

  #run(owner: JobOwner): void {
    running++
    const engine = owner.makeEngine(this)
    this.#engine = engine
    engine.on('data', (chunk: Buffer) => this.#onOutput(chunk))
    engine.on('error', (error) => this.#fail(error))
    engine.on('end', () => this.#finish())
    for (const bytes of this.#input) engine.write(bytes)
    engine.end()
  }

  #onOutput(chunk: Buffer): void {
    this.#length += chunk.length
    if (this.#length > this.#mostLength) this.#fail('too long')
    else this.#output.push(chunk)
  }

  #finish(): void {
    const owner = this.#owner
    if (owner === undefined) return
    this.taken = (this.#engine as DeflateRaw | InflateRaw).bytesWritten
    const output = this.#output.length === 1 ? (this.#output[0] as Buffer) : Buffer.concat(this.#output, this.#length)
    this.#end()
    owner.onJobDone(this, output)
  }

  #fail(error: JobError): void {
    const owner = this.#owner
    if (owner === undefined) return
    this.#end()
    owner.onJobFailed(this, error)
  }

  /** Gives its place to the next. */
  #end(): void {
    this.#engine?.destroy()
    this.#forget()
    running--
    const next = waiting.shift()
    if (next !== undefined) next.#run(next.#owner as JobOwner)
  }

  #forget(): void {
    this.#owner = undefined
    this.#engine = undefined
    this.#input = []
    this.#output = []
  }
}

/** Jobs of this thread that are not over: those in the thread pool, and those that wait for it. */
export function openJobs(): number {
  return running + waiting.length
}
