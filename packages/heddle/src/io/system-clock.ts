import { TimerWheel } from '../bytes/index.ts'
import type { Instant } from '../http/index.ts'
import type { Alarm, Clock } from './clock.ts'

/** What setTimeout can wait at most; a later deadline is looked at again then. */
const longestTimeout = 0x7fff_ffff

/**
 * The clock of one thread: one timer wheel behind one timer of Node, however many alarms there are.
 *
 * Reading the time costs some 50 ns, so it is read at most once in a turn of a driver, in a batch of
 * `soon` and when alarms expire. Elsewhere (a timer or promise of the program) every `now` reads
 * anew, for nothing could tell that a kept value went stale.
 *
 * The timer is unref'ed: alarms alone do not keep the process running, sockets do.
 */
class SystemClock implements Clock {
  readonly #wheel: TimerWheel
  #now: Instant
  /** Nested turns; `now` stands still while it is not 0. */
  #turns: number
  #timer: NodeJS.Timeout | undefined
  /** When the timer fires; Infinity: there is none. */
  #fireAt: Instant
  readonly #fire: () => void
  #tasks: (() => void)[]
  #spareTasks: (() => void)[]
  readonly #runTasks: () => void
  #date: string
  #dateUntil: Instant

  constructor() {
    this.#now = performance.now()
    this.#wheel = new TimerWheel(this.#now)
    this.#turns = 0
    this.#timer = undefined
    this.#fireAt = Infinity
    this.#fire = () => this.#advance()
    this.#tasks = []
    this.#spareTasks = []
    this.#runTasks = () => this.#runBatch()
    this.#date = ''
    this.#dateUntil = -Infinity
  }

  now(): Instant {
    return this.#turns > 0 ? this.#now : performance.now()
  }

  startTurn(): Instant {
    if (this.#turns++ === 0) this.#now = performance.now()
    return this.#now
  }

  endTurn(): void {
    this.#turns--
  }

  wallTime(): number {
    return Date.now()
  }

  httpDate(): string {
    const now = this.now()
    if (now >= this.#dateUntil) {
      const wall = Date.now()
      this.#date = new Date(wall).toUTCString()
      this.#dateUntil = now + 1000 - (wall % 1000)
    }
    return this.#date
  }

  set(alarm: Alarm, deadline: Instant): void {
    // An empty wheel may have stood still for long; turning it costs nothing then.
    if (this.#wheel.size === 0 && this.#fireAt === Infinity) this.#wheel.advance(this.now())
    this.#wheel.set(alarm, deadline)
    if (deadline < this.#fireAt) this.#arm(deadline)
  }

  clear(alarm: Alarm): void {
    this.#wheel.clear(alarm)
  }

  soon(task: () => void): void {
    if (this.#tasks.push(task) === 1) setImmediate(this.#runTasks)
  }

  #arm(deadline: Instant): void {
    clearTimeout(this.#timer)
    this.#fireAt = deadline
    const delay = Math.ceil(deadline - this.now())
    this.#timer = setTimeout(this.#fire, Math.min(Math.max(delay, 1), longestTimeout))
    this.#timer.unref()
  }

  #advance(): void {
    const now = this.startTurn()
    // Alarms set while others expire lead to no timer of their own: one is armed behind the last.
    this.#fireAt = -Infinity
    try {
      this.#wheel.advance(now)
    } finally {
      this.endTurn()
      this.#fireAt = Infinity
      const next = this.#wheel.next()
      if (next < Infinity) this.#arm(next)
    }
  }

  /** Tasks added meanwhile run in the next batch, so input is read in between. */
  #runBatch(): void {
    const tasks = this.#tasks
    this.#tasks = this.#spareTasks
    let done = 0
    this.startTurn()
    try {
      while (done < tasks.length) (tasks[done++] as () => void)()
    } finally {
      this.endTurn()
      // After a throw the rest keeps its place in front of what was added.
      if (done < tasks.length) {
        if (this.#tasks.length === 0) setImmediate(this.#runTasks)
        this.#tasks.unshift(...tasks.slice(done))
      }
      tasks.length = 0
      this.#spareTasks = tasks
    }
  }
}

let clock: SystemClock | undefined

/** The clock of this thread; always the same object. */
export function systemClock(): Clock {
  clock ??= new SystemClock()
  return clock
}
