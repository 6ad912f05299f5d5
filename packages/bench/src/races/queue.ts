import { runNode } from '../processes.ts'
import { median, ratiosOf, rounded, type Report, type Result } from '../report.ts'
import type { RaceOptions } from '../main.ts'

/** How many requests wait while one more is created and cancelled. */
export const waitingCounts: readonly number[] = [100, 400, 1_600, 6_400, 25_600, 102_400]

/** What `contestants/queue.ts` prints. */
export interface QueueRun {
  readonly waiting: number
  /** Create and cancel of one more request, CPU of the whole process, µs. */
  readonly cpuMicros: number
  readonly wallMicros: number
  /** Cancelling every waiting request, wall time, ms; only with the largest count. */
  readonly cancelAllMs?: number
}

/** Create and cancel one more request while others wait for the only connection. */
export function h1Queue(options: RaceOptions): Promise<Report> {
  return queueRace('h1-queue', { heddle: 'heddle', undici: 'undici', 'node:http': 'node:http' }, options)
}

/** Create and cancel one more request while others wait for a stream of the only connection, on which the server allows 250. */
export function h2Queue(options: RaceOptions): Promise<Report> {
  return queueRace('h2-queue', { heddle: 'heddle-h2', undici: 'undici-h2', 'node:http2': 'node:http2' }, options)
}

async function queueRace(bench: string, kinds: Readonly<Record<string, string>>, { rounds, say }: RaceOptions): Promise<Report> {
  const runs: (QueueRun & { contestant: string })[] = []
  for (let round = 0; round < rounds; round++) {
    for (const [contestant, kind] of Object.entries(kinds)) {
      for (const run of await runNode<QueueRun[]>(0, './contestants/queue.ts', [kind])) {
        runs.push({ contestant, ...run })
        say(`round ${round + 1}  ${contestant}  ${run.waiting} waiting  ${run.cpuMicros.toFixed(2)} µs`)
      }
    }
  }
  const results: Result[] = []
  for (const waiting of waitingCounts) {
    for (const contestant of Object.keys(kinds)) {
      const own = runs.filter((run) => run.contestant === contestant && run.waiting === waiting)
      if (own.length === 0) continue
      results.push({
        contestant,
        variant: String(waiting),
        cpuMicros: median(own.map((run) => run.cpuMicros)),
        perSecond: 1e6 / median(own.map((run) => run.wallMicros)),
      })
    }
  }
  const cancelAll = Object.fromEntries(
    Object.keys(kinds).map((contestant) => {
      const own = runs.flatMap((run) => (run.contestant === contestant && run.cancelAllMs !== undefined ? [run.cancelAllMs] : []))
      return [contestant, own.length === 0 ? undefined : rounded(median(own))]
    }),
  )
  const cost = (waiting: number): number =>
    (results.find((one) => one.contestant === 'heddle' && one.variant === String(waiting)) as Result).cpuMicros
  return {
    bench,
    results,
    ratios: ratiosOf(results),
    checks: { growth: rounded(cost(102_400) / cost(100)), microsAt102400: rounded(cost(102_400)), cancelAllMs: cancelAll },
  }
}
