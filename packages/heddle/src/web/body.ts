import { Readable } from 'node:stream'
import { trimBlanks } from '../http/index.ts'
import { encoded, BytesSource, type Source } from './body-init.ts'
import { cancelSource, collect, type BodySource } from './body-source.ts'
import { consumedStream, StreamSource, streamFrom } from './body-stream.ts'
import type { Headers } from './headers.ts'
import { urlencodedPairs } from './urlencoded.ts'

/** What a Request or Response keeps of its content; its own state extends it. One plain object is made faster than a class with private fields in two layers. */
export class Content {
  declare source: Source
  declare stream: ReadableStream<Uint8Array> | undefined
  /** A method has consumed the source, or it went to another message. */
  declare used: boolean

  constructor(source: Source) {
    this.source = source
    this.stream = asStream(source)
    this.used = false
  }
}

type Finder = (body: Body) => Content | undefined

let inFirst: Finder = () => undefined
let inSecond: Finder = inFirst

/** Each of the two classes of messages tells where it keeps its content; its finder gives undefined for the other's. */
export function findContent(finder: Finder): void {
  inSecond = inFirst
  inFirst = finder
}

function contentOf(body: Body): Content {
  const content = inFirst(body) ?? inSecond(body)
  if (content === undefined) throw new TypeError('Illegal invocation: this is no Request or Response.')
  return content
}

/** The source as it is, without claiming it. For engines' owners, which look before they send. */
export function peekSource(body: Body): Source {
  return contentOf(body).source
}

/** Gives a message made by this folder its source. */
export function setSource(body: Body, source: Source): void {
  const own = contentOf(body)
  own.source = source
  own.stream = asStream(source)
}

/** Claims the source, as a reading method does. Throws TypeError if the body is locked or was read. */
export function takeSource(body: Body): Source {
  return takeFrom(contentOf(body))
}

/** As `takeSource`, for who has the content at hand. */
export function takeFrom(own: Content): Source {
  const { source } = own
  if (source === null) return null
  if (isUnusable(own)) throw unusable()
  own.used = true
  const from = own.stream ?? source
  // What was read must be free to go though the message lives on; a source is kept, to be cancelled.
  if (!isSource(source)) own.source = ''
  return from
}

/** A second source with the same content. Throws TypeError if the body is locked or was read. */
export function cloneSource(body: Body): Source {
  const own = contentOf(body)
  if (isUnusable(own)) throw new TypeError('The body was read already or is locked: it cannot be cloned.')
  const { source } = own
  if (own.stream === undefined) {
    if (source === null || typeof source === 'string' || source instanceof Uint8Array || source instanceof Blob) return source
    const bytes = (source as BodySource).take()
    if (bytes !== undefined) {
      own.source = bytes
      return bytes
    }
  }
  const stream = body.body as ReadableStream<Uint8Array>
  const [mine, theirs] = stream.tee()
  const limit = collectLimits.get(stream)
  if (limit !== undefined) for (const branch of [mine, theirs]) collectLimits.set(branch, limit)
  own.stream = mine
  // From here on the source belongs to the tee, which cancels it when both branches are cancelled.
  own.source = mine
  return theirs as ReadableStream<Uint8Array>
}

/** The rest of the content is not wanted: frees what stands behind it, also when the stream is locked. */
export function cancelBody(body: Body, reason: unknown): void {
  const own = contentOf(body)
  const { source, stream } = own
  if (stream !== undefined && !stream.locked) {
    // Rejects if the stream is in error, which its reader is told.
    stream.cancel(reason).catch(() => {})
  } else if (isSource(source)) {
    own.used = true
    cancelSource(source, reason)
  }
}

/**
 * What Request and Response share: content, and the ways to read it (Fetch §6.4 "Body mixin").
 * A stream object is made only when `body` is asked for; the methods read what stands behind directly.
 */
export abstract class Body {
  abstract get headers(): Headers

  /** The content as a byte stream, or null if there is none. Made at the first call. */
  get body(): ReadableStream<Uint8Array> | null {
    const own = contentOf(this)
    if (own.source === null) return null
    return (own.stream ??= own.used ? consumedStream() : streamOf(own.source))
  }

  /** True once content was read or cancelled. */
  get bodyUsed(): boolean {
    return isUsed(contentOf(this))
  }

  /** Rejects with TypeError if the body is locked or was read before (as do all of these), or with the error that cut it. */
  async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = await bytesFrom(takeSource(this))
    return bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : bytes.slice().buffer
  }

  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = bytesFrom(takeSource(this))
    return bytes instanceof Promise ? await bytes : bytes
  }

  async text(): Promise<string> {
    const text = textFrom(takeSource(this))
    return typeof text === 'string' ? text : await text
  }

  /** Rejects with SyntaxError if the content is no JSON. */
  async json(): Promise<any> {
    const text = textFrom(takeSource(this))
    return JSON.parse(typeof text === 'string' ? text : await text)
  }

  /** The content in a Blob whose type is that of the message. */
  async blob(): Promise<Blob> {
    return nativeOf(this, await bytesFrom(takeSource(this))).blob()
  }

  /**
   * Parses application/x-www-form-urlencoded, and multipart/form-data with Node's parser. Holds the
   * whole content in memory: limit it. Rejects with TypeError for another type or malformed content.
   */
  async formData(): Promise<FormData> {
    const type = this.headers.get('content-type')?.split(';', 1)[0] as string | undefined
    const bytes = await bytesFrom(takeSource(this))
    if (type === undefined || trimBlanks(type).toLowerCase() !== 'application/x-www-form-urlencoded')
      return nativeOf(this, bytes).formData() as unknown as Promise<FormData>
    const form = new FormData()
    for (const [name, value] of urlencodedPairs(bytes)) form.append(name, value)
    return form
  }

  /** The content as a stream of strings, decoded from UTF-8. */
  textStream(): ReadableStream<string> {
    if (isUnusable(contentOf(this))) throw unusable()
    const stream = this.body ?? new Blob([]).stream()
    return stream.pipeThrough(new TextDecoderStream() as never)
  }
}

/** A response of Node's with `bytes`, whose parsers are asked. */
function nativeOf(body: Body, bytes: Uint8Array<ArrayBuffer>): globalThis.Response {
  const type = body.headers.get('content-type')
  return new globalThis.Response(bytes, type === null ? {} : { headers: { 'content-type': type } })
}

function isUsed({ source, stream, used }: Content): boolean {
  if (source === null) return false
  return used || (stream !== undefined && Readable.isDisturbed(stream as never))
}

function isUnusable(own: Content): boolean {
  return own.source !== null && (isUsed(own) || own.stream?.locked === true)
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

/** Most sources are strings, or none: they are told without the class, which is slow to get at. */
function asStream(source: Source): ReadableStream<Uint8Array> | undefined {
  return typeof source === 'object' && source !== null && source instanceof ReadableStream ? source : undefined
}
