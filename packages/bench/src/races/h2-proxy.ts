import { haproxyHttp2Proxy, nginxHttp2Proxy } from '../contestants/programs.ts'
import { hasHttp2Load, http2Load, type Http2Load } from '../load.ts'
import { Orders, startNode, stop, type Running } from '../processes.ts'
import { median, ratiosOf, rounded, type Report, type Result } from '../report.ts'
import { alternate, measured, type Lane, type Sample } from '../rounds.ts'
import type { RaceOptions } from '../main.ts'

type Variant = { readonly name: string; readonly size: number } & Pick<Http2Load, 'streams' | 'content' | 'windowBits'>
const variants: readonly Variant[] = [
  { name: '10', size: 12, streams: 10 },
  { name: '100', size: 12, streams: 100 },
  { name: '100-post', size: 12, streams: 100, content: 'x' },
  { name: '10-100k', size: 102_400, streams: 10, windowBits: 24 },
]
/** What even the slowest can do in a third of its time, so that latency is not that of a queue. */
const fixedRate = 4_000
const fixedVariant = '4k-per-second'
/** Latency is noisier than cost. */
const fixedRounds = 5

/** HTTP/2 on both sides of a proxy, one connection upstream: the case of a service mesh. */
export async function h2Proxy({ rounds, seconds, say }: RaceOptions): Promise<Report> {
  if (!hasHttp2Load()) throw new Error('h2-proxy needs h2load: npm run bench:setup installs it')
  const results: Result[] = []
  const frames: Record<string, Batching> = {}
  let latency: Latency | undefined
  for (const size of [12, 102_400]) {
    const origin = await startNode(1, './contestants/server-heddle.ts', ['raw', String(size)])
    const port = origin.words[0] as string
    const heddle = await startNode(0, './contestants/proxy-heddle.ts', [port, 'h2c'], {}, true)
    const started: [string, Running | undefined][] = [
      ['heddle', heddle],
      ['node:http2', await startNode(0, './contestants/proxy-node-http2.ts', [port])],
      ['nginx', await nginxHttp2Proxy(Number(port))],
      ['haproxy', await haproxyHttp2Proxy(Number(port))],
    ]
    const proxies = started.filter((entry): entry is [string, Running] => entry[1] !== undefined)
    try {
      const counter = new FrameCounter(heddle)
      const lanes: Lane[] = []
      for (const { name, size: wanted, ...load } of variants) {
        if (wanted !== size) continue
        for (const [contestant, { pid, words }] of proxies) {
          const whole = { ...load, port: Number(words[0]), connections: 1, seconds }
          const run = (): Promise<Sample> => measured(pid, () => http2Load(whole))
          lanes.push({ contestant, variant: name, run: contestant === 'heddle' ? () => counter.during(name, run) : run })
        }
      }
      results.push(...(await alternate(lanes, rounds, say)))
      Object.assign(frames, counter.found)
      if (size === 12) {
        latency = await raceLatency(proxies, Number(port), Math.min(seconds, 2), say)
        results.push(...latency.results)
      }
    } finally {
      for (const [, proxy] of proxies) await stop(proxy)
      await stop(origin)
    }
  }
  const { directP50Micros, addedP50Micros } = latency as Latency
  return {
    bench: 'h2-proxy',
    results,
    ratios: ratiosOf(results),
    checks: { requestsPerSecond: fixedRate, directP50Micros, addedP50Micros, framesPerWrite: frames },
  }
}

interface Latency {
  readonly results: readonly Result[]
  readonly directP50Micros: number
  readonly addedP50Micros: Readonly<Record<string, number>>
}

/** The same rate for all, and for the origin without a proxy; what a proxy adds is told round by round. */
async function raceLatency(
  proxies: readonly [string, Running][],
  origin: number,
  seconds: number,
  say: (text: string) => void,
): Promise<Latency> {
  const medians = new Map<string, number[]>()
  const timed = async (contestant: string, port: number): Promise<{ requests: number; seconds: number }> => {
    const run = await http2Load({ port, connections: 1, streams: 100, seconds, perSecond: fixedRate })
    const own = medians.get(contestant) ?? []
    medians.set(contestant, [...own, run.p50Micros])
    say(`  ${contestant}  p50 ${run.p50Micros} µs`)
    return run
  }
  const direct: Lane = {
    contestant: 'direct',
    variant: fixedVariant,
    run: async () => ({ ...(await timed('direct', origin)), cpuMicros: 0 }),
  }
  const lanes = proxies.map(([contestant, { pid, words }]) => ({
    contestant,
    variant: fixedVariant,
    run: () => measured(pid, () => timed(contestant, Number(words[0]))),
  }))
  const costs = await alternate([direct, ...lanes], fixedRounds, say)
  // The first of each is the warm-up's.
  const counted = (contestant: string): number[] => (medians.get(contestant) as number[]).slice(1)
  const without = counted('direct')
  const results = costs
    .filter(({ contestant }) => contestant !== 'direct')
    .map((result) => ({
      ...result,
      addedP50Micros: median(counted(result.contestant).map((micros, round) => micros - (without[round] as number))),
    }))
  return {
    results,
    directP50Micros: rounded(median(without)),
    addedP50Micros: Object.fromEntries(results.map(({ contestant, addedP50Micros }) => [contestant, rounded(addedP50Micros)])),
  }
}

/** Frames per write, on both sides of a proxy. */
interface Batching {
  readonly clients: number
  readonly upstream: number
}

/** Counts frames and writes of Heddle's proxy, variant by variant. */
class FrameCounter {
  readonly #orders: Orders
  readonly #counts: Map<string, number[]>

  constructor(proxy: Running) {
    this.#orders = new Orders(proxy)
    this.#counts = new Map()
  }

  async during(variant: string, run: () => Promise<Sample>): Promise<Sample> {
    const before = await this.#read()
    const sample = await run()
    const after = await this.#read()
    const sums = this.#counts.get(variant) ?? [0, 0, 0, 0]
    this.#counts.set(
      variant,
      sums.map((sum, i) => sum + (after[i] as number) - (before[i] as number)),
    )
    return sample
  }

  get found(): Record<string, Batching> {
    return Object.fromEntries(
      [...this.#counts].map(([variant, [clientFrames = 0, clientWrites = 0, upstreamFrames = 0, upstreamWrites = 0]]) => [
        variant,
        { clients: rounded(clientFrames / clientWrites), upstream: rounded(upstreamFrames / upstreamWrites) },
      ]),
    )
  }

  async #read(): Promise<number[]> {
    return (await this.#orders.give('frames')).slice(1).map(Number)
  }
}
