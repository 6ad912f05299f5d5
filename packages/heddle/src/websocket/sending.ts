import { List } from '../bytes/index.ts'
import { CancelledError, CancelReason, HeddleError, PeerError, type TimeoutError } from '../http/index.ts'
import { State, type WebSocketConnection } from '../ws/index.ts'
import type { SocketCore } from './core.ts'
import { Early } from './early.ts'
import { Cancellation, deadlineProblem, failure, Operation, type OperationOwner } from './operation.ts'
import { Pings } from './pings.ts'
import { lasting, send, sizeOf } from './sendable.ts'
import type { PingCallback, PostOptions, Sendable, WriteOptions } from './socket.ts'

const noPayload = new Uint8Array(0)

/**
 * What a socket sends, and who waits until it has left. The parts that many sockets never need (writes, Pings
 * with a callback, what came before the tunnel was open) are made when they do.
 */
export class Sending implements OperationOwner {
  readonly #core: SocketCore
  #early: Early | undefined
  #writes: List<Operation> | undefined
  #pings: Pings | undefined
  /** `post` returned false, and nobody was told that it may go on. */
  #blocked: boolean

  constructor(core: SocketCore) {
    this.#core = core
    this.#early = undefined
    this.#writes = undefined
    this.#pings = undefined
    this.#blocked = false
  }

  /** Bytes that wait for the tunnel to be open. */
  get earlySize(): number {
    return this.#early === undefined ? 0 : this.#early.size
  }

  post(data: Sendable, options: PostOptions | undefined): boolean {
    const { connection } = this.#core
    let goOn: boolean
    if (this.#core.isQueueFull) this.#overflow()
    if (connection !== undefined) goOn = send(connection, data, options)
    else {
      if (this.#core.state !== 'connecting') return false
      this.#postEarly(data, options, undefined)
      goOn = this.#core.canPost
    }
    if (!goOn) this.#blocked = true
    return goOn
  }

  write(data: Sendable, options: WriteOptions | undefined): Promise<void> {
    const signal = options?.signal
    const problem = options === undefined ? undefined : deadlineProblem(options.deadline)
    if (problem !== undefined) return Promise.reject(problem)
    if (signal?.aborted === true) return Promise.reject(signal.reason)
    const { connection } = this.#core
    let operation: Operation
    if (this.#core.isQueueFull) this.#overflow()
    try {
      if (connection === undefined) {
        if (this.#core.state !== 'connecting') return failure(this.#unsendable())
        operation = new Operation()
        this.#postEarly(data, options, operation)
      } else {
        const accepted = connection.messagesAccepted
        send(connection, data, options)
        if (connection.messagesAccepted === accepted) return failure(this.#unsendable())
        operation = new Operation()
        this.#awaitSent(connection, operation)
      }
    } catch (error) {
      return Promise.reject(error)
    }
    const deadline = options?.deadline ?? Infinity
    if (signal !== undefined || deadline !== Infinity) {
      operation.cancellation = new Cancellation(operation, this, this.#core.clock, signal, deadline, 'send')
    }
    return operation.promise as Promise<void>
  }

  /** The peer does not take what waits, and there is more: that is the end (WHATWG WebSockets, `send`: full). */
  #overflow(): void {
    const message = `${this.#core.bufferedAmount} bytes of messages wait for the peer, which is more than limits.maxBufferedAmount allows`
    this.#core.abort(new HeddleError('QUEUE_FULL', message), CancelReason.ExcessiveLoad)
  }

  /** `operation` is over when what was sent last has left. */
  #awaitSent(connection: WebSocketConnection, operation: Operation): void {
    operation.number = connection.messagesAccepted
    this.#writes ??= new List()
    this.#writes.append(operation)
  }

  #postEarly(data: Sendable, options: PostOptions | undefined, operation: Operation | undefined): void {
    const kept = lasting(data, options)
    this.early(
      (connection) => {
        send(connection, kept, options)
        if (operation !== undefined) this.#awaitSent(connection, operation)
      },
      (error) => operation?.fail(error),
      sizeOf(kept),
      operation,
    )
  }

  /** Runs `run` when the tunnel is open, or `drop` once it is clear that it never will be. */
  early(run: (connection: WebSocketConnection) => void, drop: (error: unknown) => void, size?: number, operation?: Operation): void {
    this.#early ??= new Early()
    this.#early.push(() => run(this.#core.connection as WebSocketConnection), drop, size, operation)
  }

  /** The tunnel is open. */
  open(connection: WebSocketConnection): void {
    this.#early?.run()
    this.#early = undefined
    if (this.#blocked && connection.writable) this.#core.soon(() => this.#tellWritable())
  }

  sent(connection: WebSocketConnection, writable: boolean): void {
    const writes = this.#writes
    if (writes !== undefined && writes.length > 0) {
      const { messagesSent } = connection
      for (let operation = writes.first; operation !== undefined && operation.number <= messagesSent; operation = writes.first) {
        writes.remove(operation)
        operation.fulfill(undefined)
      }
    }
    if (writable && this.#blocked && connection.state === State.Open) this.#tellWritable()
  }

  #tellWritable(): void {
    const { handler, socket } = this.#core
    this.#blocked = false
    handler?.onWritable?.(socket)
  }

  /** A write ends before its time. */
  onCancelled(operation: Operation, reason: unknown, timedOut: boolean): void {
    if (this.#core.connection === undefined) {
      // Nothing of it has left.
      this.#early?.remove(operation)
      operation.cancel(reason, timedOut)
      return
    }
    this.#writes?.remove(operation)
    operation.cancel(reason, timedOut)
    cutWrite(this.#core, reason, timedOut)
  }

  /** Why nothing can be sent. */
  #unsendable(): HeddleError {
    const { error, peerCode } = this.#core
    if (error !== undefined) return error
    if (peerCode === 0) return new CancelledError(CancelReason.NoError, 'this side has closed the WebSocket')
    return new PeerError('PEER_CLOSED', `the peer has closed the WebSocket (${peerCode})`, { wireCode: peerCode })
  }

  ping(payload: Uint8Array | undefined, callback: PingCallback | undefined): void {
    const core = this.#core
    const { connection } = core
    if (connection === undefined && core.state === 'connecting') {
      const kept = payload === undefined ? undefined : Uint8Array.from(payload)
      this.early(
        () => this.ping(kept, callback),
        () => callback !== undefined && core.soon(() => callback(undefined)),
      )
      return
    }
    if (connection?.state !== State.Open) {
      if (callback !== undefined) core.soon(() => callback(undefined))
      return
    }
    if (callback === undefined) {
      connection.sendPing(payload ?? noPayload)
      return
    }
    this.#pings ??= new Pings()
    // The caller's bytes are its own again after the call.
    const carried = payload === undefined ? this.#pings.payload() : Uint8Array.from(payload)
    connection.sendPing(carried)
    this.#pings.add(carried, core.clock.now(), callback)
  }

  receivePong(buffer: Uint8Array, start: number, limit: number): void {
    this.#pings?.receive(buffer, start, limit, this.#core.clock.now())
  }

  /** Nothing leaves any more: writes are told so. */
  endWrites(): void {
    const early = this.#early
    const writes = this.#writes
    if (early === undefined && (writes === undefined || writes.length === 0)) return
    const error = this.#unsendable()
    this.#early = undefined
    early?.drop(error)
    for (let operation = writes?.shift(); operation !== undefined; operation = writes?.shift()) operation.fail(error)
  }

  /** No Pong comes any more. Calls the program. */
  endPings(): void {
    this.#pings?.end()
  }
}

/** Ends the connection of a write that ends before its time: a part of its message may have left, so nothing can follow. */
export function cutWrite(core: SocketCore, reason: unknown, timedOut: boolean): void {
  if (timedOut) core.abort(reason as TimeoutError, CancelReason.Timeout)
  else core.abort(new CancelledError(CancelReason.Cancelled, 'the signal of a write was aborted', { cause: reason }))
}
