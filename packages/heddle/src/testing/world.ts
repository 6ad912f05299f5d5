import { TimerWheel } from '../bytes/index.ts'
import { checkOptionNames, type Instant, type OptionNames } from '../http/index.ts'
import { Alarm, type Clock } from '../io/index.ts'
import { EventQueue, type WorldEvent } from './events.ts'
import type { LinkSocket } from './link-socket.ts'
import { connectLink, type LinkOptions } from './link.ts'
import { Network } from './network.ts'
import { Random } from './random.ts'

/** What a {@link World} begins with. */
export interface WorldOptions {
  /** What every random choice follows from. Default 1. */
  readonly seed?: number
  /** The first instant, in ms. Default 1,000: code that takes 0 for "never" shows itself. */
  readonly start?: Instant
}

const optionNames: OptionNames<WorldOptions> = { seed: true, start: true }

/** How far `World.run` and `World.settle` go. */
export interface RunOptions {
  /** Run up to this instant, alarms included, and leave the clock there. Default: until nothing but alarms is left. */
  readonly until?: Instant
  /** Steps after which the world is taken to be spinning, and an Error is thrown. Default 1,000,000. */
  readonly most?: number
}

/** 2026-01-01T00:00:00Z: the wall time of instant 0. */
const epoch = 1_767_225_600_000

/**
 * A small world with one clock and one seed. Nothing in it happens by itself: `run`, `advance` and
 * `settle` carry out what is planned, one step after the other, and time jumps from step to step.
 * The same seed gives the same story.
 *
 * A step is what one callback of Node's event loop would be: an arrival on a link, an alarm, the
 * tasks given to `soon`. What Node would run in `process.nextTick` runs at the end of the step.
 * `run` and `advance` are synchronous, so promises stand still meanwhile; `settle` and `complete`
 * let them go on between the steps, as the event loop does. Work outside the world (thread pool,
 * real sockets) is not seen by any of them; `complete` waits for it.
 */
export class World implements Clock {
  readonly seed: number
  readonly random: Random
  #now: Instant
  readonly #wheel: TimerWheel
  readonly #events = new EventQueue()
  #ticks: (() => void)[] = []
  #tasks: (() => void)[] = []
  #date = ''
  #network: Network | undefined
  #dateSecond = -1

  /** Throws UsageError for an option that is unknown. */
  constructor(options: WorldOptions = {}) {
    checkOptionNames('World', '', options, optionNames)
    this.seed = options.seed ?? 1
    this.random = new Random(this.seed)
    this.#now = options.start ?? 1000
    this.#wheel = new TimerWheel(this.#now)
  }

  now(): Instant {
    return this.#now
  }

  wallTime(): number {
    return epoch + this.#now
  }

  httpDate(): string {
    const second = Math.floor(this.wallTime() / 1000)
    if (second !== this.#dateSecond) {
      this.#dateSecond = second
      this.#date = new Date(second * 1000).toUTCString()
    }
    return this.#date
  }

  set(alarm: Alarm, deadline: Instant): void {
    this.#wheel.set(alarm, deadline)
  }

  clear(alarm: Alarm): void {
    this.#wheel.clear(alarm)
  }

  soon(task: () => void): void {
    this.#tasks.push(task)
  }

  /** Runs `task` at the end of the current step, as `process.nextTick` does. */
  tick(task: () => void): void {
    this.#ticks.push(task)
  }

  /** Plans `run` for `instant`. Events of one instant happen in the order they were planned. */
  at(instant: Instant, run: () => void): WorldEvent {
    return this.#events.add(Math.max(instant, this.#now), run)
  }

  /** Plans `run` in `delay` ms. */
  after(delay: number, run: () => void): WorldEvent {
    return this.at(this.#now + delay, run)
  }

  /** A promise that is fulfilled in `delay` ms of this world, for scripts written as async functions. */
  sleep(delay: number): Promise<void> {
    return new Promise((resolve) => this.after(delay, resolve))
  }

  /** Alarms that are armed: 0 when nothing is left behind. */
  get armed(): number {
    return this.#wheel.size
  }

  /** The two ends of a new connection. */
  link(options?: LinkOptions): [LinkSocket, LinkSocket] {
    return connectLink(this, options)
  }

  /** The named hosts of this world. */
  get network(): Network {
    return (this.#network ??= new Network(this))
  }

  /** Runs what is planned, in order. Returns the number of steps. */
  run(options: RunOptions = {}): number {
    const { most = 1_000_000 } = options
    let steps = 0
    while (this.#step(options.until)) if (++steps > most) this.#spins(most)
    this.#arrive(options.until)
    return steps
  }

  /** One step, alarms left alone; false if the world is quiet. For tests that act between any two steps. */
  step(): boolean {
    return this.#step(undefined)
  }

  /** Runs `delay` ms of this world's time, alarms included. */
  advance(delay: number): number {
    return this.run({ until: this.#now + delay })
  }

  /** As `run`, with promises going on between the steps. */
  async settle(options: RunOptions = {}): Promise<number> {
    const { most = 1_000_000 } = options
    let steps = 0
    for (;;) {
      await turn()
      if (this.#step(options.until)) {
        if (++steps > most) this.#spins(most)
        continue
      }
      this.#arrive(options.until)
      return steps
    }
  }

  /**
   * Runs this world, alarms included, until `promise` is settled, and returns its value. When the
   * world has nothing left to do it waits up to `patience` ms (default 5,000) of real time for work
   * outside of it, then fails.
   */
  async complete<T>(promise: Promise<T>, patience = 5000): Promise<T> {
    let settled = false
    const settle = (): void => {
      settled = true
    }
    promise.then(settle, settle)
    let idleSince = 0
    for (;;) {
      await turn()
      if (settled) return promise
      if (this.#step(Infinity)) {
        idleSince = 0
        continue
      }
      const realNow = performance.now()
      if (idleSince === 0) idleSince = realNow
      else if (realNow - idleSince > patience) throw new Error(`the world (seed ${this.seed}) is idle and the promise is still pending`)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  /** One step; false if there is none: nothing but alarms is left, or nothing up to `until`. */
  #step(until: Instant | undefined): boolean {
    if (this.#ticks.length > 0) {
      this.#finishStep()
      return true
    }
    const eventAt = this.#events.next()
    if (this.#tasks.length > 0 && (eventAt > this.#now || this.random.chance(0.5))) {
      this.#runTasks()
      return true
    }
    const alarmAt = this.#wheel.next()
    const at = Math.min(eventAt, alarmAt)
    if (at === Infinity || (until === undefined ? eventAt === Infinity && alarmAt > this.#now : at > until)) {
      if (this.#tasks.length === 0) return false
      this.#runTasks()
      return true
    }
    if (at > this.#now) this.#now = at
    if (alarmAt <= eventAt) this.#wheel.advance(this.#now)
    else this.#events.shift().run?.()
    this.#finishStep()
    return true
  }

  /** Tasks that were there when the phase began; those they add come in the next one, as with setImmediate. */
  #runTasks(): void {
    const tasks = this.#tasks
    this.#tasks = []
    for (const task of tasks) {
      task()
      this.#finishStep()
    }
  }

  #finishStep(): void {
    while (this.#ticks.length > 0) {
      const ticks = this.#ticks
      this.#ticks = []
      for (const tick of ticks) tick()
    }
  }

  #arrive(until: Instant | undefined): void {
    if (until === undefined || until === Infinity || until <= this.#now) return
    this.#now = until
    this.#wheel.advance(until)
  }

  #spins(most: number): never {
    throw new Error(`the world (seed ${this.seed}) is still busy after ${most} steps`)
  }
}

/** An alarm for `clock.set` that calls `expire`. */
export function alarm(expire: () => void): Alarm {
  return new Alarm(expire)
}

/** Lets promises and real immediates go on. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
