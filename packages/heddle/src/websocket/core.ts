import { List } from '../bytes/index.ts'
import { CancelledError, CancelReason, PeerError, TimeoutError, UsageError, type Exchange, type HeddleError } from '../http/index.ts'
import { Alarm, systemClock, type Clock } from '../io/index.ts'
import { CloseCode, State, WebSocketConnection, type MessageHandler } from '../ws/index.ts'
import { Early } from './early.ts'
import { Cancellation, failure, Operation, type OperationOwner } from './operation.ts'
import { Pings } from './pings.ts'
import { messageOf, Reading } from './reading.ts'
import { checkClose, lasting, send, sizeOf } from './sendable.ts'
import type { Closed, SocketHandler } from './socket-handler.ts'
import type { SocketLimits, SocketOptions } from './socket-options.ts'
import { checkSocketOptions, connectionOptions, limitsOf } from './socket-settings.ts'
import type { PingCallback, PostOptions, ReadOptions, Sendable, Socket, WriteOptions } from './socket.ts'

/** Who wants to know that a socket is over, besides its handler. */
export interface SocketWatcher {
  onSocketClosed(core: SocketCore): void
}

const noPayload = new Uint8Array(0)

/**
 * What is behind a {@link Socket}: the engine below it, and everything that waits for something. The parts that
 * many sockets never need (reads, writes, Pings, what came too early) are made when they do.
 */
export class SocketCore implements MessageHandler, OperationOwner {
  readonly socket: Socket
  readonly exchange: Exchange
  readonly clock: Clock
  readonly #options: SocketOptions
  readonly #limits: SocketLimits
  /** Undefined until the tunnel is open. */
  connection: WebSocketConnection | undefined
  #handler: SocketHandler | undefined
  #early: Early | undefined
  #reading: Reading | undefined
  #writes: List<Operation> | undefined
  #pings: Pings | undefined
  #watchers: SocketWatcher[] | undefined

  /** `post` returned false, and nobody was told that it may go on. */
  #blocked: boolean
  /** `pause` was called. */
  #paused: boolean
  /** More is unread than may be. */
  #overfull: boolean
  /** The handler has yet to be given what came before it was set. */
  #catchingUp: boolean
  /** Nothing can be sent any more. */
  #closing: boolean
  #closeAlarm: Alarm | undefined
  /** The code of the peer's Close; 0: none came. */
  #peerCode: number
  /** What `abort` was called with, or a handler threw. */
  #error: HeddleError | undefined
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
    this.#options = options
    this.#limits = limitsOf(options.limits)
    this.connection = undefined
    this.#handler = undefined
    this.#early = undefined
    this.#reading = undefined
    this.#writes = undefined
    this.#pings = undefined
    this.#watchers = undefined
    this.#blocked = false
    this.#paused = false
    this.#overfull = false
    this.#catchingUp = false
    this.#closing = false
    this.#closeAlarm = undefined
    this.#peerCode = 0
    this.#error = undefined
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
    if (this.#paused) connection.pause()
    this.#early?.run()
    this.#early = undefined
    if (this.#closing) connection.discardMessages()
    else if (this.#blocked && connection.writable) this.#soon(() => this.#tellWritable())
  }

  get state(): 'connecting' | 'open' | 'closing' | 'closed' {
    if (this.closed !== undefined) return 'closed'
    if (this.#closing || this.#aborted) return 'closing'
    if (this.connection === undefined) return 'connecting'
    return this.connection.state === State.Open ? 'open' : 'closing'
  }

  get bufferedAmount(): number {
    return this.connection === undefined ? (this.#early?.size ?? 0) : this.connection.bufferedAmount
  }

  get canPost(): boolean {
    if (this.connection !== undefined) return this.connection.writable
    return this.state === 'connecting' && this.bufferedAmount < this.#limits.maxQueuedBytes
  }

  // ── Sending ─────────────────────────────────────────────────────────────────────────────────────

  post(data: Sendable, options: PostOptions | undefined): boolean {
    const { connection } = this
    let goOn: boolean
    if (connection !== undefined) goOn = send(connection, data, options)
    else {
      if (this.state !== 'connecting') return false
      this.#postEarly(data, options, undefined)
      goOn = this.canPost
    }
    if (!goOn) this.#blocked = true
    return goOn
  }

  write(data: Sendable, options: WriteOptions | undefined): Promise<void> {
    const { signal, deadline = Infinity } = options ?? {}
    if (signal?.aborted === true) return Promise.reject(signal.reason)
    const { connection } = this
    let operation: Operation
    try {
      if (connection === undefined) {
        if (this.state !== 'connecting') return failure(this.#unsendable())
        operation = new Operation()
        this.#postEarly(data, options, operation)
      } else {
        const accepted = connection.messagesAccepted
        send(connection, data, options)
        if (connection.messagesAccepted === accepted) return failure(this.#unsendable())
        operation = new Operation()
        this.#awaitSent(operation)
      }
    } catch (error) {
      return Promise.reject(error)
    }
    if (signal !== undefined || deadline !== Infinity) {
      operation.cancellation = new Cancellation(operation, this, this.clock, signal, deadline, 'send')
    }
    return operation.promise as Promise<void>
  }

  /** `operation` is over when what was sent last has left. */
  #awaitSent(operation: Operation): void {
    operation.number = (this.connection as WebSocketConnection).messagesAccepted
    this.#writes ??= new List()
    this.#writes.append(operation)
  }

  #postEarly(data: Sendable, options: PostOptions | undefined, operation: Operation | undefined): void {
    const kept = lasting(data, options)
    this.#early ??= new Early()
    const run = (): void => {
      send(this.connection as WebSocketConnection, kept, options)
      if (operation !== undefined) this.#awaitSent(operation)
    }
    this.#early.push(run, sizeOf(kept), operation)
  }

  onSent(messageCount: number, writable: boolean): void {
    if (messageCount > 0 && this.#writes !== undefined) {
      const writes = this.#writes
      const sent = (this.connection as WebSocketConnection).messagesSent
      for (let operation = writes.first; operation !== undefined && operation.number <= sent; operation = writes.first) {
        writes.remove(operation)
        operation.fulfill(undefined)
      }
    }
    if (writable && this.#blocked) this.#tellWritable()
  }

  #tellWritable(): void {
    this.#blocked = false
    this.#handler?.onWritable?.(this.socket)
  }

  /** A write ends before its time. A part of its message may have left, so nothing can follow. */
  onCancelled(operation: Operation, reason: unknown, timedOut: boolean): void {
    if (this.connection === undefined) {
      // Nothing of it has left.
      this.#early?.remove(operation)
      operation.cancel(reason, timedOut)
      return
    }
    this.#writes?.remove(operation)
    operation.cancel(reason, timedOut)
    if (timedOut) this.abort(reason as TimeoutError, CancelReason.Timeout)
    else this.abort(new CancelledError(CancelReason.Cancelled, 'the signal of a write was aborted', { cause: reason }))
  }

  /** Why nothing can be sent. */
  #unsendable(): HeddleError {
    const error = this.#error ?? this.closed?.error
    if (error !== undefined) return error
    const wireCode = this.#peerCode
    if (wireCode !== 0) return new PeerError('PEER_CLOSED', `the peer has closed the WebSocket (${wireCode})`, { wireCode })
    return new CancelledError(CancelReason.NoError, 'this side has closed the WebSocket')
  }

  ping(payload: Uint8Array | undefined, callback: PingCallback | undefined): void {
    const { connection } = this
    if (connection === undefined && this.state === 'connecting') {
      this.#early ??= new Early()
      this.#early.push(() => this.ping(payload, callback), 0, undefined)
      return
    }
    if (connection?.state !== State.Open) {
      if (callback !== undefined) this.#soon(() => callback(undefined))
      return
    }
    if (callback === undefined) {
      connection.sendPing(payload ?? noPayload)
      return
    }
    this.#pings ??= new Pings()
    const carried = payload ?? this.#pings.payload()
    connection.sendPing(carried)
    this.#pings.add(carried, this.clock.now(), callback)
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
    this.#soon(() => this.#catchUp(false))
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
  }

  /** As `Socket.read`; `iterates`: for an iterator. */
  read(options: ReadOptions | undefined, iterates: boolean): Promise<unknown> {
    const { signal, deadline = Infinity } = options ?? {}
    if (this.#handler !== undefined) return Promise.reject(new UsageError('the messages of this socket go to its handler'))
    if (signal?.aborted === true) return Promise.reject(signal.reason)
    const reading = (this.#reading ??= new Reading())
    const message = reading.unread.shift()
    if (message !== undefined) {
      const value = messageOf(message)
      this.#unreadFell(reading)
      return Promise.resolve(iterates ? { value, done: false } : value)
    }
    if (this.#aborted) return failure(this.#error)
    if (this.closed?.wasClean === false) return failure(this.closed.error)
    if (this.closed !== undefined) return Promise.resolve(iterates ? { value: undefined, done: true } : undefined)
    const operation = new Operation()
    operation.iterates = iterates
    reading.wait(operation)
    if (signal !== undefined || deadline !== Infinity) {
      operation.cancellation = new Cancellation(operation, reading, this.clock, signal, deadline, 'read')
    }
    return operation.promise
  }

  #unreadFell({ unread }: Reading): void {
    if (!this.#overfull || unread.size > this.#limits.maxUnreadSize / 2) return
    this.#overfull = false
    this.#applyPause()
  }

  /** Runs what calls the program, soon. */
  #soon(run: () => void): void {
    this.clock.soon(() => {
      try {
        run()
      } catch (cause) {
        this.#handlerFailed(cause)
      }
    })
  }

  /** Gives the handler what came before it was set. `ending`: a pause does not count any more. */
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

  /** Outside of the engine, which sees to those it calls itself. */
  #handlerFailed(cause: unknown): void {
    this.#catchingUp = false
    this.#reading?.unread.clear()
    if (this.closed !== undefined) return
    this.#error ??= new CancelledError(CancelReason.InternalError, 'the handler failed', { cause })
    this.connection?.close(CloseCode.InternalError)
    this.onClosing()
    this.connection?.discardMessages()
  }

  onPing(buffer: Uint8Array, start: number, limit: number): void {
    this.#handler?.onPing?.(this.socket, buffer.subarray(start, limit))
  }

  onPong(buffer: Uint8Array, start: number, limit: number): void {
    this.#pings?.receive(buffer, start, limit, this.clock.now())
    this.#handler?.onPong?.(this.socket, buffer.subarray(start, limit))
  }

  pause(): void {
    this.#paused = true
    this.#applyPause()
  }

  resume(): void {
    this.#paused = false
    if (this.#catchingUp) this.#soon(() => this.#catchUp(false))
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
    this.#early ??= new Early()
    this.#early.push(() => (this.connection as WebSocketConnection).close(code, reason), 0, undefined)
    this.onClosing()
  }

  onPeerClose(code: number, reason: string): void {
    this.#peerCode = code
    this.onClosing()
    this.#handler?.onPeerClose?.(this.socket, code, reason)
  }

  /** From now on there is a limit to the time that is left. */
  onClosing(): void {
    this.#closing = true
    if (this.#closeAlarm !== undefined || this.#aborted || this.closed !== undefined) return
    const { closeTimeout } = this.#limits
    this.#closeAlarm = new Alarm(() => {
      this.abort(new TimeoutError('close', `the WebSocket was not closed within ${closeTimeout} ms`), CancelReason.Timeout)
    })
    this.clock.set(this.#closeAlarm, this.clock.now() + closeTimeout)
    if (this.isHeldBack) this.#applyPause()
  }

  abort(error: HeddleError, reason: CancelReason = CancelReason.Cancelled): void {
    if (this.closed !== undefined || this.#aborted) return
    this.#aborted = true
    this.#error ??= error
    this.#stopWaiting(this.#error)
    this.#reading?.unread.clear()
    if (this.connection !== undefined) this.connection.abort(error, reason)
    else this.#soon(() => this.onClose(CloseCode.Abnormal, '', false, error))
  }

  /** Ends all that waits. `error`: it is not an end that was agreed on. */
  #stopWaiting(error: HeddleError | undefined): void {
    if (this.#closeAlarm !== undefined) this.clock.clear(this.#closeAlarm)
    this.#reading?.end(error)
    const unsent = error ?? this.#unsendable()
    this.#early?.drop((operation) => operation.fail(unsent))
    const writes = this.#writes
    for (let operation = writes?.shift(); operation !== undefined; operation = writes?.shift()) operation.fail(unsent)
  }

  onClose(code: number, reason: string, clean: boolean, error: HeddleError | undefined): void {
    const why = this.#error ?? error
    const wasClean = clean && this.#error === undefined
    const closed: Closed = { code, reason, wasClean, error: wasClean ? undefined : why }
    this.closed = closed
    this.#stopWaiting(closed.error)
    const watchers = this.#watchers
    this.#watchers = undefined
    if (watchers !== undefined) for (const watcher of watchers) watcher.onSocketClosed(this)
    this.#settleClosed?.(closed)
    try {
      this.#pings?.end()
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

  /** `watcher` is told of the end, unless it is over. */
  watch(watcher: SocketWatcher): void {
    this.#watchers ??= []
    this.#watchers.push(watcher)
  }

  unwatch(watcher: SocketWatcher): void {
    const index = this.#watchers?.indexOf(watcher) ?? -1
    if (index !== -1) this.#watchers?.splice(index, 1)
  }
}
