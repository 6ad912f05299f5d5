import { encodeFrame, type PreparedMessage } from '../ws/index.ts'
import { deflateNow, usefulBits } from './deflate.ts'
import { aBoolean, anInteger, checkOptions, type OptionChecks } from './option-checks.ts'
import { bytesFrom } from './sendable.ts'

/** What `prepare` can be told. */
export interface PrepareOptions {
  /** Bytes are a text message; they are UTF-8, which is not checked. Default false. */
  readonly text?: boolean | undefined
  /** zlib's level: 0 to 9, or -1 for its default. Default -1. */
  readonly level?: number | undefined
}

const checks: OptionChecks<PrepareOptions> = { text: aBoolean, level: anInteger(-1, 9) }

/**
 * Encodes a message once, to be sent to any number of sockets by `post`, `write` or `SocketGroup.broadcast`. The
 * bytes are copied. It is compressed when the first socket needs that, on this thread, once for each size of
 * window that makes a difference: for messages of 16 KiB and less there is one form, and seven at the very most.
 * What it is compressed to refers to nothing before it. A connection with context takeover can send it all the
 * same; its next own message starts afresh.
 */
export function prepare(data: string | ArrayBufferView | ArrayBufferLike, options: PrepareOptions = {}): PreparedMessage {
  checkOptions('prepare', '', options, checks)
  const { text = false, level = -1 } = options
  if (typeof data === 'string') return new EncodedMessage(Buffer.from(data, 'utf8'), false, level)
  return new EncodedMessage(bytesFrom(data), !text, level)
}

/** 00 00 FF FF, which is left off (RFC 7692 §7.2.1). */
const tailLength = 4
const memoryLevel = 8

/** What a message comes to with one size of window. */
interface CompressedForm {
  readonly payload: Uint8Array
  frame: Uint8Array | undefined
}

class EncodedMessage implements PreparedMessage {
  readonly binary: boolean
  readonly payload: Uint8Array
  readonly frame: Uint8Array
  readonly #level: number
  /** By the bits of the window; null: compressing gains nothing. */
  readonly #compressed: (CompressedForm | null | undefined)[]

  constructor(payload: Uint8Array, binary: boolean, level: number) {
    const frame = encodeFrame(payload, binary, false)
    this.binary = binary
    this.frame = frame
    this.payload = frame.subarray(frame.length - payload.length)
    this.#level = level
    this.#compressed = []
  }

  compressedPayload(windowBits: number): Uint8Array | undefined {
    return this.#form(windowBits)?.payload
  }

  compressedFrame(windowBits: number): Uint8Array | undefined {
    const form = this.#form(windowBits)
    if (form !== undefined) form.frame ??= encodeFrame(form.payload, this.binary, true)
    return form?.frame
  }

  #form(windowBits: number): CompressedForm | undefined {
    const { payload } = this
    const bits = usefulBits(windowBits, payload.length)
    let form = this.#compressed[bits]
    if (form === undefined) {
      const output = deflateNow({ windowBits: bits, level: this.#level, memoryLevel }, payload, 0, payload.length, undefined)
      const length = output.length - tailLength
      // Of its own memory: a part of a larger buffer would keep all of it.
      form = length < payload.length ? { payload: Uint8Array.prototype.slice.call(output, 0, length), frame: undefined } : null
      this.#compressed[bits] = form
    }
    return form ?? undefined
  }
}
