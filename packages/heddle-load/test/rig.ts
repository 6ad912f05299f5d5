import type { World } from 'heddle/testing'
import { serve, type ServeOptions, type Server } from 'heddle/server'
import { makePlan } from '../src/make-plan.ts'
import type { LoadOptions } from '../src/options.ts'
import { resultOf, type LoadResult } from '../src/result.ts'
import { ThreadRun } from '../src/thread-run.ts'
import { parseThreshold } from '../src/threshold.ts'

/** A server of a world, at http://origin.test/ unless it is told otherwise. */
export function worldServer(world: World, options: Partial<ServeOptions> & Pick<ServeOptions, 'fetch'>): Promise<Server> {
  return world.complete(serve({ clock: world, listen: world.network.serve, hostname: 'origin.test', port: 80, ...options } as ServeOptions))
}

/** A load in a world, under way. */
export class WorldLoad {
  readonly run: ThreadRun
  readonly #world: World
  readonly #options: LoadOptions

  constructor(world: World, options: LoadOptions) {
    this.#world = world
    // Spinning is looking at a clock all the time, and a world's clock moves only when nobody looks.
    this.#options = { url: 'http://origin.test/', ...(options.rate === undefined ? {} : { pacing: 'timer' }), ...options }
    this.run = new ThreadRun(makePlan(this.#options), { clock: world, connect: world.network.dial })
  }

  async result(): Promise<LoadResult> {
    const record = await this.#world.complete(this.run.record)
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
