/** Go's peers: the program of `go/peer`, as a server, or as a client that is told by lines of JSON what to do. */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { Running } from './process.ts'
import type { Folder } from './stage.ts'
import { tool } from './tools.ts'

const peer = tool('peer')

/** Where a server of Go's listens. */
export interface GoServer {
  readonly plain: number
  readonly secure: number
}

/** Starts a server of Go's that ends with its test. */
export async function openGoServer(t: TestContext, kind: string, folder: Folder, ...flags: string[]): Promise<GoServer> {
  const server = new Running(t, peer, [kind, '-cert', folder.cert, '-key', folder.key, ...flags])
  const [, plain, secure] = await server.prints(/^ready (\d+) (\d+)$/m)
  return { plain: Number(plain), secure: Number(secure) }
}

/** A client of Go's that carries orders out, all at the same time. */
export class GoClient<Order extends object, Outcome extends { readonly ID: number }> {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #waiting: Map<number, { resolve: (outcome: Outcome) => void; reject: (error: Error) => void }>
  #last: number
  #ended: boolean

  constructor(t: TestContext, kind: string, way: string, port: number, folder: Folder) {
    const words = [kind, '-way', way, '-address', `127.0.0.1:${port}`, '-ca', folder.ca]
    this.#child = spawn(peer, words, { stdio: ['pipe', 'pipe', 'inherit'] })
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
      for (const { reject } of this.#waiting.values()) reject(new Error(`${kind} ended with ${status}`))
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
