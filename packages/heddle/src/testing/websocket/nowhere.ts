import type { ExchangeHandler } from '../../http/index.ts'

/** A tunnel that takes everything and does nothing. */
export class Nowhere {
  handler: ExchangeHandler | undefined
  taken: number = 0

  sendData(_buffer: Uint8Array, start: number, limit: number): boolean {
    this.taken += limit - start
    return true
  }

  sendOwned(chunk: Uint8Array): boolean {
    this.taken += chunk.length
    return true
  }

  consume(): void {}

  /** What was taken has left. */
  report(): void {
    const { taken } = this
    this.taken = 0
    this.handler?.onSent(taken, true)
  }
}
