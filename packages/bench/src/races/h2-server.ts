import { goServer, haproxyHttp2Server, nginxHttp2Server } from '../contestants/programs.ts'
import { browserFields, hasHttp2Load, http2Load, type Http2Load } from '../load.ts'
import { startNode, stop, type Running } from '../processes.ts'
import { ratiosOf, rounded, type Report, type Result } from '../report.ts'
import { alternate, measured, type Lane } from '../rounds.ts'
import type { RaceOptions } from '../main.ts'

const small = 12
const large = 102_400
const paths = Array.from({ length: 2_000 }, (_, i) => `/path/to/resource-${i}?id=${i * 7919}`)
type Variant = { readonly name: string; readonly size: number; readonly tls: boolean } & Pick<
  Http2Load,
  'streams' | 'paths' | 'fields' | 'windowBits'
>
const variants: readonly Variant[] = [
  { name: '1', streams: 1, size: small, tls: false },
  { name: '10', streams: 10, size: small, tls: false },
  { name: '100', streams: 100, size: small, tls: false },
  { name: '100-paths', streams: 100, size: small, tls: false, paths, fields: browserFields },
  { name: '100-100k', streams: 100, size: large, tls: false, windowBits: 24 },
  { name: '100-tls', streams: 100, size: small, tls: true },
]

/** A server over HTTP/2, four connections, one to a hundred streams each. */
export async function h2Server({ rounds, seconds, say }: RaceOptions): Promise<Report> {
  if (!hasHttp2Load()) throw new Error('h2-server needs h2load: npm run bench:setup installs it')
  const results: Result[] = []
  // Servers of one kind (size, TLS) at a time: fewer idle processes beside the race.
  for (const { size, tls } of [
    { size: small, tls: false },
    { size: large, tls: false },
    { size: small, tls: true },
  ]) {
    const secure = tls ? ['tls'] : []
    const started: [string, Running | undefined][] = [
      ['heddle', await startNode(0, './contestants/server-heddle.ts', ['raw', String(size), ...secure])],
      ['heddle-fetch', await startNode(0, './contestants/server-heddle.ts', ['fetch', String(size), ...secure])],
      ['node:http2', await startNode(0, './contestants/server-node-http2.ts', [String(size), ...secure])],
      ['nginx', await nginxHttp2Server({ size, tls })],
      ['haproxy', await haproxyHttp2Server({ size, tls })],
      ['go', await goServer({ size, tls })],
    ]
    const servers = started.filter((entry): entry is [string, Running] => entry[1] !== undefined)
    try {
      const lanes: Lane[] = []
      for (const { name, size: wanted, tls: secured, ...load } of variants) {
        if (wanted !== size || secured !== tls) continue
        for (const [contestant, { pid, words }] of servers) {
          const whole = { ...load, port: Number(words[0]), tls, connections: 4, seconds }
          lanes.push({ contestant, variant: name, run: () => measured(pid, () => http2Load(whole)) })
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
    bench: 'h2-server',
    results,
    ratios: ratiosOf(results),
    checks: { fetchOverRaw: rounded(cost('heddle-fetch') / cost('heddle')) },
  }
}
