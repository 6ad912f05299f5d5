import { lasting, sizeOf } from './sendable.ts'
import type { Sendable } from './socket.ts'

/** What a WebSocket sends as a message: what a socket does, and Blobs. */
export type SendableData = Sendable | Blob

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

function contentOf(data: SendableData): Promise<ArrayBuffer> | Sendable {
  if (data instanceof Blob) {
    const content = data.arrayBuffer()
    // Looked at when its turn comes.
    content.catch(() => {})
    return content
  }
  return lasting(data, undefined)
}
