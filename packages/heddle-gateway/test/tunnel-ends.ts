import { CancelReason, requestHead, responseHead, type Exchange, type Fields, type Head, type HeddleError } from 'heddle/http'
import { Client, type ClientExchangeHandler, type Ticket } from 'heddle/client'
import { serve, type Server } from 'heddle/server'
import type { LinkOptions, World } from 'heddle/testing'
import { clusterConfig, Rig, routeConfig, worldListen, type RigOptions } from './rig.ts'

export type Version = 'h1' | 'h2'
export const versions: readonly Version[] = ['h1', 'h2']

/** One end of a tunnel through the gateway, with the library's own engines beneath, so that windows are real. */
export class End implements ClientExchangeHandler {
  readonly world: World
  exchange: Exchange | undefined
  ticket: Ticket | undefined
  head: Head | undefined
  readonly received: Buffer[]
  /** Bytes received. */
  size: number
  /** The other end has ended. */
  ended: boolean
  /** The tunnel was. */
  opened: boolean
  closed: boolean
  error: HeddleError | undefined
  /** ms a byte that came waits to be read; Infinity: it is never read. */
  delay: number
  /** Called for what came, once it was read. */
  onBytes: ((bytes: Buffer) => void) | undefined
  readonly #unsent: Buffer[]
  #ends: boolean
  #ended: boolean
  #writable: boolean

  constructor(world: World) {
    this.world = world
    this.exchange = undefined
    this.ticket = undefined
    this.head = undefined
    this.received = []
    this.size = 0
    this.ended = false
    this.opened = false
    this.closed = false
    this.error = undefined
    this.delay = 0
    this.onBytes = undefined
    this.#unsent = []
    this.#ends = false
    this.#ended = false
    this.#writable = false
  }

  get content(): Buffer {
    return Buffer.concat(this.received)
  }

  /** Bytes that wait for the other end. */
  get unsent(): number {
    return this.#unsent.reduce((sum, { length }) => sum + length, 0)
  }

  /** Sends when it may. */
  send(bytes: Uint8Array | string): this {
    this.#unsent.push(Buffer.from(bytes as string, 'latin1'))
    this.#flush()
    return this
  }

  /** As `send`, unless it has ended. */
  say(bytes: Uint8Array): void {
    if (!this.#ended) this.send(bytes)
  }

  end(): this {
    if (this.#ended) return this
    this.#ended = true
    this.#ends = true
    this.#flush()
    return this
  }

  reset(): void {
    this.exchange?.cancel(CancelReason.Cancelled)
  }

  /** The tunnel is open: what was to be sent goes. */
  start(): void {
    this.opened = true
    this.#writable = true
    this.#flush()
  }

  onOpen(exchange: Exchange): void {
    this.exchange = exchange
    exchange.sendHead(this.head as Head, false)
  }

  onHead(head: Head, _end: boolean): void {
    this.head = head
    if (head.status >= 200 && head.status < 300) this.start()
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const bytes = Buffer.from(buffer.subarray(start, limit))
    this.received.push(bytes)
    this.size += bytes.length
    if (end) this.ended = true
    const read = (): void => {
      this.exchange?.consume(bytes.length)
      if (bytes.length > 0) this.onBytes?.(bytes)
    }
    if (this.delay === 0) read()
    else if (this.delay !== Infinity) this.world.after(this.delay, read)
  }

  onTrailers(_fields: Fields): void {}

  onSent(_byteCount: number, writable: boolean): void {
    if (!writable) return
    this.#writable = true
    this.#flush()
  }

  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    this.closed = true
    this.error = error
  }

  #flush(): void {
    const { exchange } = this
    if (exchange === undefined) return
    while (this.#writable) {
      const next = this.#unsent.shift()
      if (next === undefined) break
      this.#writable = exchange.sendData(next, 0, next.length, false)
    }
    if (this.#ends && this.#unsent.length === 0 && this.#writable) {
      this.#ends = false
      exchange.sendData(new Uint8Array(0), 0, 0, true)
    }
  }
}

/** The gateway between clients of one version and upstreams of another. */
export interface Pair {
  readonly rig: Rig
  /** Upstream ends, in the order in which they were asked for. */
  readonly upstreams: End[]
  /** What an upstream does with a request for a tunnel. Default: it opens it. */
  answer: (end: End) => void
  /** Asks for a tunnel. */
  open(fields?: Fields): End
  /** Closes what the pair is made of. */
  close(): Promise<void>
}

export interface PairOptions extends RigOptions {
  readonly upstreamLink?: LinkOptions
  readonly protocol?: string
}

export async function pair(world: World, from: Version, to: Version, options: PairOptions = {}): Promise<Pair> {
  const { upstreamLink, protocol = 'websocket' } = options
  const upstreams: End[] = []
  const upstream: Server = await serve({
    hostname: '10.0.0.1',
    port: 8080,
    clock: world,
    listen: worldListen(world, upstreamLink),
    protocols: [to === 'h1' ? 'http/1.1' : 'h2'],
    upgrades: [protocol],
    onExchange(exchange) {
      const end = new End(world)
      end.exchange = exchange
      upstreams.push(end)
      world.after(0, () => made.answer(end))
      return end
    },
  })
  const rig = await Rig.make(world, {
    clusters: [clusterConfig({ protocol: to === 'h1' ? 'h1' : 'h2c' })],
    routes: [routeConfig({ extendedConnect: true })],
    ...options,
    listener: { upgrades: [protocol], ...options.listener },
  })
  const client = new Client({
    clock: world,
    connect: world.network.dial,
    protocols: [from],
    h2c: from === 'h2',
  })
  const made: Pair = {
    rig,
    upstreams,
    answer(end) {
      end.exchange?.sendHead(responseHead(200), false)
      end.start()
    },
    open(fields = []) {
      const end = new End(world)
      end.head = requestHead('CONNECT', 'http', 'gateway', '/chat', fields, protocol)
      end.ticket = client.exchange('http://gateway', end, { tunnel: true })
      return end
    },
    async close() {
      client.destroy()
      world.advance(10)
      for (const closing of [rig.server.close({ deadline: 0 }), upstream.close({ deadline: 0 })]) {
        world.advance(10)
        await world.complete(closing)
      }
      for (const cluster of rig.clusters.values()) cluster.destroy()
      world.advance(10)
    },
  }
  return made
}
