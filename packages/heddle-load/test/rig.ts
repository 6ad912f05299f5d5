import type { Alarm, Clock } from 'heddle/io'
import type { World } from 'heddle/testing'
import { serve, type ServeOptions, type Server } from 'heddle/server'
import { makePlan } from '../src/make-plan.ts'
import type { LoadOptions } from '../src/options.ts'
import { resultOf, type LoadResult } from '../src/result.ts'
import { ThreadRun, type ThreadRecord } from '../src/thread-run.ts'
import { parseThreshold } from '../src/threshold.ts'

/** A server of a world, at http://origin.test/ unless it is told otherwise. */
export function worldServer(world: World, options: Partial<ServeOptions> & Pick<ServeOptions, 'fetch'>): Promise<Server> {
  return world.complete(serve({ clock: world, listen: world.network.serve, hostname: 'origin.test', port: 80, ...options } as ServeOptions))
}

/** A world's clock that knows which alarms were armed through it, and are still. */
class WatchedClock implements Clock {
  readonly #world: World
  readonly #alarms = new Set<Alarm>()
  /** How late alarms are, ms, as those of a busy machine. */
  readonly #late: number

  constructor(world: World, late: number) {
    this.#world = world
    this.#late = late
  }
  get armed(): number {
    return [...this.#alarms].filter(({ list }) => list !== undefined).length
  }
  now(): number {
    return this.#world.now()
  }
  httpDate(): string {
    return this.#world.httpDate()
  }
  wallTime(): number {
    return this.#world.wallTime()
  }
  set(alarm: Alarm, deadline: number): void {
    this.#alarms.add(alarm)
    this.#world.set(alarm, deadline + this.#late)
  }
  clear(alarm: Alarm): void {
    this.#world.clear(alarm)
  }
  soon(task: () => void): void {
    this.#world.soon(task)
  }
}

/** No load of these tests takes so long, ms of a world's time: one that does has lost a request. */
const longestLoad = 3_600_000

/** A load in a world, under way. */
export class WorldLoad {
  readonly run: ThreadRun
  readonly #clock: WatchedClock
  readonly #world: World
  readonly #options: LoadOptions

  constructor(world: World, options: LoadOptions, late = 0) {
    this.#world = world
    // Spinning is looking at a clock all the time, and a world's clock moves only when nobody looks.
    this.#options = { url: 'http://origin.test/', ...(options.rate === undefined ? {} : { pacing: 'timer' }), ...options }
    this.#clock = new WatchedClock(world, late)
    this.run = new ThreadRun(makePlan(this.#options), { clock: this.#clock, connect: world.network.dial })
  }

  /** What was measured, once all is over and nothing is left behind. */
  async record(): Promise<ThreadRecord> {
    const late = Promise.withResolvers<never>()
    const limit = this.#world.after(longestLoad, () => late.reject(new Error('the load does not end')))
    const record = await this.#world.complete(Promise.race([this.run.record, late.promise]))
    limit.cancel()
    if (this.#clock.armed > 0) throw new Error(`${this.#clock.armed} alarms are left behind`)
    return record
  }

  async result(): Promise<LoadResult> {
    const record = await this.record()
    const thresholds = (this.#options.failIf ?? []).map((text) => parseThreshold(text))
    return resultOf(makePlan(this.#options), [record], thresholds, false)
  }
}

/** A whole load in a world. */
export function load(world: World, options: LoadOptions): Promise<LoadResult> {
  return new WorldLoad(world, options).result()
}

/** Fails unless `found` is within `share` of `expected`. */
export function near(found: number | null, expected: number, share: number, what: string): void {
  if (found === null || Math.abs(found - expected) > expected * share) throw new Error(`${what}: ${found} is not about ${expected}`)
}
