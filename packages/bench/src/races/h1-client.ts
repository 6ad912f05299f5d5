import { raceClients } from '../client-runs.ts'
import { startNode, stop } from '../processes.ts'
import { ratiosOf, type Report } from '../report.ts'
import type { RaceOptions } from '../main.ts'

const concurrency = 50
const clients = [
  { contestant: 'heddle', variant: '', kind: 'heddle', concurrency },
  { contestant: 'undici', variant: '', kind: 'undici', concurrency },
  { contestant: 'node:http', variant: '', kind: 'node:http', concurrency },
  { contestant: 'heddle', variant: 'fetch', kind: 'heddle-fetch', concurrency },
  { contestant: 'undici', variant: 'fetch', kind: 'undici-fetch', concurrency },
]

/** A client with 50 requests in flight against a server of prepared bytes. */
export async function h1Client(options: RaceOptions): Promise<Report> {
  const origin = await startNode(1, './contestants/canned-origin.ts')
  try {
    const results = await raceClients(clients, origin, options)
    return { bench: 'h1-client', results, ratios: ratiosOf(results), checks: {} }
  } finally {
    await stop(origin)
  }
}
