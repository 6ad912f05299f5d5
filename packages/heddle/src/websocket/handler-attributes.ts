/** A function in an attribute such as `onclose`. */
export type Handler = (this: never, event: never) => unknown

/** What is registered for such a function: the attribute can change while its place among the listeners stays. */
class HandlerListener {
  handler: Handler

  constructor(handler: Handler) {
    this.handler = handler
  }

  handleEvent(event: Event): unknown {
    // Not `currentTarget`, which is null for all listeners but the first (Node).
    return this.handler.call(event.target as never, event as never)
  }
}

/** The event handler attributes of one target (HTML §8.1.8.1): listeners that stand where they were first set. */
export class HandlerAttributes {
  readonly #register: (type: string, listener: HandlerListener, add: boolean) => void
  readonly #listeners: Map<string, HandlerListener>

  /** `register` adds or removes a listener of the target. */
  constructor(register: (type: string, listener: HandlerListener, add: boolean) => void) {
    this.#register = register
    this.#listeners = new Map()
  }

  read(type: string): Handler | null {
    return this.#listeners.get(type)?.handler ?? null
  }

  /** What is no function removes what was there. */
  write(type: string, value: unknown): void {
    const listener = this.#listeners.get(type)
    if (typeof value !== 'function') {
      if (listener === undefined) return
      this.#listeners.delete(type)
      this.#register(type, listener, false)
    } else if (listener !== undefined) {
      listener.handler = value as Handler
    } else {
      const added = new HandlerListener(value as Handler)
      this.#listeners.set(type, added)
      this.#register(type, added, true)
    }
  }
}
