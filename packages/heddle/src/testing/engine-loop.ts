import { Outbox } from '../bytes/index.ts'
import { NetworkError, type HeddleError, type StreamEngine } from '../http/index.ts'
import { Alarm } from '../io/index.ts'
import type { World } from './world.ts'

/** Where what an engine sends goes. */
export interface EngineSink {
  onBytes(bytes: Buffer): void
  /** FIN. */
  onEnd(): void
  /** RST. */
  onReset(): void
  /** True: what arrived there is not taken yet, so the engine is not asked for more. */
  readonly blocked: boolean
}

/** How unkind an {@link EngineLoop} is. */
export interface EngineLoopOptions {
  /** How input is cut before the engine gets it. Default none. */
  readonly splits?: 'none' | 'random' | 'bytewise'
  /** The most bytes one `transmit` is asked for. Default 64 KiB; `random` lets the seed choose between 1 and 64 KiB each time. */
  readonly room?: number | 'random'
}

/**
 * Runs an engine without a socket, exactly as the contract of {@link StreamEngine} says and no
 * kinder: input comes in a buffer that is overwritten afterwards, `transmit` is called with little
 * room, nothing is called twice for good measure. Use it for unit tests of engines; for the
 * production driver on a link see `pair`.
 */
export class EngineLoop {
  readonly engine: StreamEngine
  readonly sink: EngineSink
  /** Breaches of the contract. Assert that it is empty. */
  readonly faults: string[]
  /** Called when waiting input was taken: the other end may send on. */
  onTaken: () => void
  /** The most input that ever waited because `wantsInput` was false. */
  mostWaiting: number
  readonly #world: World
  readonly #options: Required<EngineLoopOptions>
  readonly #input: Buffer[]
  readonly #alarm: Alarm
  readonly #out: Outbox
  #inputLength: number
  /** FIN or an error waits behind the input. */
  #inputEnd: 'no' | 'end' | 'seen' | HeddleError
  #running: boolean
  #feedPlanned: boolean
  #flushPlanned: boolean
  #sent: 'open' | 'end' | 'gone'

  constructor(world: World, engine: StreamEngine, sink: EngineSink, options: EngineLoopOptions = {}) {
    this.engine = engine
    this.sink = sink
    this.faults = []
    this.onTaken = () => {}
    this.mostWaiting = 0
    this.#world = world
    this.#options = { splits: options.splits ?? 'none', room: options.room ?? 65_536 }
    this.#input = []
    this.#alarm = new Alarm(() => this.#expire())
    this.#out = new Outbox(Buffer.allocUnsafeSlow(1024), 0)
    this.#inputLength = 0
    this.#inputEnd = 'no'
    this.#running = false
    this.#feedPlanned = false
    this.#flushPlanned = false
    this.#sent = 'open'
    engine.onDirty = () => this.flushSoon()
    this.flushSoon()
  }

  /** Input that waits for the engine. */
  get waiting(): number {
    return this.#inputLength
  }

  /** Neither end uses the transport any more. */
  get gone(): boolean {
    return this.#sent === 'gone'
  }

  /** Bytes from the peer. */
  receive(bytes: Uint8Array): void {
    if (this.#inputEnd !== 'no' || this.gone || bytes.length === 0) return
    this.#input.push(Buffer.from(bytes))
    this.#inputLength += bytes.length
    this.#feedSoon()
  }

  /** The peer's FIN. */
  receiveEnd(): void {
    if (this.#inputEnd !== 'no' || this.gone) return
    this.#inputEnd = 'end'
    this.#feedSoon()
  }

  /**
   * The peer resets the connection. As with a socket, input that waits can still be read, and an
   * engine that does not want input finds out when it sends.
   */
  receiveError(error: HeddleError): void {
    if (this.gone) return
    this.#inputEnd = error
    this.#feedSoon()
  }

  /** Lets the engine send in a later step; the sink calls it when it is no longer blocked. */
  flushSoon(): void {
    if (this.#flushPlanned) return
    this.#flushPlanned = true
    this.#world.soon(() => {
      this.#flushPlanned = false
      if (!this.gone) this.#enter(undefined)
    })
  }

  #feedSoon(): void {
    if (this.#feedPlanned || !this.engine.wantsInput) return
    this.#feedPlanned = true
    this.#world.after(0, () => this.#feed())
  }

  #feed(): void {
    this.#feedPlanned = false
    if (this.gone || !this.engine.wantsInput) return
    if (this.#inputLength > 0) {
      // Bytes around the piece and a buffer that is overwritten: an engine must keep neither.
      const piece = this.#takeInput()
      const before = this.#world.random.integer(0, 3)
      const buffer = Buffer.alloc(before + piece.length + 3, 0x58)
      piece.copy(buffer, before)
      this.#enter(() => this.engine.receive(buffer, before, before + piece.length, this.#world.now()))
      buffer.fill(0xdb)
      this.onTaken()
    } else if (this.#inputEnd === 'end') {
      this.#inputEnd = 'seen'
      this.#enter(() => this.engine.receiveEnd(this.#world.now()))
    } else if (typeof this.#inputEnd === 'object') this.#fail(this.#inputEnd)
  }

  #takeInput(): Buffer {
    const { splits } = this.#options
    const first = this.#input[0] as Buffer
    const length = splits === 'none' ? first.length : splits === 'bytewise' ? 1 : this.#world.random.integer(1, first.length)
    if (length === first.length) this.#input.shift()
    else this.#input[0] = first.subarray(length)
    this.#inputLength -= length
    return first.subarray(0, length)
  }

  #expire(): void {
    if (!this.gone) this.#enter(() => this.engine.expire(this.#world.now()))
  }

  /** One turn; after `receiveError`, `close` and `reset` there is none. Mutate once, drain `transmit`, then look at `closing`, `wantsInput` and `deadline`. */
  #enter(mutate: (() => void) | undefined): void {
    if (this.#running) throw new Error('the loop was entered from inside the engine')
    this.#running = true
    try {
      mutate?.()
      this.#transmit()
    } finally {
      this.#running = false
    }
    if (typeof this.#inputEnd === 'object' && this.#out.length > 0) this.#fail(this.#inputEnd)
    else this.#look()
  }

  #transmit(): void {
    const { engine, sink } = this
    const out = this.#out
    for (let rounds = 0; ; rounds++) {
      // A blocked engine is asked all the same, without room: it has to know what it cannot get rid of.
      const { blocked } = sink
      out.length = 0
      out.limit = blocked ? 0 : this.#options.room === 'random' ? this.#world.random.integer(1, 65_536) : this.#options.room
      const waits = engine.transmit(out, this.#world.now())
      if (out.length > 0 && typeof this.#inputEnd === 'object') return
      if (out.length > 0 && this.#sent === 'open') sink.onBytes(Buffer.from(out.buffer.subarray(0, out.length)))
      else if (out.length > 0) this.faults.push('bytes sent after FIN')
      if (!waits || blocked) return
      if (out.length === 0 || rounds > 100_000) {
        this.faults.push('transmit reports more to send and sends nothing')
        return
      }
    }
  }

  #look(): void {
    const { engine } = this
    if (engine.closing === 'reset') {
      this.sink.onReset()
      this.#depart()
    } else if (engine.closing !== 'no' && !this.sink.blocked) {
      if (this.#sent === 'open') this.sink.onEnd()
      this.#sent = 'end'
      if (engine.closing === 'close') this.#depart()
    }
    if (Number.isNaN(engine.deadline)) this.faults.push('the deadline is not a number')
    this.#world.set(this.#alarm, this.gone ? Infinity : engine.deadline)
    if (this.waiting > this.mostWaiting) this.mostWaiting = this.waiting
    if (this.#inputLength > 0 || this.#inputEnd === 'end' || typeof this.#inputEnd === 'object') this.#feedSoon()
  }

  #fail(error: HeddleError): void {
    this.#leave()
    this.engine.receiveError(error, this.#world.now())
    this.#world.clear(this.#alarm)
  }

  /** The engine is done with the transport. When that is gone the engine hears of it, as its last call. */
  #depart(): void {
    this.#leave()
    const error = new NetworkError('NETWORK_ERROR', 'the connection was closed')
    this.#world.after(0, () => this.engine.receiveError(error, this.#world.now()))
  }

  #leave(): void {
    this.#sent = 'gone'
    this.#input.length = 0
    this.#inputLength = 0
    this.onTaken()
  }
}
