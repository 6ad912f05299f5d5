import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { combinedFieldValue, ProtocolError, trimBlanks, type Fields } from '../http/index.ts'
import type { BodySource } from '../web/index.ts'

/** One content coding (RFC 9110 §8.4.1): a decoder that streams, and one for content that is there. */
interface Coding {
  readonly name: string
  stream(firstByte: number): Transform
  whole(bytes: Uint8Array, options: { maxOutputLength: number }): Buffer
}

const gzip: Coding = {
  name: 'gzip',
  stream: () => zlib.createGunzip(),
  whole: (bytes, options) => zlib.gunzipSync(bytes, options),
}

const deflate: Coding = {
  name: 'deflate',
  stream: (firstByte) => (isZlib(firstByte) ? zlib.createInflate() : zlib.createInflateRaw()),
  whole: (bytes, options) => (isZlib(bytes[0] as number) ? zlib.inflateSync(bytes, options) : zlib.inflateRawSync(bytes, options)),
}

const brotli: Coding = {
  name: 'br',
  stream: () => zlib.createBrotliDecompress(),
  whole: (bytes, options) => zlib.brotliDecompressSync(bytes, options),
}

const codings = new Map<string, Coding>([
  ['gzip', gzip],
  // RFC 9110 §8.4.1.3: x-gzip is the same.
  ['x-gzip', gzip],
  ['deflate', deflate],
  ['br', brotli],
])

if (noticesCutZstd()) {
  codings.set('zstd', {
    name: 'zstd',
    stream: () => zlib.createZstdDecompress(),
    whole: (bytes, options) => zlib.zstdDecompressSync(bytes, options),
  })
}

/** Content codings that are undone, as `accept-encoding` lists them. */
export const acceptEncoding: string = [...codings.keys()].filter((name) => name !== 'x-gzip').join(', ')

/** Node has zstd from 22.15 on, but at first took content that was cut for complete: then it is not asked for. */
function noticesCutZstd(): boolean {
  if (typeof zlib.zstdDecompressSync !== 'function') return false
  try {
    // RFC 8878 §3.1.1: a frame with one raw block of six bytes, of which three are there.
    zlib.zstdDecompressSync(Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x06, 0x31, 0x00, 0x00, 0x68, 0x65, 0x64))
    return false
  } catch {
    return true
  }
}

/** RFC 9110 §8.4.1.2: deflate means the zlib format, but some servers send it without the wrapping; RFC 1950 §2.2 tells them apart. */
function isZlib(firstByte: number): boolean {
  return (firstByte & 0x0f) === 8
}

/** Codings undone at most: honest messages have one, or a second by mistake, and each multiplies what a byte can cost. */
const maxCodings = 2

/** Bytes of decoded content held in memory at most, unless the program says otherwise: half of what a string can hold. */
export const defaultMaxDecodedLength: number = 268_435_456

/**
 * `source` with the codings of `fields` undone, last applied first. Content with a coding that is not
 * known stays as it was sent, as in every other fetch. Throws ProtocolError for a list longer than 2.
 * `maxLength`: bytes that may be collected of it.
 */
export function decoded(source: BodySource, fields: Fields, maxLength: number = defaultMaxDecodedLength): BodySource {
  const list = combinedFieldValue(fields, 'content-encoding')
  if (list === undefined || list === 'identity') return source
  const names = list
    .toLowerCase()
    .split(',')
    .map(trimBlanks)
    .filter((name) => name !== '' && name !== 'identity')
  if (names.length > maxCodings)
    throw new ProtocolError(`content-encoding lists ${names.length} codings, ${maxCodings} are undone at most`, 0)
  const chain: Coding[] = []
  for (const name of names) {
    const coding = codings.get(name)
    if (coding === undefined) return source
    chain.push(coding)
  }
  return chain.reduceRight((from, coding) => new Decoder(coding, from, maxLength), source)
}

/** Content that has all arrived is decoded in one go up to this many bytes of output: a zlib stream costs ten times as much. */
const wholeLimit = 262_144

/** A {@link BodySource} that undoes one coding, in Node's thread pool, no faster than it is read. */
class Decoder implements BodySource {
  readonly decoded: boolean
  readonly maxCollected: number
  readonly #coding: Coding
  readonly #source: BodySource
  /** Made at the first byte: content of no bytes is valid in every coding. */
  #stream: Transform | undefined
  /** Taken from the source and not yet given to the stream. */
  #taken: Uint8Array | undefined
  #state: 'open' | 'ended' | 'failed'
  #error: unknown
  /** The stream works on a piece of input. */
  #busy: boolean
  #inputEnded: boolean
  #wake: (() => void) | undefined

  constructor(coding: Coding, source: BodySource, maxLength: number) {
    this.decoded = true
    this.maxCollected = maxLength
    this.#coding = coding
    this.#source = source
    this.#stream = undefined
    this.#taken = undefined
    this.#state = 'open'
    this.#error = undefined
    this.#busy = false
    this.#inputEnded = false
    this.#wake = undefined
  }

  get trailers(): Fields {
    return this.#source.trailers
  }

  take(): Uint8Array | undefined {
    if (this.#state !== 'open' || this.#stream !== undefined || this.#taken !== undefined) return undefined
    const bytes = this.#source.take()
    if (bytes === undefined) return undefined
    if (bytes.length > 0) {
      try {
        const whole = this.#coding.whole(bytes, { maxOutputLength: Math.min(wholeLimit, Math.max(1, this.maxCollected)) })
        this.#state = 'ended'
        return own(whole)
      } catch (error) {
        // Too large, or malformed: the stream gives what is good of it, and then tells.
        if ((error as NodeJS.ErrnoException).code === undefined) throw error
      }
      this.#taken = bytes
      return undefined
    }
    this.#state = 'ended'
    return bytes
  }

  read(): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    if (this.#state === 'failed') throw this.#error
    if (this.#state === 'ended') return undefined
    const chunk = this.#stream?.read() as Buffer | null | undefined
    return chunk === null || chunk === undefined ? this.#next() : own(chunk)
  }

  cancel(reason: unknown): void {
    if (this.#state !== 'open') return
    this.#source.cancel(reason)
    this.#fail(reason)
  }

  async #next(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.#stream?.read() as Buffer | null | undefined
      if (chunk !== null && chunk !== undefined) return own(chunk)
      if (this.#state === 'failed') throw this.#error
      if (this.#state === 'ended') return undefined
      if (this.#busy || this.#inputEnded) await this.#event()
      else await this.#feed()
    }
  }

  async #feed(): Promise<void> {
    let bytes = this.#taken
    this.#taken = undefined
    if (bytes === undefined) {
      try {
        const read = this.#source.read()
        bytes = read instanceof Promise ? await read : read
      } catch (error) {
        this.#fail(error)
        return
      }
    }
    // Cancelled meanwhile.
    if (this.#state !== 'open') return
    if (bytes === undefined) {
      this.#inputEnded = true
      if (this.#stream === undefined) this.#state = 'ended'
      else this.#stream.end()
    } else if (bytes.length > 0) {
      this.#stream ??= this.#open(bytes[0] as number)
      this.#busy = true
      this.#stream.write(bytes, () => {
        this.#busy = false
        this.#notify()
      })
    }
  }

  #open(firstByte: number): Transform {
    const stream = this.#coding.stream(firstByte)
    stream.on('readable', () => this.#notify())
    stream.on('end', () => {
      if (this.#state === 'open') this.#state = 'ended'
      this.#notify()
    })
    stream.on('error', (cause) => {
      if (this.#state !== 'open') return
      const error = new ProtocolError(`malformed ${this.#coding.name} content: ${cause.message}`, 0, 'PROTOCOL_ERROR', {
        cause,
        scope: 'stream',
      })
      this.#source.cancel(error)
      this.#fail(error)
    })
    return stream
  }

  #fail(error: unknown): void {
    this.#state = 'failed'
    this.#error = error
    this.#taken = undefined
    this.#stream?.destroy()
    this.#notify()
  }

  #event(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #notify(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}

/** A chunk that shares memory with nothing: zlib cuts several from one array, and a reader may transfer it away. */
function own(chunk: Uint8Array): Uint8Array {
  return chunk.byteLength === chunk.buffer.byteLength ? new Uint8Array(chunk.buffer) : new Uint8Array(chunk)
}
