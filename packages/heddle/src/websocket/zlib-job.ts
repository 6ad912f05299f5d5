import { availableParallelism } from 'node:os'
import { List, type Linked } from '../bytes/index.ts'
import type { EngineUser, ZlibEngine } from './zlib-engine.ts'

/**
 * Jobs of this thread that may be in the thread pool at once. Each has the memory of a compressor, so
 * however many connections have large messages to compress, this many times a quarter of a MiB is what they
 * take; and the pool has threads left for files and names.
 */
export const mostRunning: number = Math.min(4, Math.max(2, availableParallelism()))

let running = 0
const waiting = new List<ZlibJob>()

/** Who gave a job away. */
export interface JobOwner {
  /** Makes what does the work, when there is room for it. */
  makeEngine(job: ZlibJob): ZlibEngine
  /** `job` is done; `output` is its owner's. Not called after `cancel`. */
  onJobDone(job: ZlibJob, output: Buffer): void
  /** `job` failed. Not called after `cancel`. */
  onJobFailed(job: ZlibJob, error: JobError): void
}

/** Why a job failed: there was more output than was allowed, or zlib says what. */
export type JobError = 'too long' | Error

/** Bytes that are compressed or decompressed in the thread pool, first come first served. */
export class ZlibJob implements Linked, EngineUser {
  previous: Linked | undefined
  next: Linked | undefined
  /** Input bytes that zlib took: fewer than there are if DEFLATE data comes to an end before. */
  taken: number
  #owner: JobOwner | undefined
  #input: readonly Uint8Array[]
  readonly #mostLength: number
  #engine: ZlibEngine | undefined
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
      this.#end(false)
    }
  }

  #run(owner: JobOwner): void {
    running++
    const engine = owner.makeEngine(this)
    this.#engine = engine
    engine.start(this, this.#input)
  }

  onOutput(chunk: Buffer): void {
    this.#length += chunk.length
    if (this.#length > this.#mostLength) this.#fail('too long')
    else this.#output.push(chunk)
  }

  onOutputEnd(): void {
    const owner = this.#owner
    if (owner === undefined) return
    this.taken = (this.#engine as ZlibEngine).taken
    const output = this.#output.length === 1 ? (this.#output[0] as Buffer) : Buffer.concat(this.#output, this.#length)
    this.#end(true)
    owner.onJobDone(this, output)
  }

  onEngineError(error: Error): void {
    this.#fail(error)
  }

  #fail(error: JobError): void {
    const owner = this.#owner
    if (owner === undefined) return
    this.#end(false)
    owner.onJobFailed(this, error)
  }

  /** Gives its place to the next. */
  #end(completed: boolean): void {
    this.#engine?.stop(completed)
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
