import { noFields, responseHead, withoutField, type Exchange, type Fields, type Head } from '../http/index.ts'
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
  const known = sentTexts[text.length & 15] as SentText
  if (known.text === text) {
    known.bytes ??= encoded(text)
    const { bytes } = known
    const head = known.fields === fields && known.status === status ? known.head : headOf(known, status, fields)
    exchange.sendHead(head, !hasContent || bytes.length === 0)
    if (hasContent && bytes.length > 0) exchange.sendData(bytes, 0, bytes.length, true)
    return
  }
  known.text = text
  known.bytes = undefined
  known.fields = neverSent
  const length = writeText(text)
  exchange.sendHead(sizedHead(status, fields, length), !hasContent || length === 0)
  if (hasContent && length > 0) exchange.sendData(scratch, 0, length, true)
}

/** Fields that no response has. */
const neverSent: Fields = []
const noHead = responseHead(200)

/** A text that was sent lately: many servers send the same again and again, and it is encoded once. */
class SentText {
  text: string
  /** Undefined until it came a second time. */
  bytes: Uint8Array | undefined
  /** The head that it was sent with, and what that was made of. */
  status: number
  fields: Fields
  head: Head

  constructor() {
    this.text = ''
    this.bytes = undefined
    this.status = 0
    this.fields = neverSent
    this.head = noHead
  }
}

/** The head of `known`, which was sent with another or with none. */
function headOf(known: SentText, status: number, fields: Fields): Head {
  known.head = sizedHead(status, fields, (known.bytes as Uint8Array).length)
  known.status = status
  known.fields = fields
  return known.head
}

const sentTexts = Array.from({ length: 16 }, () => new SentText())

/** As `sendText`. Large content is sent as it lies there, not copied. */
export function sendBytes(exchange: Exchange, status: number, fields: Fields, bytes: Uint8Array, hasContent: boolean): void {
  const { length } = bytes
  exchange.sendHead(sizedHead(status, fields, length), !hasContent || length === 0)
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

/** A head that is sent again and again. */
class SizedHead {
  status: number
  length: number
  fields: Fields
  head: Head

  constructor() {
    this.status = 0
    this.length = -1
    this.fields = noFields
    this.head = noHead
  }
}

const sizedHeads = Array.from({ length: 128 }, () => new SizedHead())

/**
 * The head of a response of this length. Fields are an array nobody changes, so the same array with the same
 * length is the same head; and engines recognise a head that they have encoded before.
 */
function sizedHead(status: number, fields: Fields, length: number): Head {
  const known = sizedHeads[(length ^ (fields.length << 4) ^ status) & 127] as SizedHead
  if (known.fields !== fields || known.length !== length || known.status !== status) {
    known.head = responseHead(status, withLength(fields, length))
    known.status = status
    known.length = length
    known.fields = fields
  }
  return known.head
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
  /** Content, or its end, is there: time to send the head, at the latest. What it throws fails the pump. */
  onPumpStart(): void
  /** All content and trailers were handed over. */
  onPumped(): void
  /** The source, or what it gave, failed. */
  onPumpFailed(error: unknown): void
}

/**
 * Moves content from a source to an exchange: one chunk after the other, as fast as the client takes
 * them. The head is sent with the first, or when the owner wants it to leave without (`start`); so a
 * source that fails at once can still be answered for.
 */
export class ResponsePump {
  readonly #exchange: Exchange
  readonly #source: BodySource
  readonly #trailers: TrailersInit | undefined
  readonly #owner: PumpOwner
  #state: 'reading' | 'blocked' | 'over'
  #started: boolean

  constructor(exchange: Exchange, source: BodySource, trailers: TrailersInit | undefined, owner: PumpOwner) {
    this.#exchange = exchange
    this.#source = source
    this.#trailers = trailers
    this.#owner = owner
    this.#state = 'reading'
    this.#started = false
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

  /** The head leaves, whether content is there or not. */
  start(): void {
    if (this.#started || this.#state === 'over') return
    try {
      this.#start()
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

  #start(): void {
    this.#started = true
    this.#owner.onPumpStart()
  }

  #take(chunk: Uint8Array | undefined): void {
    if (!this.#started) this.#start()
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
