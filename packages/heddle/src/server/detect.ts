import type { Exchange, ExchangeHandler, HeddleError, HttpConnection, Instant, StreamEngine } from '../http/index.ts'
import { preface } from '../h2/index.ts'

/** An engine that is a connection: HTTP/1.1's, HTTP/2's, or the detector in front of them. */
export type ConnectionEngine = StreamEngine & HttpConnection

/** Makes the engine a {@link Detector} decided for, and puts it in its place. `acceptedAt`: its time limits count from then. */
export interface DetectorOwner {
  begin(protocol: 'h1' | 'h2', acceptedAt: Instant): ConnectionEngine
}

/**
 * Stands on a plain-text connection until its first bytes tell the protocol, then makes place for the
 * engine that speaks it: HTTP/2 by prior knowledge begins with a preface of 24 bytes (RFC 9113 §3.3),
 * and the first byte that differs makes it HTTP/1.1. Nothing is kept but how many bytes of the preface
 * have come. A connection that ends or takes too long before that is HTTP/1.1's to deal with.
 */
export class Detector implements StreamEngine, HttpConnection {
  readonly wantsInput = true
  readonly closing = 'no'
  readonly openable = 0
  readonly openExchanges = 0
  readonly deadline: Instant
  onDirty: () => void
  readonly #owner: DetectorOwner
  readonly #acceptedAt: Instant
  /** Bytes of the preface that have come. */
  #matched: number
  /** `shutdown` was called meanwhile. */
  #draining: boolean

  /** `headTimeout` in ms, from accept to a decision. */
  constructor(owner: DetectorOwner, headTimeout: number, now: Instant) {
    this.deadline = now + headTimeout
    this.onDirty = nothingToDo
    this.#owner = owner
    this.#acceptedAt = now
    this.#matched = 0
    this.#draining = false
  }

  receive(buffer: Uint8Array, start: number, limit: number, now: Instant): void {
    const before = this.#matched
    let matched = before
    for (let at = start; at < limit && matched < preface.length && buffer[at] === preface[matched]; at++) matched++
    const differs = matched - before < limit - start && matched < preface.length
    if (!differs && matched < preface.length) {
      this.#matched = matched
      return
    }
    const engine = this.#owner.begin(differs ? 'h1' : 'h2', this.#acceptedAt)
    if (before === 0) engine.receive(buffer, start, limit, now)
    else {
      const whole = Buffer.concat([preface.subarray(0, before), buffer.subarray(start, limit)])
      engine.receive(whole, 0, whole.length, now)
    }
    if (this.#draining) engine.shutdown()
  }

  receiveEnd(now: Instant): void {
    this.#giveUp(now).receiveEnd(now)
  }

  receiveError(error: HeddleError, now: Instant): void {
    this.#giveUp(now).receiveError(error, now)
  }

  transmit(): boolean {
    return false
  }

  expire(now: Instant): void {
    this.#giveUp(now).expire(now)
  }

  open(_handler: ExchangeHandler): Exchange | undefined {
    return undefined
  }

  shutdown(): void {
    this.#draining = true
    // What has begun to speak is heard first.
    if (this.#matched === 0) this.#owner.begin('h1', this.#acceptedAt).shutdown()
  }

  abort(error: HeddleError): void {
    this.#owner.begin('h1', this.#acceptedAt).abort(error)
  }

  /** It will not become HTTP/2. */
  #giveUp(now: Instant): ConnectionEngine {
    const engine = this.#owner.begin('h1', this.#acceptedAt)
    if (this.#matched > 0) engine.receive(preface, 0, this.#matched, now)
    return engine
  }
}

function nothingToDo(): void {}
