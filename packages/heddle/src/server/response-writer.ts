import { noFields, responseHead, withoutField, type Exchange, type Fields } from '../http/index.ts'
import { cancelSource, encoded, fieldsFrom, type BodySource, type TrailersInit } from '../web/index.ts'

const scratch = Buffer.allocUnsafeSlow(16_384)
const { utf8Write } = Buffer.prototype as unknown as {
  utf8Write(this: Uint8Array, text: string, at: number, byteCount: number): number
}
/** UTF-8 of a string this long fits into `scratch` in any case. */
const scratchText = scratch.length / 3

/** Sends a whole response whose content is a string. `hasContent` false: to HEAD, the head only. */
export function sendText(exchange: Exchange, status: number, fields: Fields, text: string, hasContent: boolean): void {
  if (text.length > scratchText) {
    sendBytes(exchange, status, fields, encoded(text), hasContent)
    return
  }
  const length = writeText(text)
  exchange.sendHead(responseHead(status, withLength(fields, length)), !hasContent || length === 0)
  if (hasContent && length > 0) exchange.sendData(scratch, 0, length, true)
}

/** As `sendText`. Large content is sent as it lies there, not copied. */
export function sendBytes(exchange: Exchange, status: number, fields: Fields, bytes: Uint8Array, hasContent: boolean): void {
  const { length } = bytes
  exchange.sendHead(responseHead(status, withLength(fields, length)), !hasContent || length === 0)
  if (!hasContent || length === 0) return
  if (length <= scratch.length) exchange.sendData(bytes, 0, length, true)
  else exchange.sendOwned(bytes, true)
}

/** Writes `text` to `scratch`; returns how many bytes it took. Short ASCII is quicker by hand. */
function writeText(text: string): number {
  const { length } = text
  if (length <= 24) {
    let i = 0
    for (; i < length; i++) {
      const code = text.charCodeAt(i)
      if (code > 0x7f) break
      scratch[i] = code
    }
    if (i === length) return length
  }
  return utf8Write.call(scratch, text, 0, scratch.length)
}

/** `fields` with this content-length and no other. */
export function withLength(fields: Fields, length: number): Fields {
  const sized = withoutLength(fields)
  sized.push('content-length', `${length}`)
  return sized
}

/** A copy of `fields` without content-length. */
export function withoutLength(fields: Fields): string[] {
  return withoutField(fields, 'content-length')
}

/** Told how a {@link ResponsePump} ends. */
export interface PumpOwner {
  /** All content and trailers were handed over. */
  onPumped(): void
  /** The source, or what it gave, failed. */
  onPumpFailed(error: unknown): void
}

/**
 * Moves content from a source to an exchange after the head was sent: one chunk after the other,
 * as fast as the client takes them.
 */
export class ResponsePump {
  readonly #exchange: Exchange
  readonly #source: BodySource
  readonly #trailers: TrailersInit | undefined
  readonly #owner: PumpOwner
  #state: 'reading' | 'blocked' | 'over'

  constructor(exchange: Exchange, source: BodySource, trailers: TrailersInit | undefined, owner: PumpOwner) {
    this.#exchange = exchange
    this.#source = source
    this.#trailers = trailers
    this.#owner = owner
    this.#state = 'reading'
  }

  /** Reads and sends until the source has nothing yet, or the client is behind. */
  run(): void {
    this.#state = 'reading'
    try {
      while (this.#state === 'reading') {
        const chunk = this.#source.read()
        if (chunk instanceof Promise) {
          chunk.then(this.#onChunk, this.#onError)
          return
        }
        this.#take(chunk)
      }
    } catch (error) {
      this.#onError(error)
    }
  }

  /** The client has room again. */
  onWritable(): void {
    if (this.#state === 'blocked') this.run()
  }

  /** Nothing more can be sent, because of `reason`. */
  stop(reason: unknown): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    cancelSource(this.#source, reason)
  }

  readonly #onChunk = (chunk: Uint8Array | undefined): void => {
    if (this.#state === 'over') return
    try {
      this.#take(chunk)
    } catch (error) {
      this.#onError(error)
      return
    }
    if (this.#state === 'reading') this.run()
  }

  readonly #onError = (error: unknown): void => {
    if (this.#state === 'over') return
    this.#state = 'over'
    cancelSource(this.#source, error)
    this.#owner.onPumpFailed(error)
  }

  #take(chunk: Uint8Array | undefined): void {
    if (chunk === undefined) this.#finish()
    else if (chunk.length > 0 && !this.#exchange.sendOwned(chunk, false)) this.#state = 'blocked'
  }

  #finish(): void {
    if (this.#trailers === undefined) {
      this.#end(this.#source.trailers)
      return
    }
    this.#state = 'over'
    trailerFields(this.#trailers).then(
      (fields) => {
        try {
          this.#end(fields)
        } catch (error) {
          this.#owner.onPumpFailed(error)
        }
      },
      (error: unknown) => this.#owner.onPumpFailed(error),
    )
  }

  #end(trailers: Fields): void {
    if (trailers.length === 0) this.#exchange.sendData(scratch, 0, 0, true)
    else this.#exchange.sendTrailers(trailers)
    this.#state = 'over'
    this.#owner.onPumped()
  }
}

async function trailerFields(init: TrailersInit): Promise<Fields> {
  const headers = await (typeof init === 'function' ? init() : init)
  return headers === undefined ? noFields : fieldsFrom(headers)
}
