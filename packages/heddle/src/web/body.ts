import { Readable } from 'node:stream'
import { trimBlanks } from '../http/index.ts'
import { encoded, BytesSource, type Source } from './body-init.ts'
import { cancelSource, collect, type BodySource } from './body-source.ts'
import { consumedStream, StreamSource, streamFrom } from './body-stream.ts'
import type { Headers } from './headers.ts'
import { urlencodedPairs } from './urlencoded.ts'

/** The source as it is, without claiming it. For engines' owners, which look before they send. */
export let peekSource: (body: Body) => Source
/** Gives a message made by this folder its source. */
export let setSource: (body: Body, source: Source) => void
/** Claims the source, as a reading method does. Throws TypeError if the body is locked or was read. */
export let takeSource: (body: Body) => Source
/** A second source with the same content. Throws TypeError if the body is locked or was read. */
export let cloneSource: (body: Body) => Source
/** The rest of the content is not wanted: frees what stands behind it, also when the stream is locked. */
export let cancelBody: (body: Body, reason: unknown) => void

/**
 * What Request and Response share: content, and the ways to read it (Fetch §6.4 "Body mixin").
 * A stream object is made only when `body` is asked for; the methods read what stands behind directly.
 */
export abstract class Body {
  #source: Source
  #stream: ReadableStream<Uint8Array> | undefined
  /** A method has consumed the source, or it went to another message. */
  #used: boolean

  static {
    peekSource = (body) => body.#source
    setSource = (body, source) => {
      body.#source = source
      body.#stream = source instanceof ReadableStream ? source : undefined
    }
    takeSource = (body) => body.#take()
    cloneSource = (body) => body.#clone()
    cancelBody = (body, reason) => body.#cancel(reason)
  }

  constructor(source: Source) {
    this.#source = source
    this.#stream = source instanceof ReadableStream ? source : undefined
    this.#used = false
  }

  abstract get headers(): Headers

  /** The content as a byte stream, or null if there is none. Made at the first call. */
  get body(): ReadableStream<Uint8Array> | null {
    if (this.#source === null) return null
    return (this.#stream ??= this.#used ? consumedStream() : streamOf(this.#source))
  }

  /** True once content was read or cancelled. */
  get bodyUsed(): boolean {
    if (this.#source === null) return false
    return this.#used || (this.#stream !== undefined && Readable.isDisturbed(this.#stream as never))
  }

  /** Rejects with TypeError if the body is locked or was read before (as do all of these), or with the error that cut it. */
  async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = await bytesFrom(this.#take())
    return bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : bytes.slice().buffer
  }

  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = bytesFrom(this.#take())
    return bytes instanceof Promise ? await bytes : bytes
  }

  async text(): Promise<string> {
    const text = textFrom(this.#take())
    return typeof text === 'string' ? text : await text
  }

  /** Rejects with SyntaxError if the content is no JSON. */
  async json(): Promise<any> {
    const text = textFrom(this.#take())
    return JSON.parse(typeof text === 'string' ? text : await text)
  }

  /** The content in a Blob whose type is that of the message. */
  async blob(): Promise<Blob> {
    return this.#native(await bytesFrom(this.#take())).blob()
  }

  /**
   * Parses application/x-www-form-urlencoded, and multipart/form-data with Node's parser. Holds the
   * whole content in memory: limit it. Rejects with TypeError for another type or malformed content.
   */
  async formData(): Promise<FormData> {
    const type = this.headers.get('content-type')?.split(';', 1)[0] as string | undefined
    const bytes = await bytesFrom(this.#take())
    if (type === undefined || trimBlanks(type).toLowerCase() !== 'application/x-www-form-urlencoded')
      return this.#native(bytes).formData() as unknown as Promise<FormData>
    const form = new FormData()
    for (const [name, value] of urlencodedPairs(bytes)) form.append(name, value)
    return form
  }

  /** The content as a stream of strings, decoded from UTF-8. */
  textStream(): ReadableStream<string> {
    if (this.#unusable()) throw unusable()
    const stream = this.body ?? new Blob([]).stream()
    return stream.pipeThrough(new TextDecoderStream() as never)
  }

  #native(bytes: Uint8Array<ArrayBuffer>): globalThis.Response {
    const type = this.headers.get('content-type')
    return new globalThis.Response(bytes, type === null ? {} : { headers: { 'content-type': type } })
  }

  #unusable(): boolean {
    return this.#source !== null && (this.bodyUsed || this.#stream?.locked === true)
  }

  /** The source, for the one who reads it to the end. Throws TypeError if it is not usable. */
  #take(): Source {
    const source = this.#source
    if (source === null) return null
    if (this.#unusable()) throw unusable()
    this.#used = true
    const from = this.#stream ?? source
    // What was read must be free to go though the message lives on; a source is kept, to be cancelled.
    if (!isSource(source)) this.#source = ''
    return from
  }

  #clone(): Source {
    if (this.#unusable()) throw new TypeError('The body was read already or is locked: it cannot be cloned.')
    const source = this.#source
    if (this.#stream === undefined) {
      if (source === null || typeof source === 'string' || source instanceof Uint8Array || source instanceof Blob) return source
      const bytes = (source as BodySource).take()
      if (bytes !== undefined) {
        this.#source = bytes
        return bytes
      }
    }
    const stream = this.body as ReadableStream<Uint8Array>
    const [mine, theirs] = stream.tee()
    const limit = collectLimits.get(stream)
    if (limit !== undefined) for (const branch of [mine, theirs]) collectLimits.set(branch, limit)
    this.#stream = mine
    // From here on the source belongs to the tee, which cancels it when both branches are cancelled.
    this.#source = mine
    return theirs as ReadableStream<Uint8Array>
  }

  #cancel(reason: unknown): void {
    const source = this.#source
    const stream = this.#stream
    if (stream !== undefined && !stream.locked) {
      // Rejects if the stream is in error, which its reader is told.
      stream.cancel(reason).catch(() => {})
    } else if (isSource(source)) {
      this.#used = true
      cancelSource(source, reason)
    }
  }
}

/** `maxCollected` of what stands behind a stream. */
const collectLimits = new WeakMap<ReadableStream, number>()

function unusable(): TypeError {
  return new TypeError('Body is unusable: it was read already, or its stream is locked.')
}

function isSource(source: Source): source is BodySource {
  return (
    source !== null &&
    typeof source === 'object' &&
    !(source instanceof Uint8Array || source instanceof Blob || source instanceof ReadableStream)
  )
}

function streamOf(source: Exclude<Source, null>): ReadableStream<Uint8Array> {
  if (source instanceof ReadableStream) return source
  if (source instanceof Blob) return source.stream() as ReadableStream<Uint8Array>
  const reader = sourceReader(source)
  const stream = streamFrom(reader)
  if (reader.maxCollected !== undefined) collectLimits.set(stream, reader.maxCollected)
  return stream
}

/** `source` for someone who reads it chunk by chunk. Locks a stream. */
export function sourceReader(source: Source): BodySource {
  if (source instanceof ReadableStream) return new StreamSource(source)
  if (source instanceof Blob) return new StreamSource(source.stream() as ReadableStream<Uint8Array>)
  if (source === null || typeof source === 'string') return new BytesSource(encoded(source ?? ''))
  return source instanceof Uint8Array ? new BytesSource(source) : source
}

/** All bytes of `source`; the caller owns them. No promise if they are there: most small messages have arrived whole. */
function bytesFrom(source: Source): Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>> {
  if (source === null) return new Uint8Array(0)
  if (typeof source === 'string') return encoded(source)
  if (source instanceof Uint8Array) return new Uint8Array(source)
  if (source instanceof Blob) return source.arrayBuffer().then((buffer) => new Uint8Array(buffer))
  const reader = sourceReader(source)
  const limit = source instanceof ReadableStream ? collectLimits.get(source) : reader.maxCollected
  return (reader.take() ?? collect(reader, limit)) as Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>
}

/** Encoding §6 "UTF-8 decode". */
function textFrom(source: Source): string | Promise<string> {
  if (typeof source === 'string') return withoutMark(source.toWellFormed())
  const bytes = source instanceof Uint8Array ? source : bytesFrom(source)
  return bytes instanceof Promise ? bytes.then(textOf) : textOf(bytes)
}

/** A byte order mark at the start is not part of the text. */
function textOf(bytes: Uint8Array): string {
  return withoutMark(utf8Slice.call(bytes, 0, bytes.length))
}

// The method behind toString('utf8'), for arrays that are no Buffer; replaces malformed octets as the standard wants.
const { utf8Slice } = Buffer.prototype as unknown as { utf8Slice(this: Uint8Array, start: number, limit: number): string }

function withoutMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}
