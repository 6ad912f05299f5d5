import { cancelSource, type BodySource } from '../web/index.ts'
import type { Fields } from '../http/index.ts'

/** A source of which one hears what is taken from it, and whether it is waited for. */
export class WatchedSource implements BodySource {
  /** A chunk was asked for, and has not come yet. */
  reading: boolean
  readonly #source: BodySource
  readonly #onChunk: (chunk: Uint8Array) => void

  constructor(source: BodySource, onChunk: (chunk: Uint8Array) => void) {
    this.reading = false
    this.#source = source
    this.#onChunk = onChunk
  }

  get trailers(): Fields {
    return this.#source.trailers
  }

  async read(): Promise<Uint8Array | undefined> {
    this.reading = true
    try {
      const chunk = await this.#source.read()
      if (chunk !== undefined && chunk.length > 0) this.#onChunk(chunk)
      return chunk
    } finally {
      this.reading = false
    }
  }

  take(): undefined {
    return undefined
  }

  cancel(reason: unknown): void {
    cancelSource(this.#source, reason)
  }
}
