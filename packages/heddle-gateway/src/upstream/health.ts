import type { Instant } from 'heddle/http'
import type { EjectionConfig } from '../config/types.ts'

/** How many members of a cluster are out, so that never too many are. One object per cluster. */
export class Outage {
  readonly config: EjectionConfig
  /** Endpoints of the cluster. */
  members: number
  /** Members that are out. */
  out: number

  constructor(config: EjectionConfig) {
    this.config = config
    this.members = 0
    this.out = 0
  }

  /** How many may be out. */
  get allowed(): number {
    return this.members * this.config.maxShare
  }
}

/**
 * Whether an endpoint gets requests, by how its last ones went.
 *
 * ```
 *            consecutiveFailures in a row
 *      in ─────────────────────────────────▶ out ◀──────────┐
 *      ▲                                      │ time is up  │ fails: twice the time
 *      │ succeeds                             ▼             │
 *      └─────────────────────────────────── trial ──────────┘
 * ```
 * On trial, one request is let through, and the next only after it has shown how it goes, or after
 * `baseTime`: a slow client's request must not keep the endpoint out for as long as it lasts.
 */
export class Health {
  readonly outage: Outage
  /** Failures since the last success. */
  streak: number
  /** Instant of the last failure. */
  failedAt: Instant
  /** Instant at which the last attempt began. */
  triedAt: Instant
  /** It had a success, ever. */
  succeeded: boolean
  /** Instant until which it gets no requests; 0: it is in. */
  outUntil: Instant
  /** How long the last ejection lasts, ms; 0: the last trial went well. */
  outTime: number
  /** A request tries it now. */
  onTrial: boolean
  /** Instant at which the trial is undecided, and another request may try it. */
  trialUntil: Instant
  ejections: number

  constructor(outage: Outage) {
    this.outage = outage
    this.streak = 0
    this.failedAt = 0
    this.triedAt = 0
    this.succeeded = false
    this.outUntil = 0
    this.outTime = 0
    this.onTrial = false
    this.trialUntil = 0
    this.ejections = 0
  }

  get isOut(): boolean {
    return this.outUntil > 0
  }

  /**
   * Failures in a row that still say something: the last is no older than `maxTime`, or it is being
   * tried right now. What is older is forgotten, for whoever asks because of it whether to send
   * requests here would never send the one that shows that all is well again.
   */
  recentFailures(now: Instant): number {
    return this.onTrial || now < this.failedAt + this.outage.config.maxTime ? this.streak : 0
  }

  /** So many failed in a row as take an endpoint out, whether it could be taken out or not. */
  isFailing(now: Instant): boolean {
    const { consecutiveFailures } = this.outage.config
    return consecutiveFailures > 0 && this.recentFailures(now) >= consecutiveFailures
  }

  /** Its last attempt, no longer than `maxTime` ago, did not fail. */
  isAnswering(now: Instant): boolean {
    return this.succeeded && this.streak === 0 && now < this.triedAt + this.outage.config.maxTime
  }

  /** True: it may be chosen. */
  isUsable(now: Instant): boolean {
    return this.outUntil === 0 || (now >= this.outUntil && (!this.onTrial || now >= this.trialUntil))
  }

  /** It was chosen. True: the attempt is the trial, and says so when it has ended. */
  startAttempt(now: Instant): boolean {
    this.triedAt = now
    if (this.outUntil === 0 || !this.isUsable(now)) return false
    this.onTrial = true
    this.trialUntil = now + this.outage.config.baseTime
    return true
  }

  /** An attempt got a response head, even one begun before the ejection. Returns how many had failed in a row before. */
  succeed(): number {
    const { streak } = this
    this.streak = 0
    this.succeeded = true
    if (this.outUntil > 0) {
      this.onTrial = false
      this.outUntil = 0
      this.outTime = 0
      this.outage.out--
    }
    return streak
  }

  /**
   * An attempt failed through the endpoint's own fault. `earlier`: what `succeed` returned if it
   * failed after its head, or -1; so an endpoint that breaks every response off gets no further
   * by its heads.
   */
  fail(now: Instant, trial: boolean, earlier: number): void {
    const { config } = this.outage
    this.streak = Math.max(this.streak, earlier) + 1
    this.failedAt = now
    if (this.outUntil > 0) {
      // Attempts begun before the ejection fail later; only the trial prolongs it.
      if (trial && this.onTrial) this.#eject(now)
      return
    }
    if (config.consecutiveFailures === 0 || this.streak < config.consecutiveFailures || this.outage.out + 1 > this.outage.allowed) return
    this.outage.out++
    this.#eject(now)
  }

  /** An attempt ended without showing anything: its client went away. */
  endUndecided(trial: boolean): void {
    if (trial) this.onTrial = false
  }

  /** The endpoint leaves the cluster. */
  leave(): void {
    if (this.outUntil > 0) this.outage.out--
    this.outUntil = 0
    this.onTrial = false
  }

  #eject(now: Instant): void {
    const { config } = this.outage
    this.onTrial = false
    this.outTime = Math.min(this.outTime === 0 ? config.baseTime : this.outTime * 2, config.maxTime)
    this.outUntil = now + this.outTime
    this.ejections++
  }
}
