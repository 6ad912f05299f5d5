import { treeCpuMicros } from './cpu.ts'
import { median, type Result } from './report.ts'

/** One measured run of one contestant. */
export interface Sample {
  readonly requests: number
  readonly seconds: number
  readonly cpuMicros: number
}

/** A contestant in one variant: `run` is called once a round. */
export interface Lane {
  readonly contestant: string
  readonly variant: string
  run(): Promise<Sample>
}

/**
 * One warm-up round and then `rounds` rounds, in each of which every lane runs once, in an order that
 * turns from round to round, so that the machine's moods hit all alike. Returns the medians.
 */
export async function alternate(lanes: readonly Lane[], rounds: number, say: (text: string) => void): Promise<Result[]> {
  const samples = new Map<Lane, Sample[]>(lanes.map((lane) => [lane, []]))
  for (let round = 0; round <= rounds; round++) {
    for (let i = 0; i < lanes.length; i++) {
      const lane = lanes[(i + round) % lanes.length] as Lane
      const sample = await lane.run()
      if (round > 0) samples.get(lane)?.push(sample)
      const cost = (sample.cpuMicros / sample.requests).toFixed(2)
      say(
        `${round === 0 ? 'warm-up' : `round ${round}`}  ${lane.contestant}${lane.variant && `@${lane.variant}`}  ${cost} µs  ${Math.round(sample.requests / sample.seconds)}/s`,
      )
    }
  }
  return lanes.map((lane) => {
    const own = samples.get(lane) as Sample[]
    return {
      contestant: lane.contestant,
      variant: lane.variant,
      cpuMicros: median(own.map((sample) => sample.cpuMicros / sample.requests)),
      perSecond: median(own.map((sample) => sample.requests / sample.seconds)),
    }
  })
}

/** Measures the CPU that the tree of `pid` spends while `load` runs. */
export async function measured(pid: number, load: () => Promise<{ requests: number; seconds: number }>): Promise<Sample> {
  const before = treeCpuMicros(pid)
  const { requests, seconds } = await load()
  return { requests, seconds, cpuMicros: treeCpuMicros(pid) - before }
}
