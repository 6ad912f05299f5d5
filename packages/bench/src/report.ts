/** One contestant's median in one variant. `variant` is empty for the plain one. */
export interface Result {
  readonly contestant: string
  readonly variant: string
  /** CPU µs per request of the process tree under test. */
  readonly cpuMicros: number
  readonly perSecond: number
  /** Of proxies at a fixed rate: the median request took so many µs longer than without them. */
  readonly addedP50Micros?: number
}

/** What a race found. */
export interface Report {
  readonly bench: string
  readonly results: readonly Result[]
  /** `heddle/CONTESTANT` or `heddle/CONTESTANT@VARIANT` → the contestant's cost divided by Heddle's. */
  readonly ratios: Readonly<Record<string, number>>
  /** What is not a ratio to someone. */
  readonly checks: Readonly<Record<string, unknown>>
}

/** The middle of the values; the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? (sorted[middle] as number) : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** The ratios of every contestant to `heddle`, variant by variant. `cost` picks what counts. */
export function ratiosOf(
  results: readonly Result[],
  cost: (result: Result) => number = (result) => result.cpuMicros,
): Record<string, number> {
  const ratios: Record<string, number> = {}
  for (const result of results) {
    if (result.contestant === 'heddle') continue
    const ours = results.find((other) => other.contestant === 'heddle' && other.variant === result.variant)
    if (ours === undefined) continue
    ratios[`heddle/${result.contestant}${result.variant === '' ? '' : `@${result.variant}`}`] = rounded(cost(result) / cost(ours))
  }
  return ratios
}

/** Three significant digits: more would be noise. */
export function rounded(value: number): number {
  return Number(value.toPrecision(3))
}

/** The report as a table for people. */
export function table(report: Report): string {
  const hasLatency = report.results.some(({ addedP50Micros }) => addedP50Micros !== undefined)
  const rows = [['contestant', 'variant', 'CPU µs/request', 'requests/s', 'ratio', ...(hasLatency ? ['added p50 µs'] : [])]]
  for (const { contestant, variant, cpuMicros, perSecond, addedP50Micros } of report.results) {
    const ratio = report.ratios[`heddle/${contestant}${variant === '' ? '' : `@${variant}`}`]
    rows.push([
      contestant,
      variant || '-',
      cpuMicros.toFixed(2),
      Math.round(perSecond).toLocaleString('en'),
      ratio === undefined ? '' : `${ratio}×`,
      ...(hasLatency ? [addedP50Micros === undefined ? '' : addedP50Micros.toFixed(0)] : []),
    ])
  }
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => (row[column] as string).length))) as number[]
  const lines = rows.map((row) =>
    row.map((cell, column) => (column < 2 ? cell.padEnd(widths[column] as number) : cell.padStart(widths[column] as number))).join('  '),
  )
  const checks = Object.entries(report.checks).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  return [`# ${report.bench}`, ...lines, ...checks].join('\n')
}
