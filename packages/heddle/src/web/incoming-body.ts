import { CancelledError, CancelReason, noFields, type Fields } from '../http/index.ts'
import { concatenated, type BodySource } from './body-source.ts'

/** Whoever receives the content for an {@link IncomingBody}: the owner of the exchange. */
export interface IncomingOwner {
  /** The program reads for the first time: the moment to say 100 (Continue), or to start a timer. */
  onBodyWanted(): void
  /** `byteCount` bytes were taken by the program: receive credit to give back. */
  onBodyConsumed(byteCount: number): void
  /** The rest is not wanted. Called at most once, and never after `end` or `fail`. */
  onBodyCancelled(reason: unknown): void
}

interface Waiter {
  resolve(chunk: Uint8Array | undefined): void
  reject(error: unknown): void
}

/** Free space kept behind a chunk, so that a peer that sends single bytes does not cost an array for each. */
const spare = 4096

/**
 * The content of a received message between an exchange's handler, which feeds it, and the program,
 * which may or may not read it. Bytes nobody read yet are copied and held, and are credited back
 * only when read: the receive window bounds them.
 */
export class IncomingBody implements BodySource {
  trailers: Fields
  #owner: IncomingOwner
  /** Bytes the message still announces, from content-length; -1 unknown. */
  #expected: number
  #chunks: Uint8Array[]
  /** The last chunk's array beyond what is used, while more may be appended to it. */
  #tail: Uint8Array | undefined
  #tailLength: number
  #held: number
  #state: 'open' | 'ended' | 'failed' | 'cancelled'
  #error: unknown
  #wanted: boolean
  #waiter: Waiter | undefined
  #onEnd: (() => void) | undefined

  /** `expected`: the content-length, or -1. */
  constructor(owner: IncomingOwner, expected: number) {
    this.trailers = noFields
    this.#owner = owner
    this.#expected = expected
    this.#chunks = []
    this.#tail = undefined
    this.#tailLength = 0
    this.#held = 0
    this.#state = 'open'
    this.#error = undefined
    this.#wanted = false
    this.#waiter = undefined
    this.#onEnd = undefined
  }

  /** Bytes received and not read yet. */
  get held(): number {
    return this.#held
  }

  /** True: nothing more will come, well or not. */
  get settled(): boolean {
    return this.#state !== 'open'
  }

  /** Feeds `buffer[start, limit)`; copies it. */
  push(buffer: Uint8Array, start: number, limit: number): void {
    const count = limit - start
    if (this.#state !== 'open' || count === 0) return
    const expected = this.#expected
    if (expected >= 0) this.#expected = expected > count ? expected - count : 0
    const waiter = this.#waiter
    if (waiter !== undefined) {
      this.#waiter = undefined
      const chunk = new Uint8Array(count)
      chunk.set(start === 0 && limit === buffer.length ? buffer : buffer.subarray(start, limit))
      this.#owner.onBodyConsumed(count)
      waiter.resolve(chunk)
      return
    }
    this.#hold(buffer, start, limit, expected)
  }

  /** The content is complete. */
  end(trailers: Fields = noFields): void {
    if (this.#state !== 'open') return
    this.#state = 'ended'
    this.trailers = trailers
    const waiter = this.#waiter
    this.#waiter = undefined
    waiter?.resolve(undefined)
    this.#settle()
  }

  /** The content was cut; reads reject with `error`, also for bytes that have arrived. */
  fail(error: unknown): void {
    if (this.#state !== 'open') return
    this.#state = 'failed'
    this.#error = error
    this.#drop()
    const waiter = this.#waiter
    this.#waiter = undefined
    waiter?.reject(error)
    this.#settle()
  }

  read(): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    if (this.#held > 0) {
      let chunk = this.#chunks.shift() as Uint8Array
      if (this.#chunks.length === 0 && this.#tail !== undefined) {
        chunk = this.#tail.subarray(0, this.#tailLength)
        this.#tail = undefined
      }
      this.#held -= chunk.length
      if (!this.#wanted) this.#want()
      this.#owner.onBodyConsumed(chunk.length)
      return chunk
    }
    if (this.#state === 'ended') return undefined
    if (this.#state !== 'open') throw this.error
    if (!this.#wanted) this.#want()
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject }
    })
  }

  take(): Uint8Array | undefined {
    if (this.#state !== 'ended' || this.#waiter !== undefined) return undefined
    const held = this.#held
    const chunks = this.#chunks
    if (this.#tail !== undefined) chunks[chunks.length - 1] = this.#tail.subarray(0, this.#tailLength)
    const whole = concatenated(chunks, held)
    this.#drop()
    this.#wanted = true
    if (held > 0) this.#owner.onBodyConsumed(held)
    return whole
  }

  cancel(reason: unknown): void {
    const held = this.#held
    if (this.#state === 'ended') {
      this.#drop()
      if (held > 0) this.#owner.onBodyConsumed(held)
      return
    }
    if (this.#state !== 'open') return
    this.#owner.onBodyCancelled(reason)
    this.abandon(reason)
  }

  /** The owner takes no more content, because the exchange is past it: later reads reject. */
  abandon(reason?: unknown): void {
    if (this.#state !== 'open') return
    this.#state = 'cancelled'
    this.#error = reason
    this.#drop()
    const waiter = this.#waiter
    this.#waiter = undefined
    waiter?.reject(this.error)
    this.#settle()
  }

  /** Calls `listener` once when nothing more will come, at once if that is so already. */
  whenSettled(listener: () => void): void {
    if (this.#state !== 'open') listener()
    else {
      const before = this.#onEnd
      this.#onEnd =
        before === undefined
          ? listener
          : () => {
              before()
              listener()
            }
    }
  }

  /** The trailer fields once the content is complete; rejects with what cut it, or with the reason of a cancel. */
  arrived(): Promise<Fields> {
    // Only this object is held by the waiting promise: whoever reads the content can still be collected.
    const arrived = new Promise<Fields>((resolve, reject) => {
      this.whenSettled(() => (this.#state === 'ended' ? resolve(this.trailers) : reject(this.error)))
    })
    // To be asked and not awaited is no reason to end the process.
    arrived.catch(() => {})
    return arrived
  }

  /** The error that cut the content, or the reason of the cancel; undefined while neither happened. */
  get error(): unknown {
    if (this.#state === 'cancelled') this.#error ??= new CancelledError(CancelReason.Cancelled, 'the rest of the body was given up')
    return this.#error
  }

  #settle(): void {
    const listener = this.#onEnd
    this.#onEnd = undefined
    listener?.()
  }

  #want(): void {
    this.#wanted = true
    this.#owner.onBodyWanted()
  }

  #hold(buffer: Uint8Array, start: number, limit: number, expected: number): void {
    const count = limit - start
    this.#held += count
    const tail = this.#tail
    if (tail !== undefined) {
      const free = tail.length - this.#tailLength
      if (count <= free) {
        tail.set(buffer.subarray(start, limit), this.#tailLength)
        this.#tailLength += count
        if (this.#tailLength === tail.length) this.#closeTail()
        return
      }
      this.#closeTail()
    }
    // A small message of known length gets its array at once, so all its pieces land in one.
    const size = expected > count && expected <= 65_536 ? expected : this.#chunks.length > 0 ? Math.max(count, spare) : count
    const chunk = new Uint8Array(size)
    chunk.set(start === 0 && limit === buffer.length ? buffer : buffer.subarray(start, limit))
    this.#chunks.push(chunk)
    if (count < size) {
      this.#tail = chunk
      this.#tailLength = count
    }
  }

  #closeTail(): void {
    const tail = this.#tail as Uint8Array
    if (this.#tailLength < tail.length) this.#chunks[this.#chunks.length - 1] = tail.subarray(0, this.#tailLength)
    this.#tail = undefined
  }

  #drop(): void {
    this.#chunks = []
    this.#tail = undefined
    this.#held = 0
  }
}
