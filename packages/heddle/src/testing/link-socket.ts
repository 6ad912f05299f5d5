import { EventEmitter } from 'node:events'
import type { SocketLike } from '../io/index.ts'
import type { Link } from './link.ts'
import type { Pipe } from './pipe.ts'

type WriteDone = (error?: Error | null) => void
interface PendingWrite {
  readonly chunk: Uint8Array
  readonly done: WriteDone | undefined
}

/** As libuv reads. */
const readSize = 65_536

/**
 * One end of a link, with the manners of `net.Socket`: what `write` returns and when its callback
 * comes, `drain`, half-close, `error` before `close`, and that a paused socket sees neither FIN nor
 * RST. Where Node runs a callback in `process.nextTick`, this runs it in `world.tick`.
 * Tests run the same stories on this and on loopback sockets.
 */
export class LinkSocket extends EventEmitter implements SocketLike {
  readonly link: Link
  destroyed: boolean
  writableLength: number
  /** The FIN was read. */
  readableEnded: boolean
  /** `end` was called. */
  writableEnded: boolean
  bytesRead: number
  bytesWritten: number
  /** Calls of `write`. */
  writes: number
  readonly #out: Pipe
  readonly #in: Pipe
  /** As in Node: null until the first listener or `resume`. */
  #flowing: boolean | null
  #readPlanned: boolean
  #resetArrived: boolean
  #needsDrain: boolean
  #finished: boolean
  /** Being given to the kernel; those behind it wait in #waiting. */
  #writing: PendingWrite[]
  #written: number
  #waiting: PendingWrite[]

  constructor(link: Link, out: Pipe, incoming: Pipe) {
    super()
    this.link = link
    this.destroyed = false
    this.writableLength = 0
    this.readableEnded = false
    this.writableEnded = false
    this.bytesRead = 0
    this.bytesWritten = 0
    this.writes = 0
    this.#out = out
    this.#in = incoming
    this.#flowing = null
    this.#readPlanned = false
    this.#resetArrived = false
    this.#needsDrain = false
    this.#finished = false
    this.#writing = []
    this.#written = 0
    this.#waiting = []
  }

  /** The other end. */
  get peer(): LinkSocket {
    const [a, b] = this.link.ends
    return this === a ? b : a
  }

  override on(event: string, listener: (...args: never[]) => void): this {
    super.on(event, listener as (...args: unknown[]) => void)
    if (event === 'data' && this.#flowing !== false) this.resume()
    return this
  }

  override off(event: string, listener: (...args: never[]) => void): this {
    return super.off(event, listener as (...args: unknown[]) => void)
  }

  write(chunk: Uint8Array, done?: WriteDone): boolean {
    const { world, options } = this.link
    this.writes++
    if (this.writableEnded) {
      const error = failure('ERR_STREAM_WRITE_AFTER_END', 'write after end')
      world.tick(() => done?.(error))
      this.destroy(error)
      return false
    }
    if (this.destroyed) {
      world.tick(() => done?.(failure('ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed')))
      return false
    }
    this.writableLength += chunk.length
    const pending: PendingWrite = { chunk, done }
    if (this.#writing.length > 0) this.#waiting.push(pending)
    else {
      this.#writing.push(pending)
      if (options.writes === 'sync') this.#writeSome(true)
      else world.after(0, () => this.#writeSome(false))
    }
    const accepts = this.writableLength < options.highWaterMark
    if (!accepts) this.#needsDrain = true
    return accepts
  }

  end(): this {
    if (this.writableEnded) return this
    this.writableEnded = true
    this.link.world.tick(() => this.#maybeFinish())
    return this
  }

  destroy(error?: Error): this {
    // RFC 9293 §3.6.1: who closes with unread data says so with RST.
    this.#close(error, this.#in.unreadLength > 0)
    return this
  }

  /** `end`, then `destroy` once everything was given to the kernel. */
  destroySoon(): this {
    this.end()
    if (this.#finished) this.destroy()
    else this.once('finish', () => this.destroy())
    return this
  }

  resetAndDestroy(): this {
    this.#close(undefined, true)
    return this
  }

  pause(): this {
    this.#flowing = false
    return this
  }

  resume(): this {
    this.#flowing = true
    this.link.world.tick(() => this.maybeRead())
    return this
  }

  isPaused(): boolean {
    return this.#flowing === false
  }

  /** The link: something arrived, or the program wants to read on. */
  maybeRead(): void {
    const { unreadLength, ended } = this.#in
    if (this.#readPlanned || this.#flowing !== true || this.destroyed) return
    // Reading stops for good at the FIN: a RST behind it shows in a write only.
    if (this.readableEnded || (unreadLength === 0 && !this.#resetArrived && !ended)) return
    this.#readPlanned = true
    this.link.world.after(0, () => this.#read())
  }

  /** The link: there may be room again. */
  maybeWrite(): void {
    if (this.#writing.length > 0 && !this.destroyed) this.#writeSome(false)
  }

  /** The link: RST. Seen when reading, or by a write that is under way. */
  receiveReset(): void {
    if (this.destroyed || this.#resetArrived) return
    this.#resetArrived = true
    if (this.#writing.length > 0) this.#close(failure('ECONNRESET', 'write ECONNRESET'), false)
    else this.maybeRead()
  }

  /** The link: bytes arrived although this end is gone. */
  refuse(): void {
    this.#out.reset()
  }

  #read(): void {
    this.#readPlanned = false
    if (this.#flowing !== true || this.destroyed) return
    const { unreadLength, ended } = this.#in
    if (unreadLength > 0) {
      const chunk = this.#in.read(this.#readLength(Math.min(unreadLength, readSize)))
      this.bytesRead += chunk.length
      this.emit('data', chunk)
      if (this.link.options.overwriteRead) chunk.fill(0xdb)
    } else if (this.#resetArrived) {
      this.#close(failure('ECONNRESET', 'read ECONNRESET'), false)
    } else if (ended) {
      this.readableEnded = true
      this.link.world.tick(() => this.#finishReading())
    }
    this.maybeRead()
  }

  #readLength(available: number): number {
    const { options, world } = this.link
    if (options.splits === 'none') return available
    if (options.splits === 'bytewise') return 1
    return world.random.chance(0.5) ? available : world.random.integer(1, available)
  }

  #finishReading(): void {
    if (this.destroyed) return
    this.emit('end')
    if (!this.link.options.allowHalfOpen) this.end()
    if (this.#finished) this.destroy()
  }

  /** Gives the kernel what it has room for. `sync`: inside the program's `write`. */
  #writeSome(sync: boolean): void {
    if (this.destroyed) return
    if (this.#resetArrived) {
      const code = this.#in.ended ? 'EPIPE' : 'ECONNRESET'
      this.link.world.tick(() => this.#close(failure(code, `write ${code}`), false))
      return
    }
    while (this.#writing.length > 0) {
      const batchLength = this.#writing.reduce((sum, { chunk }) => sum + chunk.length, 0)
      let skip = this.#written
      for (const { chunk } of this.#writing) {
        if (skip >= chunk.length) {
          skip -= chunk.length
          continue
        }
        const count = Math.min(chunk.length - skip, this.#out.room)
        if (count > 0) this.#out.accept(Buffer.from(chunk.subarray(skip, skip + count)))
        this.#written += count
        this.bytesWritten += count
        if (count < chunk.length - skip) return
        skip = 0
      }
      this.#finishBatch(batchLength, sync)
      if (this.link.options.writes === 'late' && this.#writing.length > 0) {
        this.link.world.after(0, () => this.#writeSome(false))
        return
      }
    }
  }

  #finishBatch(batchLength: number, sync: boolean): void {
    const batch = this.#writing
    this.#writing = this.#waiting
    this.#waiting = []
    this.#written = 0
    this.writableLength -= batchLength
    const tell = (): void => {
      if (this.#needsDrain && !this.writableEnded && !this.destroyed && this.writableLength === 0) {
        this.#needsDrain = false
        this.emit('drain')
      }
      for (const { done } of batch) done?.(null)
      this.#maybeFinish()
    }
    if (sync) this.link.world.tick(tell)
    else tell()
  }

  #maybeFinish(): void {
    if (!this.writableEnded || this.#finished || this.destroyed || this.writableLength > 0) return
    this.#finished = true
    this.#out.finish()
    this.link.world.tick(() => {
      if (this.destroyed) return
      this.emit('finish')
      if (this.readableEnded) this.destroy()
    })
  }

  #close(error: Error | undefined, withReset: boolean): void {
    if (this.destroyed) return
    this.destroyed = true
    if (!this.#resetArrived) {
      if (withReset) this.#out.reset()
      else this.#out.finish()
    }
    const undone = [...this.#writing, ...this.#waiting]
    this.#writing = []
    this.#waiting = []
    this.link.world.tick(() => {
      for (const { done } of undone) done?.(error ?? failure('ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed'))
      if (error !== undefined) this.emit('error', error)
    })
    this.link.world.after(0, () => this.emit('close', error !== undefined))
  }
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
