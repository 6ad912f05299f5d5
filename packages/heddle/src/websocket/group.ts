import { CancelReason, TimeoutError } from '../http/index.ts'
import { Alarm, systemClock, type Clock } from '../io/index.ts'
import { CloseCode } from '../ws/index.ts'
import type { SocketCore, SocketWatcher } from './core.ts'
import { Heartbeat, type HeartbeatOptions } from './heartbeat.ts'
import { aBoolean, aClock, anything, aSize, aString, aSwitch, aWait, check, checkOptions, type OptionChecks } from './option-checks.ts'
import { prepare } from './prepared-message.ts'
import { checkClose, isPrepared } from './sendable.ts'
import { coreOf, Socket, type PostOptions, type Sendable } from './socket.ts'

/** How a {@link SocketGroup} behaves. */
export interface GroupOptions {
  /** Watches its sockets (see {@link Heartbeat}); true: with the defaults. Default false. */
  readonly heartbeat?: boolean | Omit<HeartbeatOptions, 'clock'> | undefined
  /** Default: the system's. */
  readonly clock?: Clock | undefined
}

/** What `SocketGroup.broadcast` can be told. */
export interface BroadcastOptions extends Pick<PostOptions, 'compress' | 'text'> {
  /** This one does not get it: the sender of a chat message. */
  readonly except?: Socket | undefined
  /** A socket with more than this many bytes still to send is left out: one slow reader is not to fill the memory. Default Infinity. */
  readonly maxBufferedAmount?: number | undefined
}

/** How `SocketGroup.close` closes. */
export interface GroupCloseOptions {
  /** Default 1001, going away. */
  readonly code?: number | undefined
  /** Default ''. */
  readonly reason?: string | undefined
  /** ms until those that are not closed are aborted. Default 10 s; each has its own `closeTimeout`, too. */
  readonly deadline?: number | undefined
}

/** What became of the sockets of a group that was closed. */
export interface GroupClosed {
  /** Those that ended well. */
  readonly clean: number
  /** Those that did not. */
  readonly failed: number
}

const groupChecks: OptionChecks<GroupOptions> = { heartbeat: aSwitch, clock: aClock }
const broadcastChecks: OptionChecks<BroadcastOptions> = {
  except: check('a Socket', (value) => value instanceof Socket),
  maxBufferedAmount: aSize,
  compress: aBoolean,
  text: aBoolean,
}
const closeChecks: OptionChecks<GroupCloseOptions> = { code: anything, reason: aString, deadline: aWait }

/**
 * Sockets that are told the same, or that end together: a room, or all of a server. One may be in any number of
 * groups; it leaves by itself when it is closed.
 */
export class SocketGroup implements Iterable<Socket>, AsyncDisposable {
  readonly #sockets: Set<Socket>
  readonly #clock: Clock
  readonly #heartbeat: Heartbeat | undefined
  readonly #watcher: SocketWatcher
  #closing: Required<GroupCloseOptions> | undefined
  #alarm: Alarm | undefined
  #clean: number
  #failed: number
  #settle: ((closed: GroupClosed) => void) | undefined
  #closed: Promise<GroupClosed> | undefined

  /** Throws UsageError for options that are unknown or wrong. */
  constructor(options: GroupOptions = {}) {
    checkOptions('SocketGroup', '', options, groupChecks)
    const { heartbeat = false, clock = systemClock() } = options
    this.#sockets = new Set()
    this.#clock = clock
    this.#heartbeat = heartbeat === false ? undefined : new Heartbeat({ ...(heartbeat === true ? {} : heartbeat), clock })
    this.#watcher = { onSocketClosed: (core) => this.#onSocketClosed(core) }
    this.#closing = undefined
    this.#alarm = undefined
    this.#clean = 0
    this.#failed = 0
    this.#settle = undefined
    this.#closed = undefined
  }

  /** Sockets in it, all of them not closed. */
  get size(): number {
    return this.#sockets.size
  }

  has(socket: Socket): boolean {
    return this.#sockets.has(socket)
  }

  [Symbol.iterator](): IterableIterator<Socket> {
    return this.#sockets.values()
  }

  /** Takes `socket` in, unless it is closed. While the group closes, the socket is closed with the others. */
  add(socket: Socket): this {
    const core = coreOf(socket)
    if (core.closed !== undefined || this.#sockets.has(socket)) return this
    this.#sockets.add(socket)
    core.watch(this.#watcher)
    this.#heartbeat?.watch(socket)
    if (this.#closing !== undefined) this.#closeOne(socket)
    return this
  }

  /** Lets `socket` go; false: it was not in. */
  delete(socket: Socket): boolean {
    if (!this.#sockets.delete(socket)) return false
    coreOf(socket).unwatch(this.#watcher)
    this.#heartbeat?.unwatch(socket)
    this.#maybeSettle()
    return true
  }

  /**
   * Posts a message to all; returns how many took it. It is encoded once, and compressed once for each setting
   * (see `prepare`). Throws UsageError for what is no message.
   */
  broadcast(data: Sendable, options: BroadcastOptions = {}): number {
    checkOptions('SocketGroup.broadcast', '', options, broadcastChecks)
    const { except, maxBufferedAmount = Infinity, compress, text } = options
    const message = isPrepared(data) ? data : prepare(data, { text })
    let count = 0
    for (const socket of this.#sockets) {
      if (socket === except || socket.bufferedAmount > maxBufferedAmount) continue
      const { state } = socket
      if (state !== 'open' && state !== 'connecting') continue
      socket.post(message, { compress })
      count++
    }
    return count
  }

  /**
   * Closes all, and those that are added from now on; fulfilled when all are closed, at the latest when those
   * that are left at the deadline were aborted. Further calls return the same promise. Throws UsageError for a
   * code that may not be sent.
   */
  close(options: GroupCloseOptions = {}): Promise<GroupClosed> {
    if (this.#closed !== undefined) return this.#closed
    checkOptions('SocketGroup.close', '', options, closeChecks)
    const { code = CloseCode.GoingAway, reason = '', deadline = 10_000 } = options
    checkClose(code, reason)
    this.#closing = { code, reason, deadline }
    const { promise, resolve } = Promise.withResolvers<GroupClosed>()
    this.#closed = promise
    this.#settle = resolve
    for (const socket of this.#sockets) this.#closeOne(socket)
    if (deadline !== Infinity && this.#sockets.size > 0) {
      this.#alarm = new Alarm(() => this.#abortAll(deadline))
      this.#clock.set(this.#alarm, this.#clock.now() + deadline)
    }
    this.#maybeSettle()
    return promise
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close().then(() => {})
  }

  #closeOne(socket: Socket): void {
    const { code, reason } = this.#closing as Required<GroupCloseOptions>
    socket.close(code as number, reason)
  }

  #abortAll(deadline: number): void {
    for (const socket of this.#sockets) {
      coreOf(socket).abort(new TimeoutError('close', `the WebSocket was not closed within ${deadline} ms`), CancelReason.Timeout)
    }
  }

  #onSocketClosed(core: SocketCore): void {
    this.#sockets.delete(core.socket)
    if (this.#closing === undefined) return
    if (core.closed?.wasClean === true) this.#clean++
    else this.#failed++
    this.#maybeSettle()
  }

  #maybeSettle(): void {
    if (this.#settle === undefined || this.#sockets.size > 0) return
    if (this.#alarm !== undefined) this.#clock.clear(this.#alarm)
    this.#settle({ clean: this.#clean, failed: this.#failed })
    this.#settle = undefined
  }
}
