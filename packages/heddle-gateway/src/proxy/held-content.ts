import type { Exchange } from 'heddle/http'

/** Copies of request content: what came before there was a connection, and what may have to be sent again. */
export class HeldContent {
  /** Bytes. */
  size: number
  private readonly chunks: Uint8Array[]

  constructor() {
    this.size = 0
    this.chunks = []
  }

  /** Keeps a copy of `buffer[start, limit)`, which must not be empty, and returns it. */
  add(buffer: Uint8Array, start: number, limit: number): Uint8Array {
    const copy = Buffer.allocUnsafe(limit - start)
    copy.set(buffer.subarray(start, limit))
    this.chunks.push(copy)
    this.size += copy.length
    return copy
  }

  /** Sends all of it and keeps it. `end`: the message ends with it. */
  sendTo(exchange: Exchange, end: boolean): void {
    const { chunks } = this
    const last = chunks.length - 1
    for (let i = 0; i <= last; i++) exchange.sendOwned(chunks[i] as Uint8Array, end && i === last)
  }
}
