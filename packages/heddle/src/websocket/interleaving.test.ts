import assert from 'node:assert/strict'
import { getEventListeners, once } from 'node:events'
import { test } from 'node:test'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { CancelReason, type Exchange, type ExchangeHandler } from '../http/index.ts'
import { memoryNow, Recording, runSeeds, type Random, type World } from '../testing/index.ts'
import { WebSocketConnection } from '../ws/index.ts'
import type { SocketHandler } from './socket-handler.ts'
import type { SocketOptions } from './socket-options.ts'
import { Socket, type Message } from './socket.ts'
import { WebSocketStage, type Version } from './stage.test.ts'
import { textOf } from './text.ts'
import { openJobs } from './zlib-job.ts'

/** Small windows and buffers everywhere, so that small messages are enough to stall. */
const window = 4_096
const closeTimeout = 60

/** What promises need to go on. */
async function breathe(): Promise<void> {
  for (let i = 0; i < 8; i++) await undefined
}

/** One end, what was done with it, and what became of it. */
class End {
  readonly name: string
  readonly socket: Socket
  readonly exchange: Exchange
  readonly story: string[]
  /** Promises and callbacks that are under way. */
  pending = 0
  /** The numbers of the messages that were accepted, and of those of the peer that were told. */
  readonly accepted: number[] = []
  readonly received: number[] = []
  /** The last number that was used. */
  number = 0
  /** The last write that was fulfilled. */
  written = 0
  /** This end closed or aborted: what comes after need not be told. */
  stopped = false
  ends = 0
  reads = 0
  opened: boolean
  readonly #held: Buffer[] = []
  readonly faults: string[]
  readonly handler: SocketHandler

  constructor(name: string, socket: Socket, exchange: Exchange, story: string[], faults: string[]) {
    this.opened = socket.state === 'open'
    if (!this.opened) exchange.handler = this.#holding()
    this.name = name
    this.socket = socket
    this.exchange = exchange
    this.story = story
    this.faults = faults
    this.handler = {
      onMessage: (_socket, buffer, start, limit, binary) => {
        this.receive(binary ? Buffer.from(buffer.subarray(start, limit)).toString() : textOf(buffer, start, limit))
      },
      onClose: () => {
        this.ends++
      },
    }
  }

  /** As a server does it that has not answered yet: what comes is kept, and what ends the exchange ends the socket. */
  #holding(): ExchangeHandler {
    const held = this.#held
    return Object.assign(new Recording({ autoConsume: false }), {
      onData: (buffer: Uint8Array, start: number, limit: number, end: boolean): void => {
        held.push(Buffer.from(buffer.subarray(start, limit)))
        if (end) this.socket.abort()
      },
      onClose: () => this.socket.abort(),
    })
  }

  open(): void {
    if (this.opened) return
    this.opened = true
    this.story.push(`the tunnel of ${this.name} is open`)
    this.socket.open()
    const { handler } = this.exchange
    if (handler instanceof WebSocketConnection) for (const bytes of this.#held) handler.onData(bytes, 0, bytes.length, false)
  }

  receive(text: string): void {
    this.received.push(Number(text.slice(0, text.indexOf(' '))))
    if (this.ends > 0) this.faults.push(`${this.name} was told a message after the end`)
  }

  /** Counts `promise` until it is settled. */
  watch<T>(promise: Promise<T>, then: (value: T) => void, otherwise: () => void = () => {}): void {
    this.pending++
    promise.then(
      (value) => {
        this.pending--
        then(value)
      },
      () => {
        this.pending--
        otherwise()
      },
    )
  }
}

/** One pair of sockets that are told this and that, at any moment, until both have ended. */
class Interleaving {
  readonly #world: World
  readonly #random: Random
  readonly #stage: WebSocketStage
  readonly #ends: readonly [End, End]
  readonly #story: string[] = []
  readonly #faults: string[] = []
  #controller = new AbortController()
  /** Nothing was done that may end the connection but well. */
  #peaceful = true

  constructor(world: World, stage: WebSocketStage) {
    this.#world = world
    this.#random = world.random
    this.#stage = stage
    const { random } = world
    const [clientEnd, serverEnd] = stage.tunnel()
    const bits = random.integer(9, 15)
    const takeover = random.chance(0.5)
    const parameters = {
      serverNoContextTakeover: takeover,
      clientNoContextTakeover: takeover,
      serverMaxWindowBits: bits,
      clientMaxWindowBits: bits,
    }
    const common: Omit<SocketOptions, 'role'> = {
      clock: world,
      limits: { closeTimeout, maxUnreadSize: random.pick([0, 500, 65_536]), maxQueuedBytes: random.pick([100, 65_536]) },
      deflate: random.chance(0.2) ? { parameters, threshold: 0, level: 1 } : undefined,
    }
    const client = new Socket(clientEnd, { ...common, role: 'client' })
    const server = new Socket(serverEnd, { ...common, role: 'server', opened: random.chance(0.8) })
    this.#ends = [
      new End('client', client, clientEnd, this.#story, this.#faults),
      new End('server', server, serverEnd, this.#story, this.#faults),
    ]
  }

  async run(): Promise<void> {
    const random = this.#random
    const armed = this.#world.armed
    // Some are left alone by all that ends them.
    const violence = random.pick([0, 0.05, 0.2])
    for (let left = random.integer(4, 16); left > 0; left--) {
      const end = random.pick(this.#ends)
      if (random.fraction() < violence) this.#attack(end)
      else await this.#act(end)
      await this.#pass()
    }
    await this.#finish()
    this.#check(armed)
    const ends = await Promise.all(this.#ends.map(({ socket }) => socket.closed))
    const isClean = ends.every(({ wasClean }) => wasClean)
    assert.ok(isClean || !this.#peaceful, `it did not end well\n${this.#story.join('\n')}`)
    if (isClean) this.#checkClean()
  }

  #act(end: End): void | Promise<void> {
    const random = this.#random
    const { socket } = end
    switch (random.integer(0, 9)) {
      case 0:
      case 1:
        return this.#send(end, (data) => {
          const goOn = socket.post(data)
          if (goOn && socket.state !== 'open' && socket.state !== 'connecting')
            this.#faults.push('post told a sender of a closed socket to go on')
        })
      case 2:
        return this.#send(end, (data, number) => end.watch(socket.write(data), () => this.#onWritten(end, number)))
      case 3: {
        const deadline = random.integer(0, 80)
        const signal = random.chance(0.5) ? this.#controller.signal : undefined
        this.#peaceful = false
        return this.#send(end, (data, number) => {
          const withdraw = (): void => {
            // Only what waits for the tunnel can be.
            const index = end.opened ? -1 : end.accepted.indexOf(number)
            if (index !== -1) end.accepted.splice(index, 1)
          }
          end.watch(socket.write(data, { deadline, signal }), () => this.#onWritten(end, number), withdraw)
        })
      }
      case 4:
        return this.#read(end, () => socket.read())
      case 5: {
        const signal = random.chance(0.5) ? this.#controller.signal : undefined
        const deadline = signal === undefined ? random.integer(0, 80) : Infinity
        return this.#read(end, () => socket.read({ signal, deadline }))
      }
      case 6:
        this.#story.push(`${end.name} pauses or goes on`)
        if (random.chance(0.5)) socket.pause()
        else socket.resume()
        return
      case 7:
        if (end.reads > 0) return
        this.#story.push(`${end.name} changes its handler`)
        socket.handler = socket.handler === undefined ? end.handler : undefined
        return
      case 8: {
        this.#story.push(`${end.name} pings`)
        end.pending++
        let told = 0
        socket.ping(undefined, () => {
          end.pending--
          if (++told > 1) this.#faults.push('a Ping was answered twice')
        })
        return
      }
      default:
        // What was withdrawn before is known to be.
        return breathe().then(() => end.open())
    }
  }

  /** What ends a connection, or part of it. */
  #attack(end: End): void {
    const random = this.#random
    this.#peaceful = false
    switch (random.integer(0, 5)) {
      case 0:
      case 1:
        this.#story.push(`${end.name} closes`)
        end.stopped = true
        return end.socket.close(random.pick([1000, 1001, 3000]))
      case 2:
        this.#story.push(`${end.name} aborts`)
        end.stopped = true
        return end.socket.abort()
      case 3:
        this.#story.push(`the tunnel is reset below ${end.name}`)
        return end.exchange.cancel(random.pick([CancelReason.Cancelled, CancelReason.InternalError, CancelReason.NoError]))
      case 4: {
        this.#story.push('a signal is aborted')
        const controller = this.#controller
        this.#controller = new AbortController()
        return controller.abort(new Error('of the signal'))
      }
      default:
        // Over HTTP/2 it would be the end of all the others, too.
        if (this.#stage.version !== 'h1') return
        this.#story.push('the connection is lost')
        return this.#stage.lose(random.chance(0.7) ? 'reset' : 'silence')
    }
  }

  #send(end: End, send: (data: string | Uint8Array, number: number) => void): void {
    const random = this.#random
    const { state } = end.socket
    const size = random.pick([0, 10, 200, 1_500, 6_000])
    const number = ++end.number
    const text = `${number} `.padEnd(size, 'x')
    this.#story.push(`${end.name} (${state}) sends ${text.length}`)
    if (state === 'open' || state === 'connecting') end.accepted.push(number)
    send(random.chance(0.5) ? text : Buffer.from(text), number)
  }

  #onWritten(end: End, number: number): void {
    if (number <= end.written) this.#faults.push(`${end.name}: write ${number} was fulfilled after ${end.written}`)
    end.written = number
  }

  #read(end: End, read: () => Promise<Message | undefined>): void {
    if (end.socket.handler !== undefined) return
    this.#story.push(`${end.name} reads`)
    end.reads++
    const promise = read()
    const done = (): void => void end.reads--
    promise.then(done, done)
    end.watch(promise, (message) => {
      if (message !== undefined) end.receive(typeof message === 'string' ? message : Buffer.from(message).toString())
    })
  }

  /** Lets something happen in the world, or nothing. */
  async #pass(): Promise<void> {
    const world = this.#world
    const random = this.#random
    switch (random.integer(0, 3)) {
      case 0:
        for (let steps = random.integer(1, 4); steps > 0; steps--) world.step()
        break
      case 1:
        world.advance(random.pick([0, 1, 5, 30]))
        break
      case 2:
        world.run()
        break
      default:
    }
    if (random.chance(0.5)) await breathe()
  }

  /** Both read to the end and close, and what does not end so is ended by its limits. */
  async #finish(): Promise<void> {
    const world = this.#world
    await breathe()
    for (const end of this.#ends) end.open()
    let closedIn = -1
    for (let round = 0; round < 80; round++) {
      for (const end of this.#ends) {
        end.socket.resume()
        if (end.reads === 0) end.socket.handler = end.handler
      }
      world.advance(5)
      await breathe()
      const isDone = this.#ends.every(({ socket }) => socket.bufferedAmount === 0 && socket.state !== 'connecting')
      if (closedIn < 0 && (isDone || round === 20)) {
        closedIn = round
        const end = this.#random.pick(this.#ends)
        end.stopped ||= end.socket.state === 'open'
        end.socket.close(1000)
      }
      // The other one has been told by then, unless the connection is silent.
      if (round === closedIn + 25) for (const end of this.#ends) end.socket.close(1000)
      if (closedIn >= 0 && this.#ends.every(({ socket }) => socket.state === 'closed')) break
    }
    world.run()
    await breathe()
    for (const end of this.#ends) if (end.reads === 0) end.socket.handler = end.handler
    world.run()
    await breathe()
  }

  #check(armed: number): void {
    const story = (): string => this.#story.join('\n')
    assert.deepEqual(this.#faults, [], story())
    for (const [i, end] of this.#ends.entries()) {
      const { name, socket, pending, ends } = end
      assert.equal(socket.state, 'closed', `${name}\n${story()}`)
      assert.equal(pending, 0, `${name} has operations that were not settled\n${story()}`)
      assert.equal(ends, 1, `${name} was told of its end\n${story()}`)
      assert.equal(socket.post('late'), false)
      const { accepted } = this.#ends[1 - i] as End
      assert.deepEqual(end.received, accepted.slice(0, end.received.length), `${name} was told something else than was sent\n${story()}`)
    }
    assert.ok(this.#world.armed <= armed, `alarms were left behind\n${story()}`)
    assert.equal(getEventListeners(this.#controller.signal, 'abort').length, 0, `listeners were left behind\n${story()}`)
  }

  /** Nothing is lost on the way to who did not close of itself. */
  #checkClean(): void {
    for (const [i, { name, received, stopped }] of this.#ends.entries()) {
      if (!stopped) assert.deepEqual(received, (this.#ends[1 - i] as End).accepted, `${name} lost messages\n${this.#story.join('\n')}`)
    }
  }
}

/** What a thread is to do. */
interface Work {
  readonly version: Version
  readonly seeds: readonly number[]
  /** Interleavings in each world. */
  readonly each: number
}

async function runWorld(world: World, version: Version, each: number): Promise<void> {
  const { random } = world
  const make = (): WebSocketStage =>
    new WebSocketStage(world, version, {
      link: random.chance(0.3)
        ? 'memory'
        : {
            delay: random.pick([0, 1, 7]),
            splits: random.pick(['none', 'random']),
            capacity: 8_192,
            writes: random.pick(['sync', 'late']),
          },
      http2: { streamWindow: window, maxWindow: window },
      receiveWindow: window,
    })
  let stage = make()
  for (let i = 0; i < each; i++) {
    await new Interleaving(world, stage).run()
    // Over HTTP/1.1 the connection ends with its tunnel.
    if (version === 'h1' || i === each - 1) stage.finish()
    if (version === 'h1' && i < each - 1) stage = make()
  }
  assert.equal(openJobs(), 0)
}

/**
 * A test of `worlds` × `each` interleavings over one version, each world with a seed of its own. They run in a
 * thread, because a test keeps book of every promise that is made in it, and that takes longer than they do.
 */
export function stress(version: Version, worlds: number, each: number): void {
  const name = `${version}: ${worlds * each} interleavings of all that can happen to a pair of sockets`
  const { HEDDLE_SEED } = process.env
  const seeds = HEDDLE_SEED === undefined ? Array.from({ length: worlds }, (_, i) => i + 1) : [Number(HEDDLE_SEED)]
  void test(name, async () => {
    const work: Work = { version, seeds, each }
    const worker = new Worker(new URL(import.meta.url), { workerData: { interleavings: work, name } })
    const [failure] = (await once(worker, 'message')) as [string]
    await worker.terminate()
    assert.equal(failure, '')
  })
}

if (!isMainThread) {
  const { interleavings, name } = workerData as { interleavings: Work; name: string }
  const { version, seeds, each } = interleavings
  const before = await memoryNow()
  const failure = await runSeeds(name, seeds, (world) => runWorld(world, version, each)).then(
    () => '',
    (error: unknown) => String((error as Error).stack),
  )
  // Whatever they leave is left 50,000 times.
  const grown = (await memoryNow()) - before
  parentPort?.postMessage(failure === '' && grown > 20_000_000 ? `${grown} bytes are left` : failure)
}
