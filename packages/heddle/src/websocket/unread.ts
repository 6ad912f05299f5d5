/** A message that nobody asked for yet: bytes of its own, valid UTF-8 if it is text. */
export interface UnreadMessage {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly binary: boolean
}

/** What a message counts beyond its bytes: the objects it is kept in. */
const overhead = 64

/** The messages that came and were not read, in order. */
export class Unread {
  /** Their bytes, and 64 for each. */
  size: number
  #messages: (UnreadMessage | undefined)[]
  #first: number

  constructor() {
    this.size = 0
    this.#messages = []
    this.#first = 0
  }

  get length(): number {
    return this.#messages.length - this.#first
  }

  push(message: UnreadMessage): void {
    this.#messages.push(message)
    this.size += message.bytes.length + overhead
  }

  shift(): UnreadMessage | undefined {
    const messages = this.#messages
    const message = messages[this.#first]
    if (message === undefined) return undefined
    messages[this.#first++] = undefined
    this.size -= message.bytes.length + overhead
    if (this.#first === messages.length) {
      messages.length = 0
      this.#first = 0
    } else if (this.#first > 32 && this.#first * 2 > messages.length) {
      // Each one is moved as often as there is one taken, so this costs nothing that grows.
      messages.splice(0, this.#first)
      this.#first = 0
    }
    return message
  }

  clear(): void {
    this.#messages = []
    this.#first = 0
    this.size = 0
  }
}
