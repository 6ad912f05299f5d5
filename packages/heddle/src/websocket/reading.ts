import { List } from '../bytes/index.ts'
import type { Clock } from '../io/index.ts'
import { Cancellation, Operation, type OperationOwner } from './operation.ts'
import type { Message, ReadOptions } from './socket.ts'
import { bytesOf, textOf } from './text.ts'
import { Unread, type UnreadMessage } from './unread.ts'

/** The two ends of a socket without a handler: messages that wait for a `read`, or reads that wait for a message. */
export class Reading implements OperationOwner {
  readonly unread: Unread
  readonly #waiting: List<Operation>

  constructor() {
    this.unread = new Unread()
    this.#waiting = new List()
  }

  /** A read waits. */
  get isAwaited(): boolean {
    return this.#waiting.length > 0
  }

  /** `bytes`: what lies in the buffer, if it may be kept. */
  receive(buffer: Uint8Array, start: number, limit: number, binary: boolean, bytes: Uint8Array<ArrayBuffer> | undefined): void {
    const operation = this.#waiting.shift()
    if (operation === undefined) this.unread.push({ bytes: bytes ?? bytesOf(buffer, start, limit), binary })
    else operation.fulfill(binary ? (bytes ?? bytesOf(buffer, start, limit)) : textOf(buffer, start, limit))
  }

  /** A read for which there is no message yet; its signal is not aborted. `iterates`: for an iterator. */
  wait(options: ReadOptions | undefined, clock: Clock, iterates: boolean): Promise<unknown> {
    const operation = new Operation()
    operation.iterates = iterates
    this.#waiting.append(operation)
    const signal = options?.signal
    const deadline = options?.deadline ?? Infinity
    if (signal !== undefined || deadline !== Infinity) {
      operation.cancellation = new Cancellation(operation, this, clock, signal, deadline, 'read')
    }
    return operation.promise
  }

  /** A read has ended before its time. */
  onCancelled(operation: Operation, reason: unknown, timedOut: boolean): void {
    this.#waiting.remove(operation)
    operation.cancel(reason, timedOut)
  }

  /** No more messages come. `error`: it did not end well. */
  end(error: unknown): void {
    for (let operation = this.#waiting.shift(); operation !== undefined; operation = this.#waiting.shift()) {
      if (error === undefined) operation.fulfill(undefined)
      else operation.fail(error)
    }
  }
}

/** As a reader gets it. */
export function messageOf({ bytes, binary }: UnreadMessage): Message {
  return binary ? bytes : textOf(bytes, 0, bytes.length)
}
