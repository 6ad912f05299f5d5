import type { FamilySnapshot, Labels, SeriesSnapshot } from './family.ts'

/** The media type of {@link renderPrometheus}. */
export const prometheusType = 'text/plain; version=0.0.4; charset=utf-8'

/**
 * The text form that Prometheus scrapes, version 0.0.4. Families without a series are left out;
 * labels with an empty value too, which means the same to Prometheus.
 */
export function renderPrometheus(families: readonly FamilySnapshot[]): string {
  let text = ''
  for (const family of families) {
    if (family.series.length === 0) continue
    text += `# HELP ${family.name} ${family.help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')}\n# TYPE ${family.name} ${family.kind}\n`
    for (const series of family.series) {
      text += family.kind === 'histogram' ? renderHistogram(family, series) : line(family.name, series.labels, series.value)
    }
  }
  return text
}

function renderHistogram(family: FamilySnapshot, series: SeriesSnapshot): string {
  let text = ''
  let count = 0
  for (let i = 0; i <= family.bounds.length; i++) {
    count += series.counts[i] ?? 0
    const bound = family.bounds[i]
    text += line(`${family.name}_bucket`, [...series.labels, ['le', bound === undefined ? '+Inf' : String(bound)]], count)
  }
  return text + line(`${family.name}_sum`, series.labels, series.value) + line(`${family.name}_count`, series.labels, count)
}

function line(name: string, labels: Labels, value: number): string {
  const shown = labels.filter(([, text]) => text !== '').map(([label, text]) => `${label}="${escapeLabel(text)}"`)
  return `${name}${shown.length > 0 ? `{${shown.join(',')}}` : ''} ${number(value)}\n`
}

function escapeLabel(text: string): string {
  return text.replace(/[\\"\n]/g, (char) => (char === '\n' ? '\\n' : `\\${char}`))
}

function number(value: number): string {
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : String(value)
}
