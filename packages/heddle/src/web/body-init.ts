import { noFields, type Fields } from '../http/index.ts'
import type { BodySource } from './body-source.ts'
import { multipart } from './multipart.ts'

/**
 * What a Request or Response can be made of. Beyond the Fetch standard: an async iterable (of
 * bytes or strings), and a {@link BodySource}. Bytes are not copied: they must not be changed
 * until the message was sent.
 */
export type BodyInit =
  | string
  | ArrayBuffer
  | NodeJS.ArrayBufferView
  | Blob
  | FormData
  | URLSearchParams
  | ReadableStream
  | AsyncIterable<Uint8Array | string>

/** Where the content of a Body comes from; null: there is none. */
export type Source = null | string | Uint8Array | Blob | ReadableStream<Uint8Array> | BodySource

const encoder = new TextEncoder()

/** The UTF-8 of `text`. */
export function encoded(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text)
}

/** The source for `init` (Fetch §6.3 "extract a body"), for anything that is no string. */
export function sourceOf(init: unknown): Source {
  if (init instanceof Uint8Array) return init
  if (typeof init !== 'object' || init === null) return String(init)
  if (init instanceof ReadableStream) {
    if (init.locked) throw new TypeError('The body is a ReadableStream that is locked.')
    return init
  }
  if (init instanceof Blob) return init
  if (init instanceof URLSearchParams) return init.toString()
  if (init instanceof FormData) return multipart(init)
  if (ArrayBuffer.isView(init)) return new Uint8Array(init.buffer, init.byteOffset, init.byteLength)
  if (init instanceof ArrayBuffer || (typeof SharedArrayBuffer === 'function' && init instanceof SharedArrayBuffer))
    return new Uint8Array(init)
  if (isBodySource(init)) return init
  if (typeof (init as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === 'function') {
    return new IterableSource(init as AsyncIterable<Uint8Array | string>)
  }
  return String(init)
}

/** The content-type that goes with `init`, of which `source` was made, or undefined. */
export function typeOf(init: unknown, source: Source): string | undefined {
  if (init instanceof URLSearchParams) return 'application/x-www-form-urlencoded;charset=UTF-8'
  if (typeof source === 'string') return 'text/plain;charset=UTF-8'
  if (source instanceof Blob && source.type !== '') return source.type
  return undefined
}

function isBodySource(value: object): value is BodySource {
  const source = value as Partial<BodySource>
  return typeof source.read === 'function' && typeof source.take === 'function' && typeof source.cancel === 'function'
}

/** Bytes as a source, for a stream made of them: gives a copy, because a stream takes its chunks away from others. */
export class BytesSource implements BodySource {
  readonly trailers: Fields
  #bytes: Uint8Array | undefined

  constructor(bytes: Uint8Array) {
    this.trailers = noFields
    this.#bytes = bytes
  }

  read(): Uint8Array | undefined {
    return this.take()
  }

  take(): Uint8Array | undefined {
    const bytes = this.#bytes
    this.#bytes = undefined
    return bytes === undefined ? undefined : new Uint8Array(bytes)
  }

  cancel(): void {
    this.#bytes = undefined
  }
}

/** An async iterable as a source. */
class IterableSource implements BodySource {
  readonly trailers: Fields
  readonly #iterable: AsyncIterable<Uint8Array | string>
  #iterator: AsyncIterator<Uint8Array | string> | undefined
  #over: boolean

  constructor(iterable: AsyncIterable<Uint8Array | string>) {
    this.trailers = noFields
    this.#iterable = iterable
    this.#iterator = undefined
    this.#over = false
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#over) return undefined
    this.#iterator ??= this.#iterable[Symbol.asyncIterator]()
    const result = await this.#iterator.next()
    if (result.done === true) {
      this.#over = true
      return undefined
    }
    return bytesOf(result.value)
  }

  take(): undefined {
    return undefined
  }

  cancel(): void {
    if (this.#over) return
    this.#over = true
    // The iterable's cleanup may fail, at once or later; nobody is left who could be told.
    try {
      Promise.resolve(this.#iterator?.return?.()).catch(() => {})
    } catch {}
  }
}

/** A chunk of an async iterable. Throws TypeError for what is neither bytes nor a string. */
function bytesOf(chunk: unknown): Uint8Array {
  if (typeof chunk === 'string') return encoded(chunk)
  // A copy: the chunk may be a slice of a pooled Buffer, and a stream would detach the pool.
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength))
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk.slice(0))
  throw new TypeError('A chunk of the body is neither bytes nor a string.')
}
