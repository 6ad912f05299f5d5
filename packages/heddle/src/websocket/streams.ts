import type { SocketCore } from './core.ts'
import type { Message, Sendable, Socket } from './socket.ts'

/** The messages of a socket, one by one. */
export class MessageIterator implements AsyncIterableIterator<Message, undefined> {
  readonly #core: SocketCore

  constructor(core: SocketCore) {
    this.#core = core
  }

  next(): Promise<IteratorResult<Message, undefined>> {
    return this.#core.read(undefined, true) as Promise<IteratorResult<Message, undefined>>
  }

  /** Leaving a loop is not the end of the connection. */
  return(): Promise<IteratorResult<Message, undefined>> {
    return Promise.resolve({ value: undefined, done: true })
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Message, undefined> {
    return this
  }
}

/** The messages of `socket` as a stream that reads only when it is read itself, so back pressure reaches the peer. */
export function readableOf(socket: Socket): ReadableStream<Message> {
  return new ReadableStream<Message>(
    {
      async pull(controller) {
        const message = await socket.read()
        if (message === undefined) controller.close()
        else controller.enqueue(message)
      },
      cancel() {
        socket.close()
      },
    },
    { highWaterMark: 0 },
  )
}

/** A stream of which each chunk is a message to send. */
export function writableOf(socket: Socket): WritableStream<Sendable> {
  return new WritableStream<Sendable>({
    write(chunk) {
      return socket.write(chunk)
    },
    async close() {
      socket.close()
      const { wasClean, error } = await socket.closed
      if (!wasClean) throw error
    },
    abort(reason) {
      socket.abort(reason)
    },
  })
}
