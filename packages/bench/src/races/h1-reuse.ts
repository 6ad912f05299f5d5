import { runNode, startNode, stop } from '../processes.ts'
import { median, ratiosOf, rounded, type Report, type Result } from '../report.ts'
import type { RaceOptions } from '../main.ts'

/** What `contestants/reuse.ts` prints. */
export interface ReuseRun {
  readonly wallMicros: number
  readonly cpuMicros: number
  readonly connections: number
}

const contestants = ['heddle', 'no-drain', 'undici']
const variants = [
  { name: '', delay: '0' },
  { name: '40ms', delay: '20' },
]

/** 100 times: fetch over TLS, look at the status, dispose of the response without reading its content. Cost is wall time. */
export async function h1Reuse({ rounds, say }: RaceOptions): Promise<Report> {
  const server = await startNode(1, './contestants/reuse-server.ts')
  const [port, ca] = server.words as [string, string]
  const runs: (ReuseRun & { contestant: string; variant: string })[] = []
  let streamed: ReuseRun
  try {
    for (let round = 0; round <= rounds; round++) {
      for (const { name: variant, delay } of variants) {
        for (const contestant of contestants) {
          const run = await runNode<ReuseRun>(0, './contestants/reuse.ts', [contestant, port, ca, delay])
          say(
            `${round === 0 ? 'warm-up' : `round ${round}`}  ${contestant}${variant && `@${variant}`}  ${Math.round(run.wallMicros)} µs  ${run.connections} connections`,
          )
          if (round > 0) runs.push({ contestant, variant, ...run })
        }
      }
    }
    streamed = await runNode<ReuseRun>(0, './contestants/reuse.ts', ['heddle-streaming-json', port, ca, '0'])
  } finally {
    await stop(server)
  }
  const wall = new Map<Result, number>()
  const results: Result[] = []
  for (const { name: variant } of variants) {
    for (const contestant of contestants) {
      const own = runs.filter((run) => run.contestant === contestant && run.variant === variant)
      const micros = median(own.map((run) => run.wallMicros))
      const result = { contestant, variant, cpuMicros: median(own.map((run) => run.cpuMicros)), perSecond: 1e6 / micros }
      results.push(result)
      wall.set(result, micros)
    }
  }
  const opened = (contestant: string): number =>
    Math.max(...runs.filter((run) => run.contestant === contestant).map((run) => run.connections))
  return {
    bench: 'h1-reuse',
    results,
    ratios: ratiosOf(results, (result) => rounded(wall.get(result) as number)),
    checks: {
      connections: Object.fromEntries(contestants.map((contestant) => [contestant, opened(contestant)])),
      streamingJsonConnections: streamed.connections,
    },
  }
}
