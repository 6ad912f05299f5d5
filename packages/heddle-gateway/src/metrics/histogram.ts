/**
 * Counts in fixed buckets, as Prometheus and OpenTelemetry want them. `bounds` are upper bounds,
 * inclusive, ascending; one more bucket is for what is above the last.
 */
export class BucketHistogram {
  readonly bounds: readonly number[]
  readonly counts: Float64Array
  sum: number

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
    this.sum = 0
  }

  record(value: number): void {
    const { bounds } = this
    let index = 0
    // Most answers are quick and the buckets few: walking beats a binary search.
    while (index < bounds.length && value > (bounds[index] as number)) index++
    this.counts[index] = (this.counts[index] as number) + 1
    this.sum += value
  }
}

const subBucketBits = 7
const subBuckets = 1 << subBucketBits
/** Values from here on are counted as this: 2^32 − 1, so 71 minutes where the unit is µs. */
const ceiling = 2 ** 32 - 1

/**
 * Counts by the logarithm: every power of two is cut into 128 buckets, so a percentile is at most
 * 0.8 % off, from 1 to 2^32. The unit is the caller's; values are rounded to whole numbers.
 */
export class LogHistogram {
  /** Grows to the highest bucket used: a route whose answers take milliseconds needs a few KiB. */
  counts: Float64Array
  count: number
  sum: number
  min: number
  max: number

  constructor() {
    this.counts = new Float64Array(8 * subBuckets)
    this.count = 0
    this.sum = 0
    this.min = Infinity
    this.max = 0
  }

  record(value: number): void {
    const index = bucketOf(value)
    if (index >= this.counts.length) this.#grow(index + 1)
    this.counts[index] = (this.counts[index] as number) + 1
    this.count++
    this.sum += value
    if (value < this.min) this.min = value
    if (value > this.max) this.max = value
  }

  /** The value below or at which `share` (0–1) of the recorded values are; 0 if there are none. */
  percentile(share: number): number {
    const rank = Math.max(1, Math.ceil(share * this.count))
    if (this.count === 0) return 0
    if (rank >= this.count) return this.max
    let seen = 0
    for (let index = 0; index < this.counts.length; index++) {
      seen += this.counts[index] as number
      if (seen >= rank) return Math.min(this.max, Math.max(this.min, middleOf(index)))
    }
    return this.max
  }

  /** Adds what `other` counted. */
  merge(other: LogHistogramSnapshot): void {
    for (let i = 0; i < other.indexes.length; i++) {
      const index = other.indexes[i] as number
      if (index >= this.counts.length) this.#grow(index + 1)
      this.counts[index] = (this.counts[index] as number) + (other.counts[i] as number)
      this.count += other.counts[i] as number
    }
    this.sum += other.sum
    this.min = Math.min(this.min, other.min)
    this.max = Math.max(this.max, other.max)
  }

  /** The used buckets, to send to another process. */
  snapshot(): LogHistogramSnapshot {
    const indexes: number[] = []
    const counts: number[] = []
    this.counts.forEach((count, index) => {
      if (count === 0) return
      indexes.push(index)
      counts.push(count)
    })
    return { indexes, counts, sum: this.sum, min: this.min, max: this.max }
  }

  #grow(length: number): void {
    const counts = new Float64Array(Math.ceil(length / subBuckets) * subBuckets)
    counts.set(this.counts)
    this.counts = counts
  }
}

/** What {@link LogHistogram.snapshot} gives: the used buckets only. */
export interface LogHistogramSnapshot {
  readonly indexes: readonly number[]
  readonly counts: readonly number[]
  readonly sum: number
  /** Infinity when nothing was recorded. */
  readonly min: number
  readonly max: number
}

function bucketOf(value: number): number {
  const whole = value >= ceiling ? ceiling : Math.round(value)
  if (whole < subBuckets) return whole < 0 ? 0 : whole
  const shift = 31 - Math.clz32(whole) - subBucketBits
  return shift * subBuckets + (whole >>> shift)
}

/** The middle of the values that fall into a bucket. */
function middleOf(index: number): number {
  if (index < 2 * subBuckets) return index
  const shift = Math.floor(index / subBuckets) - 1
  const first = (index - shift * subBuckets) * 2 ** shift
  return first + (2 ** shift - 1) / 2
}
