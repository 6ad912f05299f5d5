import { CancelledError, CancelReason, noFields, type Fields } from '../http/index.ts'
import type { BodySource, IncomingBody } from '../web/index.ts'
import { decoded } from './decompress.ts'

/**
 * The safety net: when neither a Response nor its stream can be reached any more, what is left of
 * the content is discarded and its connection freed. Collection may come late or never, so programs
 * should read, cancel or dispose; but one that forgets does not lose a connection for good.
 */
const unread = new FinalizationRegistry<IncomingBody>((incoming) => incoming.cancel(forgotten))

const forgotten = new CancelledError(CancelReason.NoError, 'the response was collected before it was read')

/**
 * The content of a response for its reader: codings undone if `decompress` (see `decoded`), and, while more is to
 * come, watched. Of the two ends of content only the reader's is watched: `incoming` belongs to the
 * exchange, which lives as long as its connection.
 */
export function responseContent(incoming: IncomingBody, fields: Fields, decompress: boolean, maxDecodedLength: number): BodySource {
  let content: BodySource = incoming
  if (decompress) {
    try {
      content = decoded(incoming, fields, maxDecodedLength)
    } catch (error) {
      incoming.cancel(error)
      return new RefusedContent(error)
    }
  }
  // Nearly every small response has arrived in whole by now and holds no connection.
  if (incoming.settled) return content
  if (content === incoming) content = new WatchedContent(incoming)
  unread.register(content, incoming)
  return content
}

/** Content that cannot be read at all. */
class RefusedContent implements BodySource {
  readonly trailers: Fields
  readonly #error: unknown

  constructor(error: unknown) {
    this.trailers = noFields
    this.#error = error
  }

  read(): never {
    throw this.#error
  }

  take(): undefined {
    return undefined
  }

  cancel(): void {}
}

/** The reader's end of content, as an object of its own, because that is what gets collected. */
class WatchedContent implements BodySource {
  readonly #incoming: IncomingBody

  constructor(incoming: IncomingBody) {
    this.#incoming = incoming
  }

  get trailers(): Fields {
    return this.#incoming.trailers
  }

  read(): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    return this.#incoming.read()
  }

  take(): Uint8Array | undefined {
    return this.#incoming.take()
  }

  cancel(reason: unknown): void {
    this.#incoming.cancel(reason)
  }
}
