import type { Codec, CodecSettings, CodecSink } from '../ws/index.ts'
import { Deflating, deflateNow, type DeflateOwner, type DeflateSetting } from './deflate.ts'
import { History } from './history.ts'
import { Inflating, inflateNow, tooLong, type InflateOwner, type InflateSetting } from './inflate.ts'

/** How hard the messages of a connection are compressed. It needs no agreement: the peer cannot tell. */
export interface CompressionOptions {
  /** zlib's level: 0 (none) to 9, or -1 for its default. Default -1. */
  readonly level?: number | undefined
  /** zlib's memory level: 1–9. Default 8. */
  readonly memoryLevel?: number | undefined
  /**
   * With context takeover: how many of the bytes sent before a message may refer to, up to the agreed
   * window. They are kept for each connection, and looked through again for each message; a message of more than
   * 16 KiB and more than four times as much does without. Default 4 KiB.
   */
  readonly contextSize?: number | undefined
}

/**
 * Bytes that are compressed or inflated at once, on this thread. A turn through the thread pool costs
 * 40–90 µs of CPU time whatever the size, which is more than these do.
 */
const mostNow = 16_384
/** What a payload may lead to on this thread; one that leads to more is begun anew in the thread pool. */
const mostInflatedNow = 131_072

/** 00 00 FF FF, which is left off at the end of a message (RFC 7692 §7.2.1). */
const tailLength = 4

/**
 * permessage-deflate by `node:zlib`: a compressor or decompressor lives for one message. Where neither
 * side keeps a context nothing is held in between, and one codec serves all connections. Context takeover
 * costs a connection the bytes its messages may refer to, not the quarter of a MiB of a compressor that waits.
 */
class ZlibCodec implements Codec, DeflateOwner, InflateOwner {
  readonly #deflate: DeflateSetting
  readonly #inflate: InflateSetting
  /** With context takeover: what was sent last. */
  readonly #sent: History | undefined
  /** What is in the thread pool, and for whom; most often nothing. */
  readonly #deflating: Map<CodecSink, Deflating>
  readonly #inflating: Map<CodecSink, Inflating>

  constructor(deflate: DeflateSetting, inflateWindowBits: number, sent: History | undefined, received: History | undefined) {
    this.#deflate = deflate
    this.#inflate = { windowBits: inflateWindowBits, history: received }
    this.#sent = sent
    this.#deflating = new Map()
    this.#inflating = new Map()
  }

  deflate(sink: CodecSink, buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const sent = this.#sent
    if (limit - start <= mostNow) {
      let output: Buffer
      try {
        output = deflateNow(this.#deflate, buffer, start, limit, sent?.window)
      } catch (error) {
        sink.codecFailed('deflate', error)
        return
      }
      // What goes in is what a later message refers to.
      sent?.append(buffer, start, limit)
      sink.deflated(output, 0, output.length - (end ? tailLength : 0), true)
      return
    }
    this.#deflating.set(sink, new Deflating(sink, end, this, this.#deflate, buffer.subarray(start, limit), sent?.window))
    sent?.append(buffer, start, limit)
  }

  onDeflated(deflating: Deflating, result: Buffer | Error): void {
    const { sink, end } = deflating
    this.#deflating.delete(sink)
    if (result instanceof Error) sink.codecFailed('deflate', result)
    else sink.deflated(result, 0, result.length - (end ? tailLength : 0), true)
  }

  resetDeflate(): void {
    this.#sent?.clear()
  }

  inflate(sink: CodecSink, buffer: Uint8Array, start: number, limit: number, kept: boolean, most: number): void {
    if (limit - start <= mostNow) {
      const result = inflateNow(this.#inflate, buffer, start, limit, Math.min(most, mostInflatedNow))
      if (result !== tooLong || most <= mostInflatedNow) {
        this.#inflated(sink, result)
        return
      }
    }
    const bytes = buffer.subarray(start, limit)
    const payload = kept ? bytes : Buffer.from(bytes)
    this.#inflating.set(sink, new Inflating(sink, this, this.#inflate, payload, most))
  }

  onInflated(inflating: Inflating, result: Buffer | typeof tooLong | Error): void {
    const { sink } = inflating
    this.#inflating.delete(sink)
    this.#inflated(sink, result)
  }

  #inflated(sink: CodecSink, result: Buffer | typeof tooLong | Error): void {
    if (result === tooLong) return sink.inflatedTooMuch()
    if (result instanceof Error) return sink.codecFailed('inflate', result)
    this.#inflate.history?.append(result, 0, result.length)
    sink.inflated(result, 0, result.length, true)
  }

  release(sink: CodecSink): void {
    this.#deflating.get(sink)?.cancel()
    this.#deflating.delete(sink)
    this.#inflating.get(sink)?.cancel()
    this.#inflating.delete(sink)
    // Of a codec that keeps a context, this is the only connection.
    this.#sent?.clear()
    this.#inflate.history?.clear()
  }
}

/** Codecs that keep nothing, by what they do. */
const shared = new Map<string, Codec>()

/** The codec for a connection that agreed on `settings`: one of its own if it keeps a context, else that of all with the same. */
export function zlibCodec(settings: CodecSettings, compression: CompressionOptions = {}): Codec {
  const { deflateWindowBits, deflateTakeover, inflateWindowBits, inflateTakeover } = settings
  const { level = -1, memoryLevel = 8, contextSize = 4096 } = compression
  const deflate: DeflateSetting = { windowBits: deflateWindowBits, level, memoryLevel }
  const size = deflateTakeover ? Math.min(contextSize, 2 ** deflateWindowBits) : 0
  if (size > 0 || inflateTakeover) {
    const sent = size > 0 ? new History(size) : undefined
    const received = inflateTakeover ? new History(2 ** inflateWindowBits) : undefined
    return new ZlibCodec(deflate, inflateWindowBits, sent, received)
  }
  const key = `${deflateWindowBits} ${level} ${memoryLevel} ${inflateWindowBits}`
  let codec = shared.get(key)
  if (codec === undefined) {
    codec = new ZlibCodec(deflate, inflateWindowBits, undefined, undefined)
    shared.set(key, codec)
  }
  return codec
}
