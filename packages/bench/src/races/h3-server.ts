import { quicGoServer } from '../contestants/programs.ts'
import { http3Load } from '../load.ts'
import type { RaceOptions } from '../main.ts'
import { startNode, stop, type Running } from '../processes.ts'
import { ratiosOf, rounded, type Report, type Result } from '../report.ts'
import { alternate, measured, type Lane } from '../rounds.ts'

const small = 12
const large = 102_400
const variants = [
  { name: '1', streams: 1, size: small },
  { name: '10', streams: 10, size: small },
  { name: '100', streams: 100, size: small },
  { name: '10-100k', streams: 10, size: large },
] as const

/** A server over HTTP/3, four connections, one to a hundred streams each. The load is Heddle's client. */
export async function h3Server({ rounds, seconds, say }: RaceOptions): Promise<Report> {
  const results: Result[] = []
  for (const size of [small, large]) {
    const started: [string, Running | undefined][] = [
      ['heddle', await startNode(0, './contestants/server-heddle.ts', ['raw', String(size), 'h3'])],
      ['heddle-fetch', await startNode(0, './contestants/server-heddle.ts', ['fetch', String(size), 'h3'])],
      ['quic-go', await quicGoServer(size)],
    ]
    const servers = started.filter((entry): entry is [string, Running] => entry[1] !== undefined)
    try {
      const lanes: Lane[] = []
      for (const { name, streams, size: wanted } of variants) {
        if (wanted !== size) continue
        for (const [contestant, { pid, words }] of servers) {
          const load = { port: Number(words[0]), connections: 4, streams, seconds }
          lanes.push({ contestant, variant: name, run: () => measured(pid, () => http3Load(load)) })
        }
      }
      results.push(...(await alternate(lanes, rounds, say)))
    } finally {
      for (const [, server] of servers) await stop(server)
    }
  }
  const cost = (contestant: string): number =>
    (results.find((one) => one.contestant === contestant && one.variant === '100') as Result).cpuMicros
  return {
    bench: 'h3-server',
    results,
    ratios: ratiosOf(results),
    checks: { fetchOverRaw: rounded(cost('heddle-fetch') / cost('heddle')) },
  }
}
