import { responseHead, type Exchange, type ExchangeHandler, type Head } from 'heddle/http'
import { serve, type ServeOptions, type Server } from 'heddle/server'
import { ScriptedPeer, socketTransport, type LinkOptions, type LinkSocket, type World } from 'heddle/testing'

/** Where the paths of requests are noted. */
export interface Asked {
  push(path: string): unknown
}

/**
 * A handler that remembers what was asked: `/size/N` gives N bytes and wants no content, a tunnel echoes, anything else
 * gives back the length of the request's content once all of it came.
 */
export class Target implements ExchangeHandler {
  readonly #exchange: Exchange
  readonly #asked: Asked
  #received: number
  #left: number
  #tunnel: boolean

  constructor(exchange: Exchange, asked: Asked) {
    this.#exchange = exchange
    this.#asked = asked
    this.#received = 0
    this.#left = 0
    this.#tunnel = false
  }

  onHead(head: Head, end: boolean): void {
    this.#asked.push(head.path)
    if (head.method === 'CONNECT') {
      this.#tunnel = true
      this.#exchange.sendHead(responseHead(200), false)
      return
    }
    const size = /^\/size\/(\d+)$/.exec(head.path)
    if (size !== null) {
      this.#left = Number(size[1])
      if (!end) this.#exchange.discard()
      this.#exchange.sendHead(responseHead(200, ['content-length', String(this.#left)]), this.#left === 0)
      this.#sendMore()
    } else if (end) this.#answer()
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    if (this.#tunnel) {
      this.#exchange.sendData(buffer, start, limit, end)
      return
    }
    this.#received += limit - start
    this.#exchange.consume(limit - start)
    if (end) this.#answer()
  }

  onTrailers(): void {
    this.#answer()
  }

  onSent(byteCount: number, writable: boolean): void {
    if (this.#tunnel) this.#exchange.consume(byteCount)
    else if (writable) this.#sendMore()
  }

  onPriority(): void {}
  onClose(): void {}

  #answer(): void {
    const body = Buffer.from(`${this.#received}\n`)
    this.#exchange.sendHead(responseHead(200, ['content-length', String(body.length)]), false)
    this.#exchange.sendOwned(body, true)
  }

  #sendMore(): void {
    while (this.#left > 0) {
      const count = Math.min(this.#left, zeros.length)
      this.#left -= count
      if (!this.#exchange.sendData(zeros, 0, count, this.#left === 0)) return
    }
  }
}

const zeros = new Uint8Array(16_384)

export interface WorldServer {
  readonly world: World
  readonly server: Server
  /** Paths of the requests that reached a handler. */
  readonly asked: string[]
  /** A raw client. */
  connect(link?: LinkOptions): { readonly peer: ScriptedPeer; readonly socket: LinkSocket }
  /** Closes it and sees that nothing is left. */
  close(): Promise<void>
}

/** A server in a world, on `origin.test:80`. */
export async function worldServer(world: World, options: Partial<ServeOptions> = {}): Promise<WorldServer> {
  const asked: string[] = []
  const server = await world.complete(
    serve({
      clock: world,
      listen: world.network.serve,
      hostname: 'origin.test',
      port: 80,
      onExchange: (exchange) => new Target(exchange, asked),
      ...options,
    }),
  )
  return {
    world,
    server,
    asked,
    connect(link) {
      let socket: LinkSocket | undefined
      world.network.connect(
        'origin.test',
        80,
        (error, dialled) => {
          if (error !== undefined) throw error
          socket = dialled?.socket
        },
        link,
      )
      for (let i = 0; socket === undefined && i < 100_000; i++) world.step()
      if (socket === undefined) throw new Error('no connection came')
      return { peer: new ScriptedPeer(world, socketTransport(socket)), socket }
    },
    async close() {
      await world.complete(server.close())
      // Sockets close a moment later than their engines.
      world.run()
      const { connections, exchanges, deadlines } = server.stats()
      if (connections + exchanges + deadlines + world.armed !== 0) {
        throw new Error(`left behind: ${connections} connections, ${exchanges} exchanges, ${deadlines} deadlines, ${world.armed} alarms`)
      }
    },
  }
}
