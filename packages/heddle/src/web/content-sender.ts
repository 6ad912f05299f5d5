import type { Exchange } from '../http/index.ts'
import { cancelSource, type BodySource } from './body-source.ts'

const nothing = new Uint8Array(0)

/** Carries content from a source to an exchange, as fast as the exchange takes it. */
export class ContentSender {
  /** Everything was handed over. */
  finished: boolean
  readonly #exchange: Exchange
  readonly #source: BodySource
  #stopped: boolean
  #resume: (() => void) | undefined

  constructor(exchange: Exchange, source: BodySource) {
    this.finished = false
    this.#exchange = exchange
    this.#source = source
    this.#stopped = false
    this.#resume = undefined
  }

  /** Rejects with what the source, or the exchange for content of the wrong length, throws. */
  async run(): Promise<void> {
    for (;;) {
      let chunk = this.#source.read()
      if (chunk instanceof Promise) chunk = await chunk
      if (this.#stopped) return
      if (chunk === undefined) {
        this.finished = true
        this.#exchange.sendData(nothing, 0, 0, true)
        return
      }
      // Copied rather than kept: generators like to fill one array again and again.
      if (chunk.length > 0 && !this.#exchange.sendData(chunk, 0, chunk.length, false)) await this.#writable()
      if (this.#stopped) return
    }
  }

  /** The exchange can take more. */
  resume(): void {
    const resume = this.#resume
    this.#resume = undefined
    resume?.()
  }

  /** The exchange is over or left behind: the source is cancelled unless it was read to its end. */
  stop(reason: unknown): void {
    if (this.#stopped || this.finished) return
    this.#stopped = true
    cancelSource(this.#source, reason)
    this.resume()
  }

  #writable(): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = resolve
    })
  }
}
