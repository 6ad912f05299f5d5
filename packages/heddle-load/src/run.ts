import { systemClock } from 'heddle/io'
import { makePlan } from './make-plan.ts'
import type { LoadOptions, Progress } from './options.ts'
import type { Plan } from './plan.ts'
import { resultOf, type LoadResult } from './result.ts'
import { ThreadRun, type ThreadRecord } from './thread-run.ts'
import { Threads } from './threads.ts'
import { parseThreshold } from './threshold.ts'

/** ms between two calls of `onProgress`. */
const progressInterval = 500

/** What makes a load: this thread, or several others. */
export interface Making {
  readonly records: Promise<readonly ThreadRecord[]>
  readonly progress: Progress
  stop(): void
}

/**
 * Makes a load and resolves with what it found; also if every request failed, or thresholds are exceeded: the result says
 * so. Rejects with a UsageError for options that cannot be.
 *
 * ```ts
 * import { run } from 'heddle-load'
 *
 * const result = await run({ url: 'http://localhost:8080/', rate: 1_000, duration: 5_000, failIf: ['p99>20ms'] })
 * console.log(result.latency.p99, result.thresholds)
 * ```
 */
export async function run(options: LoadOptions): Promise<LoadResult> {
  const plan = makePlan(options)
  const thresholds = (options.failIf ?? []).map((text, i) => parseThreshold(text, `run: failIf[${i}]`))
  const { signal, onProgress } = options
  const making = plan.threads === 1 ? here(plan) : new Threads(plan)
  let interrupted = false
  const onAbort = (): void => {
    interrupted = true
    making.stop()
  }
  if (signal?.aborted === true) onAbort()
  else signal?.addEventListener('abort', onAbort, { once: true })
  // It also keeps the process running: alarms of heddle's clock alone do not, and a load may rest for a while.
  const timer = setInterval(() => onProgress?.(making.progress), progressInterval)
  try {
    return resultOf(plan, await making.records, thresholds, interrupted)
  } finally {
    clearInterval(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

function here(plan: Plan): Making {
  const one = new ThreadRun(plan, { clock: systemClock(), connect: undefined })
  return {
    records: one.record.then((record) => [record]),
    get progress() {
      return one.progress
    },
    stop: () => one.stop(),
  }
}
