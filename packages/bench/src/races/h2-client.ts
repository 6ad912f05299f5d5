import { raceClients } from '../client-runs.ts'
import { startNode, stop } from '../processes.ts'
import { ratiosOf, type Report } from '../report.ts'
import type { RaceOptions } from '../main.ts'

const kinds = [
  { contestant: 'heddle', kind: 'heddle-h2' },
  { contestant: 'node:http2', kind: 'node:http2' },
  { contestant: 'undici', kind: 'undici-h2' },
]
const clients = [1, 10, 100].flatMap((concurrency) => kinds.map((one) => ({ ...one, variant: String(concurrency), concurrency })))

/** A client with 1, 10 and 100 requests in flight on one plain-text HTTP/2 connection. */
export async function h2Client(options: RaceOptions): Promise<Report> {
  const origin = await startNode(1, './contestants/server-heddle.ts', ['raw'])
  try {
    const results = await raceClients(clients, origin, options)
    return { bench: 'h2-client', results, ratios: ratiosOf(results), checks: {} }
  } finally {
    await stop(origin)
  }
}
