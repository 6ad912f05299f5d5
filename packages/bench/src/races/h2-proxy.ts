import { haproxyHttp2Proxy, nginxHttp2Proxy } from '../contestants/programs.ts'
import { hasHttp2Load, http2Load, type Http2Load } from '../load.ts'
import { startNode, stop, type Running } from '../processes.ts'
import { ratiosOf, type Report, type Result } from '../report.ts'
import { alternate, measured, type Lane } from '../rounds.ts'
import type { RaceOptions } from '../main.ts'

type Variant = { readonly name: string; readonly size: number } & Pick<Http2Load, 'streams' | 'content' | 'windowBits'>
const variants: readonly Variant[] = [
  { name: '10', size: 12, streams: 10 },
  { name: '100', size: 12, streams: 100 },
  { name: '100-post', size: 12, streams: 100, content: 'x' },
  { name: '10-100k', size: 102_400, streams: 10, windowBits: 24 },
]

/** HTTP/2 on both sides of a proxy, one connection upstream: the case of a service mesh. */
export async function h2Proxy({ rounds, seconds, say }: RaceOptions): Promise<Report> {
  if (!hasHttp2Load()) throw new Error('h2-proxy needs h2load: npm run bench:setup installs it')
  const results: Result[] = []
  for (const size of [12, 102_400]) {
    const origin = await startNode(1, './contestants/server-heddle.ts', ['raw', String(size)])
    const port = origin.words[0] as string
    const started: [string, Running | undefined][] = [
      ['heddle', await startNode(0, './contestants/proxy-heddle.ts', [port, 'h2c'])],
      ['node:http2', await startNode(0, './contestants/proxy-node-http2.ts', [port])],
      ['nginx', await nginxHttp2Proxy(Number(port))],
      ['haproxy', await haproxyHttp2Proxy(Number(port))],
    ]
    const proxies = started.filter((entry): entry is [string, Running] => entry[1] !== undefined)
    try {
      const lanes: Lane[] = []
      for (const { name, size: wanted, ...load } of variants) {
        if (wanted !== size) continue
        for (const [contestant, { pid, words }] of proxies) {
          const whole = { ...load, port: Number(words[0]), connections: 1, seconds }
          lanes.push({ contestant, variant: name, run: () => measured(pid, () => http2Load(whole)) })
        }
      }
      results.push(...(await alternate(lanes, rounds, say)))
    } finally {
      for (const [, proxy] of proxies) await stop(proxy)
      await stop(origin)
    }
  }
  return { bench: 'h2-proxy', results, ratios: ratiosOf(results), checks: {} }
}
