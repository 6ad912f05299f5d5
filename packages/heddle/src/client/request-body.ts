import type { Exchange } from '../http/index.ts'
import { cancelSource, ContentSender, sourceOf, StreamSource, typeOf, type BodySource, type Source } from '../web/index.ts'

/** The content of a request: bytes, a Blob, or something that can be read once. */
export class RequestContent {
  /** Bytes, or -1 if not known before the end. */
  readonly length: number
  /** The content-type that goes with it where the program names none. */
  readonly type: string | undefined
  /** It can be sent again from its beginning. */
  readonly replayable: boolean
  /** `send` was called. */
  begun: boolean
  readonly #source: Uint8Array | Blob | ReadableStream<Uint8Array> | BodySource

  constructor(source: Exclude<Source, null>, type: string | undefined) {
    const content = typeof source === 'string' ? Buffer.from(source) : source
    this.#source = content
    this.type = type
    this.begun = false
    this.replayable = content instanceof Uint8Array || content instanceof Blob
    this.length = content instanceof Uint8Array ? content.length : content instanceof Blob ? content.size : -1
  }

  /** Sends it all, or returns a sender that goes on when the exchange can take more. */
  send(exchange: Exchange, onFailed: (error: unknown) => void): ContentSender | undefined {
    const source = this.#source
    this.begun = true
    if (source instanceof Uint8Array) {
      exchange.sendOwned(source, true)
      return undefined
    }
    const reader =
      source instanceof Blob
        ? new StreamSource(source.stream() as ReadableStream<Uint8Array>)
        : source instanceof ReadableStream
          ? new StreamSource(source)
          : source
    const sender = new ContentSender(exchange, reader)
    sender.run().catch(onFailed)
    return sender
  }

  /** It will not be sent: lets go of what stands behind it. Once it is being sent, that is the sender's task. */
  discard(reason: unknown): void {
    const source = this.#source
    if (this.begun || source instanceof Uint8Array || source instanceof Blob) return
    if (!(source instanceof ReadableStream)) cancelSource(source, reason)
    else if (!source.locked) source.cancel(reason).catch(() => {})
  }
}

/** The content for a `body` option. Bytes are copied: the program may go on to use its array (Fetch §6.3). */
export function requestContent(body: unknown): RequestContent {
  if (typeof body === 'string') return new RequestContent(body, 'text/plain;charset=UTF-8')
  const source = sourceOf(body)
  if (source === null) throw new TypeError('fetch: body is null')
  return new RequestContent(source instanceof Uint8Array ? new Uint8Array(source) : source, typeOf(body, source))
}
