import type { Instant } from 'heddle/http'
import { Alarm, type Clock } from 'heddle/io'
import { Arrivals } from './arrivals.ts'
import type { Plan } from './plan.ts'
import { SeededRandom } from './random.ts'
import { Ring } from './ring.ts'
import { Measurement } from './tally.ts'

/** What can have one request under way at a time: an HTTP/1.1 connection, a stream, a message of a WebSocket. */
export interface Slot {
  /** True: it is not there any more (its socket is closed), and must not be used. */
  readonly gone: boolean
  /** Begins a request that was due at `due`. Its end is told by `loop.ended`, never from inside this call. */
  begin(due: Instant): void
}

/** Where slots come from. */
export interface Source {
  /** Begins to offer slots to the loop. */
  start(): void
  /** Ends every request that is under way; each is told as unfinished. */
  cut(): void
  /** No more slots are needed; lets go of connections. */
  close(): Promise<void>
}

/** How long before a request is due an open loop begins to look at the clock all the time, ms: more than timers are late. */
const spinTime = 2
/** How long no server is too long, ms: with not one answer until then, the load is given up at the next failure to connect. */
export const hopelessTime = 1_000

/**
 * Decides when requests are begun, and on which slot.
 *
 * Closed: a slot that is free begins the next request at once. Open: requests are due by a plan that nothing that happens
 * can change. One that finds no free slot waits in the backlog, which remembers when it was due; beyond
 * `maxBacklog` it is not begun at all, and counted as that.
 *
 *     warm-up ──▶ measuring ──duration, count, stop──▶ ending ──all ended, or grace is over──▶ over
 *
 * After `grace` nothing is begun any more. What is under way is cut then, but for the end of a count: there
 * each request has its own time limit.
 */
export class Loop {
  readonly measurement: Measurement
  phase: 'warm-up' | 'measuring' | 'ending' | 'over'
  /** Requests under way. */
  inFlight: number
  /** Why it was given up before its time. */
  gaveUp: string | undefined
  readonly startedAt: Instant
  /** Called when measuring begins, when it ends, and once when all is over. */
  onPhase: (phase: 'measuring' | 'ending' | 'over') => void
  readonly #clock: Clock
  readonly #plan: Plan
  readonly #source: (loop: Loop) => Source
  #slots: Source | undefined
  readonly #arrivals: Arrivals | undefined
  readonly #free: Ring<Slot>
  readonly #backlog: Ring<Instant>
  /** Measured requests that may still become due. */
  #remaining: number
  readonly #endsAt: Instant
  readonly #phaseAlarm: Alarm
  readonly #arrivalAlarm: Alarm
  readonly #look: () => void
  #looking: boolean

  /** Begins its time now; `source` makes what its slots come from. */
  constructor(plan: Plan, clock: Clock, source: (loop: Loop) => Source) {
    const now = clock.now()
    this.#plan = plan
    this.#clock = clock
    this.#source = source
    this.#slots = undefined
    this.startedAt = now
    this.measurement = new Measurement(now + plan.warmup, plan.requests.length)
    this.phase = plan.warmup > 0 ? 'warm-up' : 'measuring'
    this.inFlight = 0
    this.gaveUp = undefined
    this.onPhase = () => {}
    this.#arrivals =
      plan.rate > 0
        ? new Arrivals(plan.arrivals, plan.rate, now, new SeededRandom(plan.seed, 2 * plan.thread), plan.thread / plan.threads)
        : undefined
    this.#free = new Ring()
    this.#backlog = new Ring()
    this.#remaining = plan.count
    this.#endsAt = this.measurement.from + plan.duration
    this.measurement.until = this.#endsAt
    this.#phaseAlarm = new Alarm(() => this.#nextPhase())
    this.#arrivalAlarm = new Alarm(() => this.#look())
    this.#looking = false
    this.#look = () => {
      this.#looking = false
      this.#arrive()
    }
  }

  /** Requests that are due and wait. */
  get backlog(): number {
    return this.#backlog.length
  }

  start(): void {
    this.#clock.set(this.#phaseAlarm, this.phase === 'warm-up' ? this.measurement.from : this.#endsAt)
    if (this.phase === 'measuring') this.onPhase('measuring')
    this.#slots = this.#source(this)
    this.#slots.start()
    if (this.#arrivals !== undefined) this.#arrive()
  }

  /** A slot is free. */
  offer(slot: Slot): void {
    if (this.phase === 'over') return
    const due = this.#backlog.shift()
    if (due !== undefined) return this.#begin(slot, due)
    if (this.#arrivals !== undefined) {
      if (this.phase !== 'ending') this.#free.push(slot)
      return
    }
    if (this.phase === 'ending') return
    const now = this.#clock.now()
    if (now >= this.#endsAt) return
    if (now >= this.measurement.from && !this.#takeOne()) return
    this.#begin(slot, now)
  }

  /** A request has ended. Its slot is offered again by whoever has it. */
  ended(): void {
    this.inFlight--
    this.#maybeOver()
  }

  /**
   * No connection was to be had. Without a single answer after a while there is no server to test, and the rest of the time
   * is spared.
   */
  couldNotConnect(message: string): void {
    if (this.measurement.answered > 0 || this.#clock.now() - this.startedAt < hopelessTime) return
    this.gaveUp ??= message
    this.stop()
    this.#forgoAll()
    this.#slots?.cut()
    this.#maybeOver()
  }

  /** Nothing more becomes due; what is, may end within `grace`. */
  stop(): void {
    if (this.phase === 'ending' || this.phase === 'over') return
    // What was due before belongs to it, even if nobody has looked since.
    if (this.#arrivals !== undefined) this.#arrive()
    const now = this.#clock.now()
    this.measurement.until = Math.max(now, this.measurement.from)
    this.#end(now)
  }

  #nextPhase(): void {
    const now = this.#clock.now()
    if (this.phase === 'warm-up') {
      this.phase = 'measuring'
      this.#clock.set(this.#phaseAlarm, this.#endsAt)
      this.onPhase('measuring')
      // Alarms are late: all that is wanted may have become due before this one.
      if (this.#remaining <= 0) this.#haveAll()
    } else if (this.phase === 'measuring') {
      if (this.#arrivals !== undefined) this.#arrive()
      this.#end(now)
    } else {
      this.#forgoAll()
      if (this.measurement.until < Infinity) this.#slots?.cut()
      this.#maybeOver()
    }
  }

  #end(now: Instant): void {
    this.phase = 'ending'
    this.#clock.clear(this.#arrivalAlarm)
    this.#clock.set(this.#phaseAlarm, now + this.#plan.grace)
    this.#free.clear()
    this.onPhase('ending')
    this.#maybeOver()
  }

  /** What waits is not begun any more. */
  #forgoAll(): void {
    for (let due = this.#backlog.shift(); due !== undefined; due = this.#backlog.shift()) this.#forgo(due)
  }

  #maybeOver(): void {
    if (this.phase !== 'ending' || this.inFlight > 0 || this.#backlog.length > 0) return
    this.phase = 'over'
    this.#clock.clear(this.#phaseAlarm)
    const { measurement } = this
    if (measurement.until === Infinity) measurement.until = measurement.lastEnd
    this.onPhase('over')
  }

  /** Counts one measured request; false: there were enough. */
  #takeOne(): boolean {
    if (this.#remaining <= 0) return false
    this.#remaining--
    this.measurement.due++
    if (this.#remaining === 0) this.#clock.soon(() => this.#haveAll())
    return true
  }

  /** The last request is due: the end is when it has ended. */
  #haveAll(): void {
    if (this.phase !== 'measuring') return
    this.measurement.until = Infinity
    this.#end(this.#clock.now())
  }

  #begin(slot: Slot, due: Instant): void {
    this.inFlight++
    slot.begin(due)
  }

  /** A request that was due at `due` is not begun. */
  #forgo(due: Instant): void {
    if (due >= this.measurement.from) this.measurement.notBegun++
    this.measurement.errors++
  }

  // ── The open loop ───────────────────────────────────────────────────────────────────────────────

  /** All that is due by now, and looks again in time for the next one. */
  #arrive(): void {
    const arrivals = this.#arrivals as Arrivals
    const { measurement } = this
    const now = this.#clock.now()
    while (arrivals.next <= now && arrivals.next < this.#endsAt && this.phase !== 'ending' && this.phase !== 'over') {
      const due = arrivals.next
      if (due >= measurement.from) {
        if (!this.#takeOne()) return
        measurement.lateness.record(now - due)
      }
      arrivals.advance()
      const slot = this.#takeFree()
      if (slot !== undefined) this.#begin(slot, due)
      else if (this.#backlog.length < this.#plan.maxBacklog) this.#backlog.push(due)
      else this.#forgo(due)
    }
    if (this.phase === 'ending' || this.phase === 'over' || arrivals.next >= this.#endsAt || this.#remaining <= 0) return
    if (this.#plan.pacing === 'timer') {
      this.#clock.set(this.#arrivalAlarm, arrivals.next)
    } else if (arrivals.next - now > spinTime) {
      this.#clock.set(this.#arrivalAlarm, arrivals.next - spinTime)
    } else if (!this.#looking) {
      this.#looking = true
      this.#clock.soon(this.#look)
    }
  }

  #takeFree(): Slot | undefined {
    for (let slot = this.#free.shift(); slot !== undefined; slot = this.#free.shift()) if (!slot.gone) return slot
    return undefined
  }
}
