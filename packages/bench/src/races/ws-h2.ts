import { Orders, startNode, stop } from '../processes.ts'
import { median, ratiosOf, rounded, type Report, type Result } from '../report.ts'
import { measured, type Sample } from '../rounds.ts'
import type { RaceOptions } from '../main.ts'

const sockets = 1_000
/** Messages on each socket, one after the other. */
const messages = 20
const contestants = [
  { name: 'heddle', server: 'heddle', version: 'h2' },
  { name: 'heddle-h1', server: 'heddle', version: 'h1' },
  { name: 'ws', server: 'ws', version: 'h1' },
] as const

interface Run {
  readonly contestant: string
  readonly open: Sample
  readonly echo: Sample
  /** Of the server, for each open socket, garbage collected: resident, and of JavaScript's heap and what hangs on it. */
  readonly resident: number
  readonly heap: number
}

/** A thousand open WebSockets, over ten HTTP/2 connections or a thousand of HTTP/1.1: what each costs the server. */
export async function wsH2({ rounds, say }: RaceOptions): Promise<Report> {
  const runs: Run[] = []
  for (let round = 1; round <= rounds; round++) {
    for (let i = 0; i < contestants.length; i++) {
      const run = await runOnce(contestants[(i + round) % contestants.length] as (typeof contestants)[number])
      runs.push(run)
      const { open, echo, resident } = run
      const cost = ({ cpuMicros, requests }: Sample): string => (cpuMicros / requests).toFixed(2)
      say(`round ${round}  ${run.contestant}  open ${cost(open)} µs  echo ${cost(echo)} µs  ${(resident / 1_024).toFixed(1)} KiB`)
    }
  }
  const results: Result[] = []
  for (const variant of ['open', 'echo'] as const) {
    for (const { name } of contestants) {
      const samples = runs.filter(({ contestant }) => contestant === name).map((run) => run[variant])
      results.push({
        contestant: name,
        variant,
        cpuMicros: median(samples.map(({ cpuMicros, requests }) => cpuMicros / requests)),
        perSecond: median(samples.map(({ requests, seconds }) => requests / seconds)),
      })
    }
  }
  const kibibytes = (pick: (run: Run) => number): Record<string, number> =>
    Object.fromEntries(
      contestants.map(({ name }) => [name, rounded(median(runs.filter(({ contestant }) => contestant === name).map(pick)) / 1_024)]),
    )
  return {
    bench: 'ws-h2',
    results,
    ratios: ratiosOf(results),
    checks: { residentKiBPerSocket: kibibytes(({ resident }) => resident), heapKiBPerSocket: kibibytes(({ heap }) => heap) },
  }
}

async function runOnce({ name, server: kind, version }: (typeof contestants)[number]): Promise<Run> {
  const server = await startNode(0, './contestants/ws-server.ts', [kind], {}, true)
  try {
    const client = await startNode(1, './contestants/ws-client.ts', [server.words[0] as string, version], {}, true)
    try {
      const serving = new Orders(server)
      const asking = new Orders(client)
      const timed = (requests: number, order: string): Promise<Sample> =>
        measured(server.pid, async () => {
          const started = performance.now()
          await asking.give(order)
          return { requests, seconds: (performance.now() - started) / 1_000 }
        })
      // What the first sockets leave behind, code above all, is not what one more costs.
      await asking.give(`open ${sockets}`)
      await asking.give('echo 2')
      await asking.give('shut')
      const [, resident, heap] = (await serving.give('memory')).map(Number) as [number, number, number]
      const open = await timed(sockets, `open ${sockets}`)
      const echo = await timed(sockets * messages, `echo ${messages}`)
      const [, residentOpen, heapOpen] = (await serving.give('memory')).map(Number) as [number, number, number]
      await asking.give('shut')
      return { contestant: name, open, echo, resident: (residentOpen - resident) / sockets, heap: (heapOpen - heap) / sockets }
    } finally {
      await stop(client)
    }
  } finally {
    await stop(server)
  }
}
