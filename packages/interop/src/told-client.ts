/** Clients of other languages: programs that are told by lines of JSON what to do. */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { TestContext } from 'node:test'

/** A program that carries orders out, all at the same time: each is a line of JSON, and so is what came of it. */
export class ToldClient<Order extends object, Outcome extends { readonly ID: number }> {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #waiting: Map<number, { resolve: (outcome: Outcome) => void; reject: (error: Error) => void }>
  #last: number
  #ended: boolean

  constructor(t: TestContext, program: string, words: readonly string[]) {
    this.#child = spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#waiting = new Map()
    this.#last = 0
    this.#ended = false
    this.#child.stdin.on('error', () => {})
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      if (line === 'ready') return
      const outcome = JSON.parse(line) as Outcome
      this.#waiting.get(outcome.ID)?.resolve(outcome)
      this.#waiting.delete(outcome.ID)
    })
    this.#child.on('close', (status) => {
      this.#ended = true
      for (const { reject } of this.#waiting.values()) reject(new Error(`${program} ended with ${status}`))
    })
    t.after(() => this.close())
  }

  carryOut(order: Order): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    if (this.#ended) reject(new Error('it has ended'))
    const id = ++this.#last
    this.#waiting.set(id, { resolve, reject })
    this.#child.stdin.write(`${JSON.stringify({ ID: id, ...order })}\n`)
    return promise
  }

  /** Ends it, its connections included. */
  async close(): Promise<void> {
    if (this.#ended) return
    const closed = once(this.#child, 'close')
    this.#child.kill('SIGKILL') // It has nothing to clean up.
    await closed
  }
}
