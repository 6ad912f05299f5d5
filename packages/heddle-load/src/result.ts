import { Durations } from './durations.ts'
import { targetInWords } from './make-plan.ts'
import type { LoadKind, LoadProtocol } from './options.ts'
import type { Plan } from './plan.ts'
import { limitsOf } from './saturation.ts'
import { addFailures, Tally, type Failure, type Failures } from './tally.ts'
import type { ThreadRecord } from './thread-run.ts'
import { judge, type Threshold, type ThresholdResult } from './threshold.ts'

/**
 * How long requests took, ms. A percentile is of all requests that were due, and those without an answer rank behind all
 * others: `p99` is what 99 % of them were answered within, and null if so many were not. `mean`, `min` and `max` are of
 * those that were answered, and null if none was.
 */
export interface DurationSummary {
  readonly p50: number | null
  readonly p90: number | null
  readonly p99: number | null
  readonly p999: number | null
  readonly max: number | null
  readonly mean: number | null
  readonly min: number | null
}

/** What became of requests that were due while it was measured. */
export interface RequestCounts {
  /** All of them: the sum of the following. */
  readonly due: number
  /** Answered as they should be. */
  readonly succeeded: number
  /** Answered, but not with a status, `grpc-status` or echo that is a success. */
  readonly rejected: number
  /** Ended without a whole answer; `errors` says why. */
  readonly failed: number
  /** Without an answer when the time, `grace` included, was over. */
  readonly unfinished: number
  /** Never begun: the backlog was full, or the time was over. */
  readonly dropped: number
}

/** One kind of request of several. */
export interface KindResult {
  readonly name: string
  readonly requests: RequestCounts
  readonly latency: DurationSummary
}

/** What a load found. Times in ms, sizes in bytes. */
export interface LoadResult {
  /** Where the load went. */
  readonly target: string
  readonly kind: LoadKind
  readonly protocol: LoadProtocol
  readonly loop: 'closed' | 'open'
  /** Requests per second that were due, in an open loop. */
  readonly rate: number | null
  readonly connections: number
  readonly streams: number
  readonly threads: number
  /** How long was measured. */
  readonly measured: number
  readonly requests: RequestCounts
  /** Successes per second that came while it was measured. */
  readonly perSecond: number
  /** From the moment a request was due to the end of its answer; in a closed loop it is due when it is begun. */
  readonly latency: DurationSummary
  /** From the moment it was given to a connection. */
  readonly service: DurationSummary
  readonly statuses: Readonly<Record<string, number>>
  readonly grpcStatuses: Readonly<Record<string, number>>
  /** Why requests failed, by `HeddleError.code`, with what the first said. */
  readonly errors: Readonly<Record<string, Failure>>
  /** Why WebSockets did not open, likewise. Of the whole time. */
  readonly unopened: Readonly<Record<string, Failure>>
  /** Answers by the version of HTTP: `{ h2: 1000 }`. */
  readonly protocols: Readonly<Record<string, number>>
  /** Connections made, the warm-up included. */
  readonly connectionsOpened: number
  /** Requests that moved to another connection, because a server had certainly not acted on them. */
  readonly moved: number
  /** Contents and messages, without heads and frames. */
  readonly bytes: { readonly received: number; readonly sent: number }
  readonly generator: GeneratorResult
  readonly thresholds: readonly ThresholdResult[]
  /** By kind, where there are several. */
  readonly kinds: readonly KindResult[]
  /** `[percent, ms]` of `latency`, for a curve. Of what was answered. */
  readonly distribution: readonly (readonly [number, number])[]
  /** Why it ended before its time: no connection was to be had. */
  readonly gaveUp: string | null
  /** It was stopped by its signal. */
  readonly interrupted: boolean
}

/** How the load generator itself was doing. */
export interface GeneratorResult {
  /** CPU time for time, of the process: 1 is one core. */
  readonly cpu: number
  /** Of its busiest thread, 0 to 1: the share of time in which the event loop had something to do. Spinning counts. */
  readonly utilization: number
  /** How late the timers of its event loop were, of the worst thread. */
  readonly loopDelay: { readonly p50: number; readonly p99: number; readonly max: number }
  /** Open loop: how late it noticed that requests were due. */
  readonly lateness: DurationSummary | null
  /** Why its figures are not to be trusted: it was the bottleneck itself. Empty: it was not. */
  readonly limits: readonly string[]
}

/** Puts together what all threads have measured. */
export function resultOf(plan: Plan, records: readonly ThreadRecord[], thresholds: readonly Threshold[], interrupted: boolean): LoadResult {
  const kinds = plan.requests.map((_, kind) => {
    const tally = new Tally()
    for (const record of records) tally.add(record.tallies[kind] as ThreadRecord['tallies'][number])
    return tally
  })
  const all = new Tally()
  for (const kind of kinds) all.add(kind.toRecord())
  const sum = (value: (record: ThreadRecord) => number): number => records.reduce((total, record) => total + value(record), 0)
  const lateness = new Durations()
  const unopened: Failures = new Map()
  for (const record of records) {
    lateness.add(record.lateness)
    addFailures(unopened, record.unopened)
  }
  const requests = countsOf(
    all,
    sum(({ notBegun }) => notBegun),
  )
  const missing = requests.due - all.latency.count
  const measured = Math.max(...records.map((record) => record.measured))
  const perSecond = measured > 0 ? (sum(({ succeededInTime }) => succeededInTime) * 1_000) / measured : 0
  const watches = records.map(({ watch }) => watch)
  const generator = {
    cpu: Math.max(...watches.map(({ cpu }) => cpu)),
    utilization: Math.max(...watches.map(({ utilization }) => utilization)),
    loopDelay: {
      p50: Math.max(...watches.map(({ delay }) => delay.p50)),
      p99: Math.max(...watches.map(({ delay }) => delay.p99)),
      max: Math.max(...watches.map(({ delay }) => delay.max)),
    },
    lateness: plan.rate > 0 ? summaryOf(lateness, 0) : null,
  }
  return {
    target: targetInWords(plan),
    kind: plan.kind,
    protocol: plan.protocol,
    loop: plan.rate > 0 ? 'open' : 'closed',
    rate: plan.rate > 0 ? plan.rate : null,
    connections: plan.connections,
    streams: plan.streams,
    threads: plan.threads,
    measured,
    requests,
    perSecond,
    latency: summaryOf(all.latency, missing),
    service: summaryOf(all.service, missing),
    statuses: recordOf(all.statuses),
    grpcStatuses: recordOf(all.grpcStatuses),
    errors: recordOf(all.failures),
    unopened: recordOf(unopened),
    protocols: recordOf(all.protocols),
    connectionsOpened: sum(({ opened }) => opened),
    moved: all.moved,
    bytes: { received: all.bytesReceived, sent: all.bytesSent },
    generator: { ...generator, limits: limitsOf(plan, generator, all.protocols.get('h1')) },
    thresholds: thresholds.map((threshold) =>
      judge(threshold, {
        duration: (metric) => durationOf(metric, all, missing),
        count: (metric) => countOf(metric, all, requests),
        due: requests.due,
        perSecond,
      }),
    ),
    kinds: kinds.length === 1 ? [] : kinds.map((tally, i) => kindResult(plan.requests[i]?.name ?? '', tally)),
    distribution: all.latency.curve(),
    gaveUp: records.every((record) => record.gaveUp !== undefined) ? (records[0]?.gaveUp ?? null) : null,
    interrupted,
  }
}

function countsOf({ succeeded, rejected, failed, unfinished }: Tally, dropped: number): RequestCounts {
  return { due: succeeded + rejected + failed + unfinished + dropped, succeeded, rejected, failed, unfinished, dropped }
}

/** Which kind a request that was not begun would have been of is not known: the rest of its kind's are those begun. */
function kindResult(name: string, tally: Tally): KindResult {
  const requests = countsOf(tally, 0)
  return { name, requests, latency: summaryOf(tally.latency, requests.due - tally.latency.count) }
}

function summaryOf(durations: Durations, missing: number): DurationSummary {
  const percentile = (percent: number): number | null => durations.percentile(percent, missing) ?? null
  const some = durations.count > 0
  return {
    p50: percentile(50),
    p90: percentile(90),
    p99: percentile(99),
    p999: percentile(99.9),
    max: some ? durations.max : null,
    mean: some ? durations.mean : null,
    min: some ? durations.min : null,
  }
}

/** Of a threshold's metric. `max` and `mean` are not known either where some were not answered: they would only be longer. */
function durationOf(metric: string, { latency, service }: Tally, missing: number): number | undefined {
  const isService = metric.startsWith('service.')
  const durations = isService ? service : latency
  const name = isService ? metric.slice('service.'.length) : metric
  if (name.startsWith('p')) return durations.percentile(Number(name.slice(1)), missing)
  if (missing > 0 || durations.count === 0) return undefined
  return name === 'max' ? durations.max : durations.mean
}

function countOf(metric: string, { statuses }: Tally, { due, succeeded, dropped }: RequestCounts): number {
  if (metric === 'errors') return due - succeeded
  if (metric === 'dropped') return dropped
  const wanted = metric.slice('status.'.length)
  let count = 0
  for (const [status, times] of statuses) {
    if (wanted.endsWith('xx') ? String(status)[0] === wanted[0] : String(status) === wanted) count += times
  }
  return count
}

function recordOf<Value>(counts: ReadonlyMap<string | number, Value>): Record<string, Value> {
  const pairs = [...counts].map(([key, value]) => [String(key), value] as const)
  return Object.fromEntries(pairs.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
