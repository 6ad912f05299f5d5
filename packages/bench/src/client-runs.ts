import { Orders, startNode, stop, type Running } from './processes.ts'
import type { Result } from './report.ts'
import { alternate, measured, type Lane } from './rounds.ts'
import type { RaceOptions } from './main.ts'

/** One client of a race: a `kind` of `contestants/client.ts`. */
export interface ClientLane {
  readonly contestant: string
  readonly variant: string
  readonly kind: string
  /** Requests in flight. */
  readonly concurrency: number
}

/** Runs clients against `origin`, in turns. */
export async function raceClients(
  clients: readonly ClientLane[],
  origin: Running,
  { rounds, seconds, say }: RaceOptions,
): Promise<Result[]> {
  const running: Running[] = []
  try {
    const lanes: Lane[] = []
    for (const { contestant, variant, kind, concurrency } of clients) {
      const client = await startNode(0, './contestants/client.ts', [kind, origin.words[0] as string, String(concurrency)], {}, true)
      running.push(client)
      const orders = new Orders(client)
      const go = async (): Promise<{ requests: number; seconds: number }> => {
        const [, requests, took] = await orders.give(`go ${seconds * 1000}`)
        return { requests: Number(requests), seconds: Number(took) }
      }
      lanes.push({ contestant, variant, run: () => measured(client.pid, go) })
    }
    return await alternate(lanes, rounds, say)
  } finally {
    for (const one of running) await stop(one)
  }
}
