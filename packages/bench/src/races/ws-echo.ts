import { Orders, startNode, stop } from '../processes.ts'
import { ratiosOf, rounded, type Report } from '../report.ts'
import { alternate, measured, type Lane } from '../rounds.ts'
import type { RaceOptions } from '../main.ts'

/** What `contestants/ws-generator.ts` is told to do. */
export interface WebSocketLoad {
  readonly port: number
  readonly connections: number
  /** Messages in flight on each connection. */
  readonly inFlight: number
  /** Characters of a message, all ASCII. */
  readonly size: number
  /** permessage-deflate is offered, and messages are sent compressed. */
  readonly deflate: boolean
}

const messages = [
  { name: '64', size: 64, inFlight: 1 },
  { name: '64x32', size: 64, inFlight: 32 },
  { name: '1k', size: 1_024, inFlight: 1 },
  { name: '64k', size: 65_536, inFlight: 1 },
] as const
const kinds = ['heddle', 'heddle-websocket', 'ws']

/** Text messages that come back, one or a hundred connections over HTTP/1.1, with permessage-deflate and without. */
export async function wsEcho({ rounds, seconds, say }: RaceOptions): Promise<Report> {
  const generator = await startNode(1, './contestants/ws-generator.ts', [], {}, true)
  const servers = await Promise.all(kinds.map((kind) => startNode(0, './contestants/ws-server.ts', [kind])))
  try {
    const orders = new Orders(generator)
    const counts: Counts = new Map()
    const lanes: Lane[] = []
    for (const connections of [1, 100]) {
      for (const deflate of [false, true]) {
        for (const { name, size, inFlight } of messages) {
          const variant = `${name}${deflate ? '-deflate' : ''}${connections === 1 ? '' : `-c${connections}`}`
          for (const [i, { pid, words }] of servers.entries()) {
            const contestant = kinds[i] as string
            const load: WebSocketLoad = { port: Number(words[0]), connections, inFlight, size, deflate }
            const go = async (): Promise<{ requests: number; seconds: number }> => {
              // There are many variants, and a second of each tells enough.
              const [, came, took, frames] = await orders.give(`go ${Math.min(seconds, 1) * 1_000}`)
              const before = counts.get(contestant) ?? [0, 0]
              counts.set(contestant, [before[0] + Number(came), before[1] + Number(frames)])
              return { requests: Number(came), seconds: Number(took) }
            }
            const run = async () => {
              await orders.give(`open ${JSON.stringify(load)}`)
              const sample = await measured(pid, go)
              await orders.give('shut')
              return sample
            }
            lanes.push({ contestant, variant, run })
          }
        }
      }
    }
    const results = await alternate(lanes, rounds, say)
    const framesPerMessage = Object.fromEntries([...counts].map(([contestant, [came, frames]]) => [contestant, rounded(frames / came)]))
    return {
      bench: 'ws-echo',
      results,
      ratios: ratiosOf(results),
      checks: { framesPerMessage: framesPerMessage['heddle'], framesPerMessageOf: framesPerMessage },
    }
  } finally {
    for (const one of [generator, ...servers]) await stop(one)
  }
}

/** Messages that came back to a contestant's generator, and their frames. */
type Counts = Map<string, readonly [number, number]>
