import type { CancelReason, ConnectionInfo, Exchange, ExchangeHandler, Fields, Head, HeddleError, Priority } from '../../http/index.ts'
import { Recording } from '../recording.ts'
import type { Stage } from './stage.ts'

/** What one side sends as content, and how. */
export interface SendPlan {
  readonly content: Uint8Array
  /** Bytes of each call. Default: chosen by the seed. */
  readonly piece?: number
  /** By `sendOwned`. Default: chosen by the seed. */
  readonly owned?: boolean
  /** How the message ends: with the last bytes, with a call of its own, with trailers, or not at all. Default: by the seed, `last` or `apart`. */
  readonly finish?: 'last' | 'apart' | 'open' | Fields
}

/**
 * One side of one exchange: records what it is told and checks, besides the recording's own rules,
 * that no handler is called from inside an exchange's method, and nothing but `onClose` after `cancel`.
 */
export class Side extends Recording {
  readonly stage: Stage
  readonly role: 'client' | 'server'
  /** The exchange, watched. Set as soon as the side exists. */
  declare exchange: WatchedExchange
  cancelled: boolean
  /** Content given to `sendData` and `sendOwned`. */
  readonly given: Uint8Array[]
  givenLength: number
  /** Told false, and not yet `onSent(…, true)`. */
  blocked: boolean
  /** How often it was told false. */
  blocks: number
  #plan: (SendPlan & { at: number }) | undefined

  constructor(stage: Stage, role: 'client' | 'server') {
    super()
    this.stage = stage
    this.role = role
    this.cancelled = false
    this.given = []
    this.givenLength = 0
    this.blocked = false
    this.blocks = 0
    this.#plan = undefined
  }

  /** Sends content as the engine takes it: stops when told false, goes on at `onSent(…, true)`. */
  send(plan: SendPlan): void {
    const { random } = this.stage.world
    this.#plan = {
      piece: plan.piece ?? Math.max(1, random.length(100_000)),
      owned: plan.owned ?? random.chance(0.5),
      finish: plan.finish ?? random.pick(['last', 'apart'] as const),
      content: plan.content,
      at: 0,
    }
    this.#pump()
  }

  /** The plan of `send` was carried out, the end included. */
  get sentAll(): boolean {
    return this.#plan === undefined
  }

  #pump(): void {
    const plan = this.#plan
    if (plan === undefined) return
    const { content, finish } = plan
    while (plan.at < content.length) {
      if (this.blocked || this.cancelled || this.closed) return
      const start = plan.at
      plan.at = Math.min(content.length, start + (plan.piece as number))
      const end = plan.at === content.length && finish === 'last'
      if (end) this.#plan = undefined
      if (plan.owned === true) this.exchange.sendOwned(content.slice(start, plan.at), end)
      else this.#sendLent(content.subarray(start, plan.at), end)
      if (end) return
    }
    this.#plan = undefined
    if (this.cancelled || this.closed) return
    if (typeof finish === 'object') this.exchange.sendTrailers(finish)
    else if (finish !== 'open') this.exchange.sendData(content, 0, 0, true)
  }

  /** By `sendData`, from the midst of a buffer that is overwritten at once: the engine must have copied. */
  #sendLent(piece: Uint8Array, end: boolean): void {
    const buffer = Buffer.alloc(piece.length + 5, 0x58)
    buffer.set(piece, 2)
    this.exchange.sendData(buffer, 2, 2 + piece.length, end)
    buffer.fill(0xdb)
  }

  override onHead(head: Head, end: boolean): void {
    this.#enter()
    super.onHead(head, end)
  }

  override onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.#enter()
    if (this.discarded) this.faults.push('data after discard')
    super.onData(buffer, start, limit, end)
  }

  override onTrailers(fields: Fields): void {
    this.#enter()
    if (this.discarded) this.faults.push('trailers after discard')
    super.onTrailers(fields)
  }

  override onSent(byteCount: number, writable: boolean): void {
    this.#enter()
    if (this.sent + byteCount > this.givenLength) this.faults.push('onSent counts more than was given')
    super.onSent(byteCount, writable)
    if (!writable) return
    this.blocked = false
    this.#pump()
  }

  override onPriority(priority: Priority): void {
    this.#enter()
    super.onPriority(priority)
  }

  override onClose(error: HeddleError | undefined): void {
    if (this.stage.depth > 0) this.faults.push('onClose from inside an exchange method')
    super.onClose(error)
  }

  #enter(): void {
    if (this.stage.depth > 0) this.faults.push('a handler was called from inside an exchange method')
    if (this.cancelled) this.faults.push('a call after cancel')
  }
}

/** An exchange that tells the stage when one of its methods is running. */
export class WatchedExchange implements Exchange {
  readonly #inner: Exchange
  readonly #side: Side

  constructor(inner: Exchange, side: Side) {
    this.#inner = inner
    this.#side = side
  }

  get protocol(): 'h1' | 'h2' | 'h3' {
    return this.#inner.protocol
  }
  get connection(): ConnectionInfo {
    return this.#inner.connection
  }
  get handler(): ExchangeHandler {
    return this.#inner.handler
  }
  set handler(handler: ExchangeHandler) {
    this.#inner.handler = handler
  }

  sendHead(head: Head, end: boolean): void {
    this.#watch(() => this.#inner.sendHead(head, end))
  }

  sendData(buffer: Uint8Array, start: number, limit: number, end: boolean): boolean {
    return this.#took(buffer.subarray(start, limit), () => this.#inner.sendData(buffer, start, limit, end))
  }

  sendOwned(chunk: Uint8Array, end: boolean): boolean {
    return this.#took(chunk, () => this.#inner.sendOwned(chunk, end))
  }

  sendTrailers(fields: Fields): void {
    this.#watch(() => this.#inner.sendTrailers(fields))
  }

  consume(byteCount: number): void {
    this.#watch(() => this.#inner.consume(byteCount))
  }

  discard(): void {
    this.#side.discarded = true
    this.#watch(() => this.#inner.discard())
  }

  setPriority(priority: Priority): void {
    this.#watch(() => this.#inner.setPriority(priority))
  }

  cancel(reason: CancelReason): void {
    this.#side.cancelled = true
    this.#watch(() => this.#inner.cancel(reason))
  }

  #took(bytes: Uint8Array, send: () => boolean): boolean {
    const side = this.#side
    // Counted before the call: an engine may tell of it inside the call, which is a fault of its own.
    side.given.push(Uint8Array.from(bytes))
    side.givenLength += bytes.length
    let writable = false
    try {
      writable = this.#watch(send)
    } catch (error) {
      side.given.pop()
      side.givenLength -= bytes.length
      throw error
    }
    if (!writable) {
      side.blocked = true
      side.blocks++
    }
    return writable
  }

  #watch<T>(call: () => T): T {
    this.#side.stage.depth++
    try {
      return call()
    } finally {
      this.#side.stage.depth--
    }
  }
}
