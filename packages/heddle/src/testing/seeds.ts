import { test } from 'node:test'
import { checkOptionNames, UsageError, type OptionNames } from '../http/index.ts'
import { World } from './world.ts'

/** Which worlds a {@link worldTest} runs in. */
export interface WorldTestOptions {
  /** The seeds 1 to this number are run. Default 20. */
  readonly seeds?: number
  /** As in `node:test`. */
  readonly skip?: boolean | string
}

const optionNames: OptionNames<WorldTestOptions> = { seeds: true, skip: true }

/**
 * A `node:test` test that runs `body` in one world per seed. A failure names the seed;
 * `HEDDLE_SEED=7` runs that seed alone, `HEDDLE_SEEDS=1000` more of them. Throws UsageError for an
 * option that is unknown, and for a number of seeds that would run nothing.
 */
export function worldTest(name: string, options: WorldTestOptions, body: (world: World) => void | Promise<void>): void {
  checkOptionNames('worldTest', '', options, optionNames)
  const seeds = seedsToRun(options)
  void test(name, { skip: options.skip ?? false }, () => runSeeds(name, seeds, body))
}

/** Runs `body` for each seed; the first failure is thrown as an Error that tells how to replay it. */
export async function runSeeds(name: string, seeds: readonly number[], body: (world: World) => void | Promise<void>): Promise<void> {
  for (const seed of seeds) {
    try {
      await body(new World({ seed }))
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause)
      throw new Error(`"${name}" fails with seed ${seed} (HEDDLE_SEED=${seed} replays it): ${message}`, { cause })
    }
  }
}

function seedsToRun(options: WorldTestOptions): number[] {
  const { HEDDLE_SEED, HEDDLE_SEEDS } = process.env
  if (HEDDLE_SEED !== undefined) return [seedCount(HEDDLE_SEED)]
  const count = HEDDLE_SEEDS === undefined ? seedCount(options.seeds ?? 20) : seedCount(HEDDLE_SEEDS)
  return Array.from({ length: count }, (_, i) => i + 1)
}

/** A whole number of at least 1: with none, a test would pass that never ran. */
function seedCount(value: number | string): number {
  const count = Number(value)
  if (!(Number.isSafeInteger(count) && count >= 1)) throw new UsageError(`worldTest: ${value} is no number of seeds`)
  return count
}
