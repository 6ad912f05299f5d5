import type { Clock } from '../io/index.ts'
import { Cancellation, Operation, type OperationOwner } from './operation.ts'
import { isPrepared, lasting, sizeOf } from './sendable.ts'
import { cutWrite } from './sending.ts'
import { coreOf, type Sendable, type Socket, type WriteOptions } from './socket.ts'

/** What a WebSocket sends as a message: what a socket does, and Blobs. */
export type SendableData = Sendable | Blob

/** False for what is sent as the text that it comes to. */
export function isSendable(data: unknown): data is SendableData {
  if (typeof data !== 'object' || data === null) return typeof data === 'string'
  return (
    ArrayBuffer.isView(data) ||
    data instanceof ArrayBuffer ||
    data instanceof SharedArrayBuffer ||
    data instanceof Blob ||
    isPrepared(data as Sendable)
  )
}

/** Bytes of `data` as a message's payload. */
export function payloadSize(data: SendableData): number {
  return data instanceof Blob ? data.size : sizeOf(data)
}

/**
 * Messages behind a Blob, whose bytes are there only later, or before the WebSocket is open: they leave in
 * the order of their calls all the same. A WebSocket has one from the first such message on.
 */
export class SendQueue {
  /** Bytes of messages that wait here. */
  size: number
  #length: number
  #tail: Promise<unknown>

  /** Nothing leaves before `start` is fulfilled; nothing at all if it is rejected. */
  constructor(start: Promise<unknown>) {
    this.size = 0
    this.#length = 0
    this.#tail = start
  }

  get isEmpty(): boolean {
    return this.#length === 0
  }

  /** `data` is given to `send` after all that waits, or why not to `fail`. Its bytes are free again after the call. */
  push(data: SendableData, send: (data: Sendable) => void, fail: (error: unknown) => void): void {
    const size = payloadSize(data)
    const content = contentOf(data)
    this.size += size
    this.#append(async () => {
      const sendable = await content
      this.size -= size
      send(sendable)
    }, fail)
  }

  /** Calls `task` after all that waits was sent, or could not be. */
  after(task: () => void): void {
    this.#append(task, task)
  }

  #append(task: () => unknown, fail: (error: unknown) => void): void {
    this.#length++
    const turn = this.#tail.then(task)
    const done = (): void => void this.#length--
    turn.then(done, (error: unknown) => {
      done()
      fail(error)
    })
    this.#tail = turn
  }
}

/** A `write` that waits for its turn. Its time runs from the call on. */
export class QueuedWrite implements OperationOwner {
  readonly #operation: Operation
  readonly #options: WriteOptions | undefined
  #over: boolean
  /** It is being sent. */
  #socket: Socket | undefined

  /** The signal is not aborted. */
  constructor(options: WriteOptions | undefined, clock: Clock) {
    const { signal, deadline = Infinity } = options ?? {}
    const operation = new Operation()
    this.#operation = operation
    this.#options = options
    this.#over = false
    this.#socket = undefined
    if (signal !== undefined || deadline !== Infinity) {
      operation.cancellation = new Cancellation(operation, this, clock, signal, deadline, 'send')
    }
  }

  get promise(): Promise<void> {
    return this.#operation.promise as Promise<void>
  }

  run(socket: Socket, data: Sendable): void {
    if (this.#over) return
    this.#socket = socket
    const written = socket.write(data, { ...this.#options, signal: undefined, deadline: undefined })
    written.then(
      () => {
        if (!this.#over) this.#operation.fulfill(undefined)
      },
      (error: unknown) => this.fail(error),
    )
  }

  fail(error: unknown): void {
    if (!this.#over) this.#operation.cancel(error, false)
  }

  onCancelled(operation: Operation, reason: unknown, timedOut: boolean): void {
    this.#over = true
    operation.cancel(reason, timedOut)
    if (this.#socket !== undefined) cutWrite(coreOf(this.#socket), reason, timedOut)
  }
}

function contentOf(data: SendableData): Promise<ArrayBuffer> | Sendable {
  if (data instanceof Blob) {
    const content = data.arrayBuffer()
    // Looked at when its turn comes.
    content.catch(() => {})
    return content
  }
  return lasting(data, undefined)
}
