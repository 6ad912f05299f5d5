import { haproxyServer, nginxServer } from '../contestants/programs.ts'
import { browserFields, http1Load } from '../load.ts'
import { startNode, stop, type Running } from '../processes.ts'
import { ratiosOf, rounded, type Report, type Result } from '../report.ts'
import { alternate, measured, type Lane } from '../rounds.ts'
import type { RaceOptions } from '../main.ts'

const connections = 50
const variants = [
  { name: '', fields: undefined, pipeline: 1 },
  { name: 'browser', fields: browserFields, pipeline: 1 },
  { name: 'pipelined', fields: undefined, pipeline: 16 },
]

/** A small answer from a server with 50 connections; see the README for keys and payloads. */
export async function h1Server({ rounds, seconds, say }: RaceOptions): Promise<Report> {
  const started: [string, Running | undefined][] = [
    ['heddle', await startNode(0, './contestants/server-heddle.ts', ['raw'])],
    ['heddle-fetch', await startNode(0, './contestants/server-heddle.ts', ['fetch'])],
    ['heddle-fetch-native', await startNode(0, './contestants/server-heddle.ts', ['fetch-native'])],
    ['node:http', await startNode(0, './contestants/server-node-http.ts')],
    ['nginx', await nginxServer()],
    ['haproxy', await haproxyServer()],
  ]
  const servers = started.filter((entry): entry is [string, Running] => entry[1] !== undefined)
  try {
    const lanes: Lane[] = []
    for (const { name: variant, fields, pipeline } of variants) {
      for (const [contestant, { pid, words }] of servers) {
        const load = { port: Number(words[0]), path: '/', connections, seconds, pipeline, ...(fields === undefined ? {} : { fields }) }
        lanes.push({ contestant, variant, run: () => measured(pid, () => http1Load(load)) })
      }
    }
    const results = await alternate(lanes, rounds, say)
    const cost = (contestant: string): number =>
      (results.find((one) => one.contestant === contestant && one.variant === '') as Result).cpuMicros
    return {
      bench: 'h1-server',
      results,
      ratios: ratiosOf(results),
      checks: {
        fetchOverRaw: rounded(cost('heddle-fetch') / cost('heddle')),
        fetchNativeOverRaw: rounded(cost('heddle-fetch-native') / cost('heddle')),
      },
    }
  } finally {
    for (const [, server] of servers) await stop(server)
  }
}
