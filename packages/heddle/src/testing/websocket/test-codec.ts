import { constants, deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Codec, CodecSettings, CodecSink } from '../../ws/index.ts'

/** How a {@link TestCodec} gets its work done. */
export interface TestCodecOptions {
  /** Calls `run` at once (the default), or when it likes. */
  readonly schedule?: (run: () => void) => void
}

/** What a message may refer to. */
class Context {
  readonly takeover: boolean
  readonly windowBits: number
  window: Buffer

  constructor(takeover: boolean, windowBits: number) {
    this.takeover = takeover
    this.windowBits = windowBits
    this.window = Buffer.alloc(0)
  }

  /** Options of zlib. Without `dictionary` for nothing: an empty one is refused. */
  get options(): { windowBits: number; dictionary?: Buffer } {
    return this.window.length === 0 ? { windowBits: this.windowBits } : { windowBits: this.windowBits, dictionary: this.window }
  }

  passed(bytes: Uint8Array): void {
    if (this.takeover) this.window = Buffer.from(Buffer.concat([this.window, bytes]).subarray(-(2 ** this.windowBits)))
  }
}

/** permessage-deflate for one connection, on the spot and the obvious way; deterministic, whenever it answers. */
export class TestCodec implements Codec {
  released: boolean
  /** Breaches of the contract of {@link Codec}. Assert that it is empty. */
  readonly faults: string[]
  readonly #sent: Context
  readonly #received: Context
  readonly #schedule: (run: () => void) => void
  #deflating: boolean
  #inflating: boolean

  constructor(settings: CodecSettings, options: TestCodecOptions = {}) {
    this.released = false
    this.faults = []
    this.#sent = new Context(settings.deflateTakeover, settings.deflateWindowBits)
    this.#received = new Context(settings.inflateTakeover, settings.inflateWindowBits)
    this.#schedule = options.schedule ?? ((run) => run())
    this.#deflating = false
    this.#inflating = false
  }

  deflate(sink: CodecSink, buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    if (this.#deflating) this.faults.push('deflate while one is under way')
    if (this.released) this.faults.push('deflate after release')
    this.#deflating = true
    const input = Buffer.from(buffer.subarray(start, limit))
    const deflated = deflateRawSync(input, { ...this.#sent.options, finishFlush: constants.Z_SYNC_FLUSH })
    this.#sent.passed(input)
    const result = Buffer.from(end ? deflated.subarray(0, -4) : deflated)
    this.#schedule(() => {
      this.#deflating = false
      sink.deflated(result, 0, result.length, false)
      result.fill(0xdb)
    })
  }

  resetDeflate(): void {
    if (this.#deflating) this.faults.push('resetDeflate while a deflate is under way')
    this.#sent.window = Buffer.alloc(0)
  }

  inflate(sink: CodecSink, buffer: Uint8Array, start: number, limit: number, kept: boolean, most: number): void {
    if (this.#inflating) this.faults.push('inflate while one is under way')
    if (this.released) this.faults.push('inflate after release')
    this.#inflating = true
    const input = buffer.subarray(start, limit)
    const bytes = kept ? input : Buffer.from(input)
    this.#schedule(() => {
      this.#inflating = false
      this.#inflate(sink, bytes, most)
    })
  }

  #inflate(sink: CodecSink, bytes: Uint8Array, most: number): void {
    let output: Buffer
    try {
      output = inflateRawSync(Buffer.concat([bytes, Buffer.from([0, 0, 0xff, 0xff])]), {
        ...this.#received.options,
        finishFlush: constants.Z_SYNC_FLUSH,
        maxOutputLength: Math.max(1, most),
      })
    } catch (error) {
      if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') sink.inflatedTooMuch()
      else sink.codecFailed('inflate', error)
      return
    }
    this.#received.passed(output)
    sink.inflated(output, 0, output.length, false)
    output.fill(0xdb)
  }

  release(): void {
    if (this.released) this.faults.push('released twice')
    this.released = true
  }
}
