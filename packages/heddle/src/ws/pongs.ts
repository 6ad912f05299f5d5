import { Opcode } from './frame.ts'
import type { WebSocketLimits } from './limits.ts'
import type { Sender } from './sender.ts'

/**
 * Answers Pings: each with a Pong as long as few of them wait to leave, then the last of many with one (RFC
 * 6455 §5.5.3). A peer that goes on and takes none is not put up with for ever.
 */
export class Pongs {
  readonly #sender: Sender
  readonly #limits: WebSocketLimits
  /** The last Ping that could not be answered yet. */
  #owed: Uint8Array | undefined
  /** Nothing has left since the input in which that Ping came; so many came in later ones. */
  #stalls: boolean
  #unanswered: number

  constructor(sender: Sender, limits: WebSocketLimits) {
    this.#sender = sender
    this.#limits = limits
    this.#owed = undefined
    this.#stalls = false
    this.#unanswered = 0
  }

  /** A Ping came. False: it was one too many. */
  answer(buffer: Uint8Array, start: number, limit: number): boolean {
    if (this.#owed === undefined && this.#mayQueue) {
      this.#sender.writeControl(Opcode.Pong, buffer.subarray(start, limit), false)
      return true
    }
    this.#owed = Uint8Array.prototype.slice.call(buffer, start, limit)
    return !this.#stalls || ++this.#unanswered <= this.#limits.maxUnansweredPings
  }

  /** All of an input was looked at: what it brought could not have been answered sooner, what the next one brings could. */
  inputTaken(): void {
    this.#stalls = this.#owed !== undefined
  }

  /** Something has left. */
  sent(): void {
    this.#stalls = false
    this.#unanswered = 0
    const payload = this.#owed
    if (payload === undefined || !this.#mayQueue) return
    this.#owed = undefined
    this.#sender.writeControl(Opcode.Pong, payload, false)
  }

  /** Nothing is answered any more: a Close has been sent. */
  forget(): void {
    this.#owed = undefined
  }

  get #mayQueue(): boolean {
    return this.#sender.ledger.waitingPongs < this.#limits.maxQueuedPongs
  }
}
