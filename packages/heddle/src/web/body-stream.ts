import type { BodySource } from './body-source.ts'

/**
 * A byte stream over `source` that reads it only when it is read itself (high-water mark 0), so
 * back pressure reaches the connection.
 */
export function streamFrom(source: BodySource): ReadableStream<Uint8Array> {
  return new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      let chunk = source.read()
      if (chunk instanceof Promise) chunk = await chunk
      // A byte stream refuses empty chunks.
      while (chunk?.length === 0) chunk = await source.read()
      if (chunk === undefined) {
        controller.close()
        // Streams §3.3.9: a pending BYOB read is told of the end by a response of 0 bytes.
        controller.byobRequest?.respond(0)
      } else {
        controller.enqueue(chunk as Uint8Array<ArrayBuffer>)
      }
    },
    cancel(reason) {
      source.cancel(reason)
    },
  }) as ReadableStream<Uint8Array>
}

/** A stream that was read to its end: the `body` of a message whose content a method has consumed. */
export function consumedStream(): ReadableStream<Uint8Array> {
  const stream = new ReadableStream({
    type: 'bytes',
    start(controller) {
      controller.close()
    },
  }) as ReadableStream<Uint8Array>
  void stream.getReader().read()
  return stream
}

/** A stream as a source: reads it to the end, refuses chunks that are not bytes. */
export class StreamSource implements BodySource {
  readonly trailers: readonly string[]
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>

  /** Locks `stream`. */
  constructor(stream: ReadableStream<Uint8Array>) {
    this.trailers = []
    this.#reader = stream.getReader()
  }

  async read(): Promise<Uint8Array | undefined> {
    const { done, value } = await this.#reader.read()
    if (done) return undefined
    if (!(value instanceof Uint8Array)) {
      const error = new TypeError('The stream of a body gave a chunk that is no Uint8Array.')
      this.cancel(error)
      throw error
    }
    return value
  }

  take(): undefined {
    return undefined
  }

  cancel(reason: unknown): void {
    // An errored stream rejects; whoever reads it is told there.
    this.#reader.cancel(reason).catch(() => {})
  }
}
