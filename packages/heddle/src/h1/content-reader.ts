import { noFields, type Fields, type ProtocolError } from '../http/index.ts'
import { ChunkedDecoder } from './chunked.ts'
import type { Http1Limits } from './limits.ts'
import { Framing } from './message.ts'

/** Delimits the content of the message that is being received (RFC 9112 §6.3), one piece per `read`. */
export class ContentReader {
  framing: Framing
  /** Octets of content still to come; only for `Length`. */
  remaining: number
  /** The piece the last `read` found: `buffer[contentStart, contentLimit)`, perhaps empty. */
  contentStart: number
  contentLimit: number
  ended: boolean
  trailers: Fields
  fault: ProtocolError | undefined
  private readonly limits: Http1Limits
  private chunked: ChunkedDecoder | undefined

  constructor(limits: Http1Limits) {
    this.framing = Framing.None
    this.remaining = 0
    this.contentStart = 0
    this.contentLimit = 0
    this.ended = false
    this.trailers = noFields
    this.fault = undefined
    this.limits = limits
    this.chunked = undefined
  }

  /** The next message's content is delimited by `framing`; `length` octets if that is `Length`. */
  start(framing: Framing, length: number): void {
    this.framing = framing
    this.remaining = length
    this.ended = false
    this.trailers = noFields
    if (framing === Framing.Chunked) {
      if (this.chunked === undefined) this.chunked = new ChunkedDecoder(this.limits)
      else this.chunked.reset()
    }
  }

  /** Reads one piece of content at `at` and returns where it stopped. */
  read(buffer: Uint8Array, at: number, limit: number): number {
    if (this.framing === Framing.Chunked) return this.readChunked(this.chunked as ChunkedDecoder, buffer, at, limit)
    let end = limit
    if (this.framing === Framing.Length) {
      if (limit - at >= this.remaining) {
        end = at + this.remaining
        this.ended = true
      }
      this.remaining -= end - at
    }
    this.contentStart = at
    this.contentLimit = end
    return end
  }

  private readChunked(chunked: ChunkedDecoder, buffer: Uint8Array, at: number, limit: number): number {
    const end = chunked.read(buffer, at, limit)
    this.contentStart = chunked.contentStart
    this.contentLimit = chunked.contentLimit
    this.fault = chunked.fault
    if (chunked.ended) {
      this.ended = true
      this.trailers = chunked.trailers
    }
    return end
  }
}
