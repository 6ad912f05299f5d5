import type { HeddleError, Instant } from '../http/index.ts'
import { Alarm, type Clock } from '../io/index.ts'
import type { Alternative } from './alternatives.ts'
import { drop, type AnyDialled } from './engine.ts'

/** ms that QUIC has before TCP is tried beside it: most round trips, and less than anybody takes for a hang. */
export const headStart: Instant = 300

export interface Attempt {
  cancel(): void
}

export type Told = (error: HeddleError | undefined, dialled: AnyDialled | undefined) => void

/** Begins to connect; throws for options that cannot be used. */
export type Connector = (done: Told) => Attempt

/** Who began a {@link HeadStart}. */
export interface HeadStartOwner {
  /** TCP was faster: the attempt by QUIC goes on, and `probed` follows unless it is cancelled. */
  onProbing(probe: Attempt): void
  /** It has ended. */
  onProbed(alternative: Alternative, error: HeddleError | undefined, dialled: AnyDialled | undefined): void
  /** An attempt by QUIC failed, and TCP goes on. */
  onQuicFailed(error: HeddleError): void
}

/**
 * One connection by QUIC, or by TCP where QUIC does not answer: QUIC begins, TCP follows when it fails or is silent for
 * {@link headStart}, and who is ready first serves. Where TCP leads to the origin and QUIC does not, the alternative
 * is not tried again for a while; where nothing does, it says nothing of QUIC.
 */
export class HeadStart implements Attempt {
  readonly #clock: Clock
  readonly #alternative: Alternative
  readonly #byTcp: Connector
  readonly #owner: HeadStartOwner
  readonly #done: Told
  readonly #alarm: Alarm
  #quic: Attempt | undefined
  #tcp: Attempt | undefined
  #quicFailed: boolean
  #tcpFailure: HeddleError | undefined
  /** `done` was called, or never will be. */
  #settled: boolean
  #cancelled: boolean

  constructor(clock: Clock, alternative: Alternative, byQuic: Connector, byTcp: Connector, owner: HeadStartOwner, done: Told) {
    this.#clock = clock
    this.#alternative = alternative
    this.#byTcp = byTcp
    this.#owner = owner
    this.#done = done
    this.#alarm = new Alarm(() => this.#startTcp())
    this.#quic = undefined
    this.#tcp = undefined
    this.#quicFailed = false
    this.#tcpFailure = undefined
    this.#settled = false
    this.#cancelled = false
    clock.set(this.#alarm, clock.now() + headStart)
    try {
      this.#quic = byQuic((error, dialled) => this.#quicEnded(error, dialled))
    } catch (error) {
      // As a failure that comes later.
      clock.soon(() => this.#quicEnded(error as HeddleError, undefined))
    }
  }

  cancel(): void {
    this.#settled = true
    this.#cancelled = true
    this.#clock.clear(this.#alarm)
    this.#quic?.cancel()
    this.#tcp?.cancel()
    this.#quic = undefined
    this.#tcp = undefined
  }

  #quicEnded(error: HeddleError | undefined, dialled: AnyDialled | undefined): void {
    this.#quic = undefined
    if (this.#cancelled) {
      if (dialled !== undefined) drop(dialled)
      return
    }
    if (this.#settled) return this.#owner.onProbed(this.#alternative, error, dialled)
    if (dialled !== undefined) {
      this.cancel()
      this.#alternative.worked()
      return this.#done(undefined, dialled)
    }
    this.#owner.onQuicFailed(error as HeddleError)
    this.#quicFailed = true
    if (this.#tcpFailure !== undefined) return this.#settle(this.#tcpFailure, undefined)
    this.#clock.clear(this.#alarm)
    if (this.#tcp === undefined) this.#startTcp()
  }

  #startTcp(): void {
    try {
      this.#tcp = this.#byTcp((error, dialled) => this.#tcpEnded(error, dialled))
    } catch (error) {
      this.#clock.soon(() => this.#tcpEnded(error as HeddleError, undefined))
    }
  }

  #tcpEnded(error: HeddleError | undefined, dialled: AnyDialled | undefined): void {
    this.#tcp = undefined
    if (this.#settled) {
      if (dialled !== undefined) drop(dialled)
      return
    }
    if (dialled === undefined) {
      this.#tcpFailure = error
      if (this.#quic === undefined) this.#settle(error, undefined)
      return
    }
    if (this.#quicFailed) this.#alternative.failed(this.#clock.now())
    else this.#owner.onProbing(this)
    this.#settle(undefined, dialled)
  }

  #settle(error: HeddleError | undefined, dialled: AnyDialled | undefined): void {
    this.#settled = true
    this.#clock.clear(this.#alarm)
    this.#done(error, dialled)
  }
}
