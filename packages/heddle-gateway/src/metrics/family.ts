import { BucketHistogram } from './histogram.ts'

/** A metric's kinds, as Prometheus names them. */
export type FamilyKind = 'counter' | 'gauge' | 'histogram'

/** `[name, value]` pairs in a fixed order; empty values are left out of the text. */
export type Labels = readonly (readonly [name: string, value: string])[]

/** One time series of a counter or gauge. Held by whoever counts, so counting is one addition. */
export class Series {
  readonly labels: Labels
  value: number

  constructor(labels: Labels) {
    this.labels = labels
    this.value = 0
  }
}

/** One time series of a histogram. */
export class HistogramSeries extends BucketHistogram {
  readonly labels: Labels

  constructor(labels: Labels, bounds: readonly number[]) {
    super(bounds)
    this.labels = labels
  }
}

/** A family's values at one moment, in a form that survives a trip between processes. */
export interface FamilySnapshot {
  readonly name: string
  readonly help: string
  readonly kind: FamilyKind
  /** Histograms only. */
  readonly bounds: readonly number[]
  readonly series: readonly SeriesSnapshot[]
}

export interface SeriesSnapshot {
  readonly labels: Labels
  /** Counter or gauge: the value. Histogram: the sum. */
  readonly value: number
  /** Histogram: one count per bucket, not cumulative. Else empty. */
  readonly counts: readonly number[]
}

/**
 * Time series per family. Statuses come from upstreams and methods from clients: whatever they do,
 * a family grows no further; the rest is counted together under OpenTelemetry's overflow attribute.
 */
export const seriesLimit = 2_000
const overflow: Labels = [['otel_metric_overflow', 'true']]

/** All series of one counter or gauge. */
export class ValueFamily {
  readonly name: string
  readonly help: string
  readonly kind: FamilyKind
  readonly #series = new Map<string, Series>()

  constructor(kind: 'counter' | 'gauge', name: string, help: string) {
    this.kind = kind
    this.name = name
    this.help = help
  }

  /** The series with these labels, made if it is new. To be kept: it is looked up by text. */
  series(labels: Labels): Series {
    return obtain(this.#series, labels, (kept) => new Series(kept))
  }

  snapshot(): FamilySnapshot {
    const series = [...this.#series.values()].map(({ labels, value }) => ({ labels, value, counts: [] }))
    return { name: this.name, help: this.help, kind: this.kind, bounds: [], series }
  }
}

/** All series of one histogram. */
export class HistogramFamily {
  readonly name: string
  readonly help: string
  readonly bounds: readonly number[]
  readonly #series = new Map<string, HistogramSeries>()

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.name = name
    this.help = help
    this.bounds = bounds
  }

  /** The series with these labels, made if it is new. To be kept: it is looked up by text. */
  series(labels: Labels): HistogramSeries {
    return obtain(this.#series, labels, (kept) => new HistogramSeries(kept, this.bounds))
  }

  /** Leaves a series out from now on: what it counted is gone for good. */
  forget(series: HistogramSeries): void {
    if (series.labels !== overflow) this.#series.delete(labelKey(series.labels))
  }

  snapshot(): FamilySnapshot {
    const series = [...this.#series.values()].map(({ labels, sum, counts }) => ({ labels, value: sum, counts: Array.from(counts) }))
    return { name: this.name, help: this.help, kind: 'histogram', bounds: this.bounds, series }
  }
}

function obtain<Kept>(known: Map<string, Kept>, labels: Labels, make: (labels: Labels) => Kept): Kept {
  const kept = known.size >= seriesLimit && !known.has(labelKey(labels)) ? overflow : labels
  const key = labelKey(kept)
  let series = known.get(key)
  if (series === undefined) {
    series = make(kept)
    known.set(key, series)
  }
  return series
}

function labelKey(labels: Labels): string {
  return labels.map(([name, value]) => `${name}\u0000${value}`).join('\u0001')
}

/** Sums what several processes counted; gauges add up as well (connections, requests under way). */
export function mergeFamilies(parts: readonly (readonly FamilySnapshot[])[]): FamilySnapshot[] {
  const merged = new Map<string, { family: FamilySnapshot; series: Map<string, SeriesSnapshot> }>()
  for (const family of parts.flat()) {
    let into = merged.get(family.name)
    if (into === undefined) {
      into = { family, series: new Map() }
      merged.set(family.name, into)
    }
    for (const series of family.series) {
      const key = labelKey(series.labels)
      const other = into.series.get(key)
      into.series.set(key, other === undefined ? series : addSeries(other, series))
    }
  }
  return [...merged.values()].map(({ family, series }) => ({ ...family, series: [...series.values()] }))
}

function addSeries(a: SeriesSnapshot, b: SeriesSnapshot): SeriesSnapshot {
  return { labels: a.labels, value: a.value + b.value, counts: a.counts.map((count, index) => count + (b.counts[index] ?? 0)) }
}
