import { haproxyProxy, nginxProxy } from '../contestants/programs.ts'
import { http1Load } from '../load.ts'
import { startNode, stop, type Running } from '../processes.ts'
import { ratiosOf, type Report } from '../report.ts'
import { alternate, measured, type Lane } from '../rounds.ts'
import type { RaceOptions } from '../main.ts'

const connections = 50

/** A small GET through a proxy with keep-alive on both sides. */
export async function h1Proxy({ rounds, seconds, say }: RaceOptions): Promise<Report> {
  const origin = await startNode(1, './contestants/canned-origin.ts')
  const port = origin.words[0] as string
  const started: [string, Running | undefined][] = [
    ['heddle', await startNode(0, './contestants/proxy-heddle.ts', [port])],
    ['http-proxy', await startNode(0, './contestants/proxy.ts', ['http-proxy', port])],
    ['httpxy', await startNode(0, './contestants/proxy.ts', ['httpxy', port])],
    ['nginx', await nginxProxy(Number(port))],
    ['haproxy', await haproxyProxy(Number(port))],
  ]
  const proxies = started.filter((entry): entry is [string, Running] => entry[1] !== undefined)
  try {
    const lanes: Lane[] = proxies.map(([contestant, { pid, words }]) => ({
      contestant,
      variant: '',
      run: () => measured(pid, () => http1Load({ port: Number(words[0]), path: '/', connections, seconds })),
    }))
    const results = await alternate(lanes, rounds, say)
    return { bench: 'h1-proxy', results, ratios: ratiosOf(results), checks: {} }
  } finally {
    for (const [, proxy] of proxies) await stop(proxy)
    await stop(origin)
  }
}
