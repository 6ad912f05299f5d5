import { runNodeFor } from '../processes.ts'
import { median, ratiosOf, rounded, type Report, type Result } from '../report.ts'
import type { RaceOptions } from '../main.ts'

/** How many requests wait while one more is created and cancelled. */
export const waitingCounts: readonly number[] = [100, 400, 1_600, 6_400, 25_600, 102_400]

/** How long a contestant may take for all counts and one round, ms: some need minutes for the largest. */
const budget = 20_000

/** A line that `contestants/queue.ts` prints. */
export type QueueFact = QueueRun | { /** Cancelling every waiting request, wall time, ms. */ readonly cancelAllMs: number }

interface QueueRun {
  readonly waiting: number
  /** Create and cancel of one more request, CPU of the whole process, µs. */
  readonly cpuMicros: number
  readonly wallMicros: number
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
  const facts: (QueueFact & { contestant: string })[] = []
  const cut: Record<string, string[]> = {}
  for (let round = 0; round < rounds; round++) {
    for (const [contestant, kind] of Object.entries(kinds)) {
      const found = await runNodeFor<QueueFact>(budget, 0, './contestants/queue.ts', [kind])
      for (const fact of found) {
        facts.push({ contestant, ...fact })
        if ('waiting' in fact) say(`round ${round + 1}  ${contestant}  ${fact.waiting} waiting  ${fact.cpuMicros.toFixed(2)} µs`)
      }
      const missing = [
        ...waitingCounts.filter((count) => !found.some((fact) => 'waiting' in fact && fact.waiting === count)).map(String),
        ...(found.some((fact) => 'cancelAllMs' in fact) ? [] : ['cancelAll']),
      ]
      if (missing.length === 0) continue
      say(`round ${round + 1}  ${contestant}  cut after ${budget / 1_000} s, without ${missing.join(', ')}`)
      cut[contestant] = [...new Set([...(cut[contestant] ?? []), ...missing])]
    }
  }
  const results: Result[] = []
  for (const waiting of waitingCounts) {
    for (const contestant of Object.keys(kinds)) {
      const own = facts.flatMap((fact) => (fact.contestant === contestant && 'waiting' in fact && fact.waiting === waiting ? [fact] : []))
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
      const own = facts.flatMap((fact) => (fact.contestant === contestant && 'cancelAllMs' in fact ? [fact.cancelAllMs] : []))
      return [contestant, own.length === 0 ? undefined : rounded(median(own))]
    }),
  )
  const cost = (waiting: number): number =>
    (results.find((one) => one.contestant === 'heddle' && one.variant === String(waiting)) as Result).cpuMicros
  return {
    bench,
    results,
    ratios: ratiosOf(results),
    checks: {
      growth: rounded(cost(102_400) / cost(100)),
      microsAt102400: rounded(cost(102_400)),
      cancelAllMs: cancelAll,
      // Of some round at least.
      [`cutAfter${budget / 1_000}s`]: cut,
    },
  }
}
