import { NetworkError, PeerError, TimeoutError, type HeddleError } from '../http/index.ts'
import type { QuicTransport } from '../h3/index.ts'
import type { QuicApplication, QuicStream, QuicStreamHandler } from '../quic/index.ts'
import { Alarm } from '../io/index.ts'
import { QuicDoubleStream } from './quic-double-stream.ts'
import type { World } from './world.ts'

/** How a pair of {@link QuicDouble}s behaves. */
export interface QuicDoubleOptions {
  /** Octets a stream may be ahead of `consume`. */
  readonly streamWindow: number
  /** … and all of them. */
  readonly connectionWindow: number
  /** Queued octets at which `send` returns false. */
  readonly sendBuffer: number
  /** Streams of each kind that may be open at once. */
  readonly maxStreams: number
  /** Of a piece of a stream, ms. */
  readonly delay: number
  /** Up to so much longer, ms: streams overtake each other. */
  readonly jitter: number
  /** The most octets of a piece; `random`: each its own. */
  readonly pieces: number | 'random'
}

const idleTimeout = 30_000

/**
 * One end of a QUIC connection in memory, without packets: streams with windows and limits, cut and mixed as the
 * world's seed says, run exactly as the contract of {@link QuicApplication} says and no kinder.
 */
export class QuicDouble implements QuicTransport {
  readonly world: World
  readonly options: QuicDoubleOptions
  /** Breaches of the contract. Assert that it is empty. */
  readonly faults: string[]
  application: QuicApplication | undefined
  peer: QuicDouble | undefined
  sendWindow: number
  isOver: boolean
  /** What `close` said. */
  closedWith: { readonly code: number; readonly reason: string } | undefined
  keptAlive: boolean
  readonly #isServer: boolean
  readonly #streams: Map<number, QuicDoubleStream>
  readonly #opened: [bidirectional: number, unidirectional: number]
  readonly #allowed: [bidirectional: number, unidirectional: number]
  readonly #ready: Set<QuicDoubleStream>
  readonly #alarm: Alarm
  #consumed: number
  #running: boolean
  #flushPlanned: boolean
  #isSilent: boolean

  constructor(world: World, isServer: boolean, options: QuicDoubleOptions, faults: string[]) {
    this.world = world
    this.options = options
    this.faults = faults
    this.application = undefined
    this.peer = undefined
    this.sendWindow = options.connectionWindow
    this.isOver = false
    this.closedWith = undefined
    this.keptAlive = false
    this.#isServer = isServer
    this.#streams = new Map()
    this.#opened = [0, 0]
    this.#allowed = [options.maxStreams, Math.max(3, options.maxStreams)]
    this.#ready = new Set()
    this.#alarm = new Alarm(() => this.#expire())
    this.#consumed = 0
    this.#running = false
    this.#flushPlanned = false
    this.#isSilent = false
  }

  /** The handshake is over. */
  start(): void {
    this.world.after(0, () => this.#enter((application) => application.onReady()))
  }

  // ── QuicTransport ───────────────────────────────────────────────────────────────────────────────

  get openableBidirectional(): number {
    return this.isOver ? 0 : this.#allowed[0] - this.#opened[0]
  }

  get roundTripTime(): number {
    return 2 * (this.options.delay + this.options.jitter)
  }

  open(bidirectional: boolean, handler: QuicStreamHandler): QuicStream | undefined {
    const kind = bidirectional ? 0 : 1
    if (this.isOver || this.#opened[kind] >= this.#allowed[kind]) return undefined
    const id = this.#opened[kind]++ * 4 + kind * 2 + (this.#isServer ? 1 : 0)
    const stream = new QuicDoubleStream(this, id, handler, true)
    this.#streams.set(id, stream)
    return stream
  }

  close(code: number, reason: string): void {
    if (this.isOver) return
    this.#end()
    this.closedWith = { code, reason }
    this.#peersRun(this.options.delay + this.options.jitter, (peer, application) => {
      peer.#end()
      application.onClose(
        new PeerError('PEER_CLOSED', `the peer closed the connection: ${reason}`, { wireCode: code, scope: 'connection' }),
      )
    })
  }

  keepAlive(wanted: boolean): void {
    if (wanted === this.keptAlive) this.faults.push(`keepAlive(${wanted}) twice`)
    this.keptAlive = wanted
  }

  wake(): void {
    if (!this.#running) this.#flushSoon()
  }

  // ── For the streams ─────────────────────────────────────────────────────────────────────────────

  dirty(stream: QuicDoubleStream): void {
    this.#ready.add(stream)
    if (!this.#running) this.#flushSoon()
  }

  forget(stream: QuicDoubleStream): void {
    this.#streams.delete(stream.id)
    this.#ready.delete(stream)
    if ((stream.id & 1) === (this.#isServer ? 1 : 0)) return
    const kind = (stream.id & 2) === 0 ? 0 : 1
    this.#peersRun(this.options.delay, (peer, application) => {
      peer.#allowed[kind]++
      application.onStreamsAvailable()
    })
  }

  /** Octets were consumed: half a window of them is told to the peer. */
  credit(byteCount: number): void {
    this.#consumed += byteCount
    if (this.#consumed * 2 < this.options.connectionWindow) return
    const increment = this.#consumed
    this.#consumed = 0
    this.toPeer(() => {
      const peer = this.peer as QuicDouble
      peer.sendWindow += increment
      for (const stream of peer.#streams.values()) peer.#ready.add(stream)
    })
  }

  /** Something that belongs to no stream's order arrives at the peer. */
  toPeer(arrive: () => void): void {
    this.#peersRun(this.options.delay, arrive)
  }

  /** Something of `stream` arrives at its other end, behind what left before. */
  announce(stream: QuicDoubleStream, arrive: (other: QuicDoubleStream) => void): void {
    const { delay, jitter } = this.options
    const { world } = this
    stream.lastArrival = Math.max(stream.lastArrival, world.now() + delay + (jitter === 0 ? 0 : world.random.fraction() * jitter))
    this.#peersRun(stream.lastArrival - world.now(), (peer, application) => {
      const other = stream.other ?? peer.#accept(stream, application)
      if (!peer.isOver) arrive(other)
    })
  }

  #accept(stream: QuicDoubleStream, application: QuicApplication): QuicDoubleStream {
    const other = new QuicDoubleStream(this, stream.id, noHandler, false)
    stream.other = other
    other.other = stream
    this.#streams.set(other.id, other)
    other.handler = application.onStream(other)
    return other
  }

  // ── The run loop ────────────────────────────────────────────────────────────────────────────────

  #peersRun(delay: number, run: (peer: QuicDouble, application: QuicApplication) => void): void {
    this.world.after(delay, () => {
      const peer = this.peer as QuicDouble
      if (!peer.isOver && !this.#isSilent) peer.#enter((application) => run(peer, application))
    })
  }

  #flushSoon(): void {
    if (this.#flushPlanned) return
    this.#flushPlanned = true
    this.world.soon(() => {
      this.#flushPlanned = false
      this.#enter(undefined)
    })
  }

  #expire(): void {
    this.#enter((application) => application.expire(this.world.now()))
  }

  /** One run, and a `transmit` after it. */
  #enter(mutate: ((application: QuicApplication) => void) | undefined): void {
    if (this.#running) throw new Error('the connection was entered from inside')
    const application = this.application as QuicApplication
    this.#running = true
    if (mutate !== undefined) {
      application.startRun(this.world.now())
      mutate(application)
      application.finishRun()
    }
    application.startRun(this.world.now())
    this.#transmit(application)
    application.finishRun()
    this.#running = false
    if (!this.isOver && this.#firstReady() !== undefined) this.#flushSoon()
    const { deadline } = application
    if (Number.isNaN(deadline)) this.faults.push('the deadline is not a number')
    this.world.set(this.#alarm, this.isOver ? Infinity : deadline)
  }

  #transmit(application: QuicApplication): void {
    const { random } = this.world
    // As a congestion window: what is left over leaves in another run.
    let budget = random.integer(1_000, 100_000)
    for (;;) {
      application.finishRun()
      const stream = this.isOver ? undefined : this.#firstReady()
      if (stream === undefined || budget <= 0) return
      const { pieces } = this.options
      const most = pieces === 'random' ? random.integer(1, random.chance(0.5) ? 64 : 20_000) : pieces
      const before = stream.sent
      stream.sendPiece(most)
      budget -= stream.sent - before + 40
    }
  }

  /** One of the streams that have something to send, chosen by the seed. */
  #firstReady(): QuicDoubleStream | undefined {
    const ready: QuicDoubleStream[] = []
    for (const stream of this.#ready) {
      if (stream.isReady) ready.push(stream)
      else this.#ready.delete(stream)
    }
    return ready.length === 0 ? undefined : this.world.random.pick(ready)
  }

  #end(): void {
    this.isOver = true
    this.world.clear(this.#alarm)
    this.#ready.clear()
    this.#streams.clear()
  }

  /** The path fails: `reset` is told by QUIC at once, `silence` after its idle time-out. */
  lose(loss: 'reset' | 'silence'): void {
    this.#isSilent = true
    const error: HeddleError =
      loss === 'reset'
        ? new NetworkError('NETWORK_ERROR', 'the connection was lost')
        : new TimeoutError('idle', 'nothing came from the peer for too long', { scope: 'connection' })
    this.world.set(this.#lost, this.world.now() + (loss === 'reset' ? 0 : idleTimeout))
    this.#lossError = error
  }

  #lossError: HeddleError | undefined
  readonly #lost: Alarm = new Alarm(() => {
    if (this.isOver) return
    this.#enter((application) => {
      this.#end()
      application.onClose(this.#lossError as HeddleError)
    })
  })
}

/** Two ends that are connected; the applications are set, and `start` called, by whoever makes them. */
export function quicDoubles(world: World, options: QuicDoubleOptions): { client: QuicDouble; server: QuicDouble; faults: string[] } {
  const faults: string[] = []
  const client = new QuicDouble(world, false, options, faults)
  const server = new QuicDouble(world, true, options, faults)
  client.peer = server
  server.peer = client
  return { client, server, faults }
}

const noHandler: QuicStreamHandler = {
  onData() {},
  onReset() {},
  onStopSending() {},
  onSent() {},
  onClose() {},
}
