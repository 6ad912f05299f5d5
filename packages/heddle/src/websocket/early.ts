import type { Operation } from './operation.ts'

interface EarlyCall {
  readonly run: () => void
  readonly size: number
  /** The `write` it belongs to. */
  readonly operation: Operation | undefined
}

/** What a socket was told before its tunnel was open, in order. */
export class Early {
  /** Bytes of the messages among it. */
  size: number
  #calls: EarlyCall[]

  constructor() {
    this.size = 0
    this.#calls = []
  }

  push(run: () => void, size: number, operation: Operation | undefined): void {
    this.#calls.push({ run, size, operation })
    this.size += size
  }

  /** The write is not to happen. */
  remove(operation: Operation): void {
    const index = this.#calls.findIndex((call) => call.operation === operation)
    const [call] = this.#calls.splice(index, 1)
    this.size -= (call as EarlyCall).size
  }

  /** The tunnel is open. */
  run(): void {
    const calls = this.#calls
    this.#calls = []
    this.size = 0
    for (const { run } of calls) run()
  }

  /** It is not going to be open. */
  drop(fail: (operation: Operation) => void): void {
    const calls = this.#calls
    this.#calls = []
    for (const { operation } of calls) if (operation !== undefined) fail(operation)
  }
}
