import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import { startNode, stop, type Running } from '../processes.ts'
import { ratiosOf, type Report } from '../report.ts'
import { alternate, measured, type Lane } from '../rounds.ts'
import type { RaceOptions } from '../main.ts'

const connections = '50'
const contestants = [
  { contestant: 'heddle', variant: '', kind: 'heddle' },
  { contestant: 'undici', variant: '', kind: 'undici' },
  { contestant: 'node:http', variant: '', kind: 'node:http' },
  { contestant: 'heddle', variant: 'fetch', kind: 'heddle-fetch' },
  { contestant: 'undici', variant: 'fetch', kind: 'undici-fetch' },
]

/** A client with 50 requests in flight against a server of prepared bytes. */
export async function h1Client({ rounds, seconds, say }: RaceOptions): Promise<Report> {
  const origin = await startNode(1, './contestants/canned-origin.ts')
  const clients: Running[] = []
  try {
    const lanes: Lane[] = []
    for (const { contestant, variant, kind } of contestants) {
      const client = await startNode(0, './contestants/client.ts', [kind, origin.words[0] as string, connections], {}, true)
      clients.push(client)
      const lines = createInterface({ input: client.child.stdout as NodeJS.ReadableStream })
      lanes.push({ contestant, variant, run: () => measured(client.pid, () => go(client, lines, seconds)) })
    }
    const results = await alternate(lanes, rounds, say)
    return { bench: 'h1-client', results, ratios: ratiosOf(results), checks: {} }
  } finally {
    for (const running of [...clients, origin]) await stop(running)
  }
}

async function go({ child }: Running, lines: Interface, seconds: number): Promise<{ requests: number; seconds: number }> {
  child.stdin?.write(`go ${seconds * 1000}\n`)
  const [line] = (await Promise.race([
    once(lines, 'line'),
    once(child, 'exit').then(() => {
      throw new Error('the client ended during its run')
    }),
  ])) as [string]
  const [, requests, took] = line.split(' ')
  return { requests: Number(requests), seconds: Number(took) }
}
