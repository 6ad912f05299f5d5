import type { Operation } from './operation.ts'

interface EarlyCall {
  readonly run: () => void
  /** What happens instead, if it never can be run. */
  readonly drop: (error: unknown) => void
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

  push(run: () => void, drop: (error: unknown) => void, size = 0, operation: Operation | undefined = undefined): void {
    this.#calls.push({ run, drop, size, operation })
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
    for (const { run } of this.#take()) run()
  }

  /** It is not going to be open. */
  drop(error: unknown): void {
    for (const { drop } of this.#take()) drop(error)
  }

  #take(): EarlyCall[] {
    const calls = this.#calls
    this.#calls = []
    this.size = 0
    return calls
  }
}
