import { CancelledError, CancelReason, TimeoutError, UsageError, type Exchange, type HeddleError } from '../http/index.ts'
import { Alarm, systemClock, warnOfFault, type Clock } from '../io/index.ts'
import { CloseCode, State, WebSocketConnection, type MessageHandler } from '../ws/index.ts'
import { deadlineProblem, failure } from './operation.ts'
import { messageOf, Reading } from './reading.ts'
import { checkClose } from './sendable.ts'
import { Sending } from './sending.ts'
import type { Closed, SocketHandler } from './socket-handler.ts'
import type { SocketLimits, SocketOptions } from './socket-options.ts'
import { checkSocketOptions, connectionOptions, limitsOf } from './socket-settings.ts'
import type { ReadOptions, Socket } from './socket.ts'

/** What a message that waits to be sent counts beyond its bytes, so that empty ones count, too. */
const overhead = 32

/** Who wants to know that a socket is over, besides its handler. */
export interface SocketWatcher {
  /** Of a socket that was made with `opened: false`. */
  onSocketOpened?(core: SocketCore): void
  /** More is unread than may be: the peer is held back until it is read. */
  onSocketFull?(core: SocketCore): void
  onSocketClosed(core: SocketCore): void
}

/**
 * What is behind a {@link Socket}: the engine below it, the two directions, and the way to the end.
 *
 *                    open()          close(), the peer's Close or fault         onClose
 *     connecting ─────────────▶ open ─────────────────────────────────▶ closing ────────▶ closed
 *          │                     │                                         ▲
 *          └── close(), abort() ─┴────────────── abort() ──────────────────┘
 */
export class SocketCore implements MessageHandler {
  readonly socket: Socket
  readonly exchange: Exchange
  readonly clock: Clock
  readonly sending: Sending
  readonly #options: SocketOptions
  readonly #limits: SocketLimits
  /** Undefined until the tunnel is open. */
  connection: WebSocketConnection | undefined
  #handler: SocketHandler | undefined
  /** Made when the first message comes that no handler takes, or the first read. */
  #reading: Reading | undefined
  #watchers: SocketWatcher[] | undefined

  /** `pause` was called. */
  #paused: boolean
  /** More is unread than may be. */
  #overfull: boolean
  /** The handler has yet to be told what came before it was set. */
  #catchingUp: boolean
  /** Nothing can be sent any more. */
  #closing: boolean
  #closeAlarm: Alarm | undefined
  /** Quarters of `closeTimeout` in which nothing was taken, and what had been before. */
  #quietTicks: number
  #sentBefore: number
  /** The code of the peer's Close; 0: none came. */
  peerCode: number
  /** Why it does not end well: what `abort` was called with, what a handler threw, or what the engine says. */
  error: HeddleError | undefined
  #aborted: boolean
  closed: Closed | undefined
  /** The handler knows. */
  #toldClosed: boolean
  #settleClosed: ((closed: Closed) => void) | undefined
  #closedPromise: Promise<Closed> | undefined

  constructor(socket: Socket, exchange: Exchange, options: SocketOptions) {
    checkSocketOptions(options)
    this.socket = socket
    this.exchange = exchange
    this.clock = options.clock ?? systemClock()
    this.sending = new Sending(this)
    this.#options = options
    this.#limits = limitsOf(options.limits, options.role)
    this.connection = undefined
    this.#handler = undefined
    this.#reading = undefined
    this.#watchers = undefined
    this.#paused = false
    this.#overfull = false
    this.#catchingUp = false
    this.#closing = false
    this.#closeAlarm = undefined
    this.#quietTicks = 0
    this.#sentBefore = 0
    this.peerCode = 0
    this.error = undefined
    this.#aborted = false
    this.closed = undefined
    this.#toldClosed = false
    this.#settleClosed = undefined
    this.#closedPromise = undefined
    if (options.opened !== false) this.open()
  }

  open(): void {
    if (this.connection !== undefined) throw new UsageError('the socket is open already')
    if (this.#aborted) return this.exchange.cancel(CancelReason.Cancelled)
    const connection = new WebSocketConnection(this.exchange, this, connectionOptions(this.#options, this.#limits))
    this.connection = connection
    this.#applyPause()
    this.sending.open(connection)
    if (this.#watchers !== undefined) for (const watcher of this.#watchers) watcher.onSocketOpened?.(this)
  }

  get state(): 'connecting' | 'open' | 'closing' | 'closed' {
    if (this.closed !== undefined) return 'closed'
    if (this.#closing || this.#aborted) return 'closing'
    if (this.connection === undefined) return 'connecting'
    return this.connection.state === State.Open ? 'open' : 'closing'
  }

  get bufferedAmount(): number {
    return this.connection === undefined ? this.sending.earlySize : this.connection.bufferedAmount
  }

  /** Another message is one too many. */
  get isQueueFull(): boolean {
    const { connection } = this
    const waiting = connection === undefined ? 0 : connection.messagesAccepted - connection.messagesSent
    return this.bufferedAmount + waiting * overhead > this.#limits.maxBufferedAmount && !this.#closing && !this.#aborted
  }

  get canPost(): boolean {
    if (this.connection !== undefined) return this.connection.writable
    return this.state === 'connecting' && this.sending.earlySize < this.#limits.maxQueuedBytes
  }

  onSent(_messageCount: number, writable: boolean): void {
    this.sending.sent(this.connection as WebSocketConnection, writable)
  }

  /** Runs what calls the program, soon. */
  soon(run: () => void): void {
    this.clock.soon(() => {
      try {
        run()
      } catch (cause) {
        this.#handlerFailed(cause)
      }
    })
  }

  /** Outside of the engine, which sees to those it calls itself. */
  #handlerFailed(cause: unknown): void {
    this.#catchingUp = false
    this.#reading?.unread.clear()
    // It is over, or ends already: nothing is left that this could end.
    if (this.closed !== undefined || this.#aborted) return warnOfFault(cause)
    this.error ??= new CancelledError(CancelReason.InternalError, 'the handler failed', { cause })
    if (this.connection === undefined) return this.abort(this.error)
    this.connection.close(CloseCode.InternalError)
    this.onClosing()
    this.connection.discardMessages()
  }

  // ── Receiving ───────────────────────────────────────────────────────────────────────────────────

  get handler(): SocketHandler | undefined {
    return this.#handler
  }

  set handler(handler: SocketHandler | undefined) {
    const reading = this.#reading
    if (handler !== undefined && reading?.isAwaited === true) throw new UsageError('a read of this socket is pending')
    this.#handler = handler
    if (handler === undefined || this.#catchingUp) return
    const isLate = this.closed !== undefined && !this.#toldClosed
    if (!isLate && (reading === undefined || reading.unread.length === 0)) return
    this.#catchingUp = true
    this.soon(() => this.#catchUp(false))
  }

  onMessage(buffer: Uint8Array, start: number, limit: number, binary: boolean): void {
    if (this.#handler !== undefined && !this.#catchingUp) {
      this.#handler.onMessage(this.socket, buffer, start, limit, binary)
      return
    }
    const reading = (this.#reading ??= new Reading())
    // A message that has the whole of its memory to itself needs no copy.
    const whole = start === 0 && limit === buffer.buffer.byteLength && (this.connection as WebSocketConnection).keepMessage()
    reading.receive(buffer, start, limit, binary, whole ? new Uint8Array(buffer.buffer as ArrayBuffer) : undefined)
    if (this.#overfull || reading.unread.size <= this.#limits.maxUnreadSize) return
    this.#overfull = true
    this.#applyPause()
    if (this.#watchers !== undefined) for (const watcher of this.#watchers) watcher.onSocketFull?.(this)
  }

  /** As `Socket.read`; `iterates`: for an iterator. */
  read(options: ReadOptions | undefined, iterates: boolean): Promise<unknown> {
    const signal = options?.signal
    if (this.#handler !== undefined) return Promise.reject(new UsageError('the messages of this socket go to its handler'))
    const problem = options === undefined ? undefined : deadlineProblem(options.deadline)
    if (problem !== undefined) return Promise.reject(problem)
    if (signal?.aborted === true) return Promise.reject(signal.reason)
    const reading = (this.#reading ??= new Reading())
    const message = reading.unread.shift()
    if (message !== undefined) {
      const value = messageOf(message)
      this.#unreadFell(reading)
      return Promise.resolve(iterates ? { value, done: false } : value)
    }
    if (this.#aborted || this.closed?.wasClean === false) return failure(this.error)
    if (this.closed !== undefined) return Promise.resolve(iterates ? { value: undefined, done: true } : undefined)
    return reading.wait(options, this.clock, iterates)
  }

  /** Reads that were begun before there was a socket come first. Nothing has come yet. */
  adopt(reading: Reading): void {
    this.#reading = reading
  }

  #unreadFell({ unread }: Reading): void {
    if (!this.#overfull || unread.size > this.#limits.maxUnreadSize / 2) return
    this.#overfull = false
    this.#applyPause()
  }

  /** Tells the handler what came before it was set. `ending`: a pause does not count any more. */
  #catchUp(ending: boolean): void {
    const reading = this.#reading
    while (this.#catchingUp && this.#handler !== undefined && (ending || !this.#paused)) {
      const message = reading?.unread.shift()
      if (message === undefined) {
        this.#catchingUp = false
        this.#overfull = false
        this.#applyPause()
        this.#maybeTellClosed()
        return
      }
      this.#handler.onMessage(this.socket, message.bytes, 0, message.bytes.length, message.binary)
    }
    if (this.#handler === undefined) this.#catchingUp = false
  }

  onPing(buffer: Uint8Array, start: number, limit: number): void {
    this.#handler?.onPing?.(this.socket, buffer.subarray(start, limit))
  }

  onPong(buffer: Uint8Array, start: number, limit: number): void {
    this.sending.receivePong(buffer, start, limit)
    this.#handler?.onPong?.(this.socket, buffer.subarray(start, limit))
  }

  pause(): void {
    this.#paused = true
    this.#applyPause()
  }

  resume(): void {
    this.#paused = false
    if (this.#catchingUp) this.soon(() => this.#catchUp(false))
    this.#applyPause()
  }

  /** Nothing is taken from the peer, so nothing can be concluded from its silence. */
  get isHeldBack(): boolean {
    return this.#paused || this.#overfull
  }

  #applyPause(): void {
    const { connection } = this
    if (connection === undefined || this.closed !== undefined) return
    if (!this.isHeldBack) {
      if (connection.paused) connection.resume()
    } else if (this.#closing) {
      // The peer's Close has to be seen, whoever reads what comes before.
      connection.discardMessages()
    } else {
      connection.pause()
    }
  }

  // ── The end ─────────────────────────────────────────────────────────────────────────────────────

  close(code: number | undefined, reason: string): void {
    if (this.connection !== undefined) {
      const wasOpen = this.connection.state === State.Open
      this.connection.close(code, reason)
      if (wasOpen) this.onClosing()
      return
    }
    checkClose(code, reason)
    if (this.state !== 'connecting') return
    this.sending.early(
      (connection) => connection.close(code, reason),
      () => {},
    )
    this.onClosing()
  }

  onPeerClose(code: number, reason: string): void {
    this.peerCode = code
    this.onClosing()
    this.#handler?.onPeerClose?.(this.socket, code, reason)
  }

  /** From now on there is a limit to the time that is left. `error`: the peer broke a rule, or the handler threw. */
  onClosing(error?: HeddleError): void {
    this.error ??= error
    this.#closing = true
    if (this.#closeAlarm !== undefined || this.#aborted || this.closed !== undefined) return
    this.#closeAlarm = new Alarm(() => this.#closeTick())
    this.#armClose()
    if (this.isHeldBack) this.#applyPause()
  }

  /** Looks four times in each `closeTimeout`: what was given before the Close may take its time, as long as the peer takes it. */
  #closeTick(): void {
    const { connection } = this
    const { closeTimeout } = this.#limits
    const sent = connection?.bytesSent ?? 0
    const isMoving = connection !== undefined && connection.bufferedAmount > 0 && sent > this.#sentBefore
    this.#quietTicks = isMoving ? 0 : this.#quietTicks + 1
    this.#sentBefore = sent
    if (this.#quietTicks < 4) return this.#armClose()
    const error = new TimeoutError('close', `the WebSocket was not closed within ${closeTimeout} ms`)
    // If both have closed and only the tunnel is left, it has ended well all the same: the engine knows.
    if (connection === undefined) this.abort(error, CancelReason.Timeout)
    else connection.abort(error, CancelReason.Timeout)
  }

  #armClose(): void {
    this.clock.set(this.#closeAlarm as Alarm, this.clock.now() + this.#limits.closeTimeout / 4)
  }

  abort(error: HeddleError, reason: CancelReason = CancelReason.Cancelled): void {
    if (this.closed !== undefined || this.#aborted) return
    this.#aborted = true
    this.error ??= error
    this.#stopWaiting(this.error)
    this.#reading?.unread.clear()
    if (this.connection !== undefined) this.connection.abort(this.error, reason)
    else this.soon(() => this.onClose(CloseCode.Abnormal, '', false, error))
  }

  /** Ends all that waits. `error`: the end is not the one that was agreed on. */
  #stopWaiting(error: HeddleError | undefined): void {
    if (this.#closeAlarm !== undefined) this.clock.clear(this.#closeAlarm)
    this.#reading?.end(error)
    this.sending.endWrites()
  }

  onClose(code: number, reason: string, clean: boolean, error: HeddleError | undefined): void {
    this.error ??= error
    const closed: Closed = { code, reason, wasClean: clean && this.error === undefined, error: this.error }
    this.closed = closed
    this.#stopWaiting(this.error)
    const watchers = this.#watchers
    this.#watchers = undefined
    if (watchers !== undefined) for (const watcher of watchers) watcher.onSocketClosed(this)
    this.#settleClosed?.(closed)
    try {
      this.sending.endPings()
    } finally {
      this.#tellLast()
    }
  }

  #tellLast(): void {
    try {
      if (this.#catchingUp) this.#catchUp(true)
    } finally {
      this.#catchingUp = false
      this.#maybeTellClosed()
    }
  }

  #maybeTellClosed(): void {
    const { closed } = this
    const handler = this.#handler
    if (closed === undefined || handler === undefined || this.#toldClosed) return
    this.#toldClosed = true
    handler.onClose?.(this.socket, closed.code, closed.reason, closed.wasClean, closed.error)
  }

  get closedPromise(): Promise<Closed> {
    if (this.#closedPromise !== undefined) return this.#closedPromise
    if (this.closed !== undefined) return (this.#closedPromise = Promise.resolve(this.closed))
    const { promise, resolve } = Promise.withResolvers<Closed>()
    this.#settleClosed = resolve
    return (this.#closedPromise = promise)
  }

  /** `watcher` is told of the end. It is not closed yet. */
  watch(watcher: SocketWatcher): void {
    this.#watchers ??= []
    this.#watchers.push(watcher)
  }

  unwatch(watcher: SocketWatcher): void {
    const index = this.#watchers?.indexOf(watcher) ?? -1
    if (index !== -1) this.#watchers?.splice(index, 1)
  }
}
