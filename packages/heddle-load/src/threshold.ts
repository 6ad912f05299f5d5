import { UsageError } from 'heddle/http'
import { countInWords, durationInWords, parseDuration, rateInWords, shareInWords } from './units.ts'

/** What a threshold is about, and what it may be. */
const kinds = {
  /** `p99`, `max`, `mean`, with `service.` before it for the time since it was sent. */
  duration: /^(service\.)?(p\d{1,2}(?:\.\d{1,4})?|max|mean)$/,
  count: /^(errors|dropped|status\.[1-5](?:xx|\d\d))$/,
  rate: /^rps$/,
} as const
const comparisons = ['>=', '<=', '>', '<'] as const
type Comparison = (typeof comparisons)[number]

/** What must not be, understood. */
export interface Threshold {
  /** As it was written. */
  readonly text: string
  readonly metric: string
  readonly comparison: Comparison
  /** ms, a count, a share (0 to 1), or requests per second. */
  readonly value: number
  readonly unit: 'ms' | 'count' | 'share' | 'perSecond'
}

/** Where the values of a load come from. */
export interface Measured {
  /** ms; undefined: so many were not answered. */
  duration(metric: string): number | undefined
  count(metric: string): number
  /** Requests that were due. */
  readonly due: number
  readonly perSecond: number
}

const grammar = "a threshold such as 'p99>20ms', 'errors>0.1%', 'errors>0', 'dropped>0', 'rps<5000', 'service.p50>=2ms', 'status.5xx>0'"

/** Reads `METRIC COMPARISON VALUE`; blanks do not count. Throws UsageError, in which `name` says where it stands. */
export function parseThreshold(text: string, name = 'failIf'): Threshold {
  const match = /^\s*([a-z0-9.]+)\s*(>=|<=|>|<)\s*([0-9.]+)\s*([a-zµ%]*)\s*$/i.exec(String(text))
  if (match === null) throw new UsageError(`${name}: expected ${grammar}, found ${JSON.stringify(text)}`)
  const [, metric, comparison, number, unit] = match as unknown as [string, string, Comparison, string, string]
  const bad = (expected: string): UsageError =>
    new UsageError(`${name}: ${metric}: expected ${expected}, found ${JSON.stringify(number + unit)}`)
  const value = /^\d+(\.\d+)?$/.test(number) ? Number(number) : Number.NaN
  const made = { text: text.trim(), metric, comparison }
  if (kinds.duration.test(metric)) {
    if (/p0*(\.0*)?$/.test(metric)) throw new UsageError(`${name}: ${metric} is no percentile: they begin above p0`)
    const ms = parseDuration(number + unit)
    if (ms === undefined) throw bad('a duration such as 20ms or 1.5s')
    return { ...made, value: ms, unit: 'ms' }
  }
  if (kinds.rate.test(metric)) {
    if (Number.isNaN(value) || !(unit === '' || unit === 'k')) throw bad('a number of requests per second such as 5000 or 5k')
    return { ...made, value: unit === 'k' ? value * 1_000 : value, unit: 'perSecond' }
  }
  if (!kinds.count.test(metric)) {
    const known = 'p50 (any percentile), max, mean, service.p50, service.max, service.mean, errors, dropped, status.5xx, status.404, rps'
    throw new UsageError(`${name}: there is no ${JSON.stringify(metric)} to compare; there are ${known}`)
  }
  if (unit === '%' && value <= 100) return { ...made, value: value / 100, unit: 'share' }
  if (unit === '' && Number.isInteger(value)) return { ...made, value, unit: 'count' }
  throw bad('a whole number, or a share such as 0.1%')
}

/** What a threshold came to. */
export interface ThresholdResult {
  readonly threshold: string
  /** True: it is as it must not be. */
  readonly failed: boolean
  /** What was measured, in the unit of the threshold (ms, a count, a share from 0 to 1, per second); null: not known, for too many had no answer. */
  readonly measured: number | null
  /** The same for people. */
  readonly reason: string
}

/** Compares. A percentile that is not known, because so many requests were not answered, is longer than any. */
export function judge(threshold: Threshold, from: Measured): ThresholdResult {
  const { text, metric, comparison, value, unit } = threshold
  const measured = valueOf(threshold, from)
  const failed = compare(measured ?? Infinity, comparison, value)
  const words = {
    ms: durationInWords,
    count: countInWords,
    share: shareInWords,
    perSecond: (rate: number) => `${rateInWords(rate)}/s`,
  }[unit]
  const found = measured === undefined ? 'not known: too many requests had no answer' : words(measured)
  return { threshold: text, failed, measured: measured ?? null, reason: `${metric} is ${found}` }
}

function valueOf({ metric, unit }: Threshold, from: Measured): number | undefined {
  if (unit === 'ms') return from.duration(metric)
  if (unit === 'perSecond') return from.perSecond
  const count = from.count(metric)
  if (unit === 'count') return count
  return from.due === 0 ? 0 : count / from.due
}

function compare(measured: number, comparison: Comparison, value: number): boolean {
  switch (comparison) {
    case '>':
      return measured > value
    case '>=':
      return measured >= value
    case '<':
      return measured < value
    case '<=':
      return measured <= value
  }
}
