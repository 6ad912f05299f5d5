import { latin1Write } from '../bytes/index.ts'
import { isFieldName, isFieldValue, UsageError, type Fields } from '../http/index.ts'
import { isDroppedTrailer } from './field-name.ts'
import { Framing } from './message.ts'
import type { SendQueue } from './send-queue.ts'

const cr = 0x0d
const lf = 0x0a
/** 14 hex digits, CRLF before the data, CRLF after it. */
const chunkOverhead = 18

/** Frames the content of the message that is being sent (RFC 9112 §6, §7.1). */
export class ContentWriter {
  framing: Framing
  /** Octets that must still be written; only for `Length`. */
  remaining: number
  private readonly queue: SendQueue

  constructor(queue: SendQueue) {
    this.framing = Framing.None
    this.remaining = 0
    this.queue = queue
  }

  start(framing: Framing, length: number): void {
    this.framing = framing
    this.remaining = length
  }

  /** Counts `byteCount` octets of content that are about to be written. Throws UsageError if that is more than was declared. */
  admit(byteCount: number): void {
    if (this.framing !== Framing.Length) return
    if (byteCount > this.remaining) throw new UsageError('more content than content-length says')
    this.remaining -= byteCount
  }

  /** True: all the content that was declared has been written. */
  get complete(): boolean {
    return this.framing !== Framing.Length || this.remaining === 0
  }

  /** Writes content, copying it. A message without content drops it: RFC 9110 §6.4.1. */
  write(buffer: Uint8Array, start: number, limit: number): void {
    // RFC 9112 §7.1: a chunk of size 0 would end the message.
    if (start === limit || this.framing === Framing.None) return
    const { queue } = this
    if (this.framing !== Framing.Chunked) {
      queue.append(buffer, start, limit)
      return
    }
    this.writeChunkSize(limit - start)
    queue.append(buffer, start, limit)
    this.writeLineEnd()
  }

  /** Writes content by reference. */
  writeOwned(chunk: Uint8Array): void {
    if (chunk.length === 0 || this.framing === Framing.None) return
    const chunked = this.framing === Framing.Chunked
    if (chunked) this.writeChunkSize(chunk.length)
    this.queue.appendOwned(chunk)
    if (chunked) this.writeLineEnd()
  }

  /** Ends the content. */
  end(): void {
    if (this.framing === Framing.Chunked) this.writeText('0\r\n\r\n')
  }

  /**
   * Ends the content with trailers; they are dropped where the framing has no place for them (RFC 9110
   * §6.5). Throws UsageError, having written nothing, for what cannot go on the wire.
   */
  endWithTrailers(fields: Fields): void {
    let text = '0\r\n'
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string
      const value = fields[i + 1] as string
      if (!isFieldName(name) || !isFieldValue(value)) throw new UsageError(`invalid trailer field ${JSON.stringify(name)}`)
      // RFC 9110 §6.5.1: a sender must not put these into trailers.
      if (!isDroppedTrailer(name)) text += `${name}: ${value}\r\n`
    }
    if (this.framing === Framing.Chunked) this.writeText(`${text}\r\n`)
  }

  private writeChunkSize(size: number): void {
    const { queue } = this
    queue.reserve(chunkOverhead)
    const { buffer } = queue
    let at = queue.limit
    if (size < 0x8000_0000) {
      for (let shift = (31 - Math.clz32(size)) & ~3; shift >= 0; shift -= 4) buffer[at++] = hexDigits.charCodeAt((size >> shift) & 15)
    } else {
      at += latin1Write(buffer, size.toString(16), at)
    }
    buffer[at++] = cr
    buffer[at++] = lf
    queue.commit(at)
  }

  private writeLineEnd(): void {
    const { queue } = this
    queue.reserve(2)
    queue.buffer[queue.limit] = cr
    queue.buffer[queue.limit + 1] = lf
    queue.commit(queue.limit + 2)
  }

  private writeText(text: string): void {
    const { queue } = this
    queue.reserve(text.length)
    queue.commit(queue.limit + latin1Write(queue.buffer, text, queue.limit))
  }
}

const hexDigits = '0123456789abcdef'
