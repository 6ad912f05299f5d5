/** A sample of the Prometheus text form. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A metric family as `# TYPE` announces it, with its samples. */
export interface ParsedFamily {
  readonly kind: string
  readonly help: string
  readonly samples: Sample[]
}

/**
 * Reads the Prometheus text form, version 0.0.4, for tests and strictly: a sample must follow the
 * `# TYPE` of its family, a family comes once, a label set comes once, escapes are the three there
 * are. Throws for anything else.
 */
export function parsePrometheus(text: string): Map<string, ParsedFamily> {
  const families = new Map<string, ParsedFamily>()
  const seen = new Set<string>()
  let help: { name: string; text: string } | undefined
  let current: { name: string; family: ParsedFamily } | undefined
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  for (const line of text.slice(0, -1).split('\n')) {
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/.exec(line)
    if (comment?.[1] === 'HELP') {
      help = { name: comment[2] as string, text: comment[3] as string }
    } else if (comment !== null) {
      const [, , name, kind] = comment as unknown as [string, string, string, string]
      if (families.has(name)) throw new Error(`family ${name} comes twice`)
      if (!['counter', 'gauge', 'histogram'].includes(kind)) throw new Error(`kind ${kind}`)
      if (help?.name !== name) throw new Error(`no help for ${name}`)
      current = { name, family: { kind, help: help.text, samples: [] } }
      families.set(name, current.family)
    } else {
      const sample = parseSample(line)
      const suffix = current?.family.kind === 'histogram' ? '(?:_bucket|_sum|_count)' : ''
      if (current === undefined || !new RegExp(`^${current.name}${suffix}$`).test(sample.name)) throw new Error(`stray sample: ${line}`)
      const key = JSON.stringify([sample.name, Object.entries(sample.labels).sort()])
      if (seen.has(key)) throw new Error(`sample comes twice: ${line}`)
      seen.add(key)
      current.family.samples.push(sample)
    }
  }
  return families
}

function parseSample(line: string): Sample {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
  if (match === null) throw new Error(`not a sample: ${line}`)
  const labels: Record<string, string> = {}
  let rest = match[2] ?? ''
  while (rest !== '') {
    const label = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,(?=.)|$)/.exec(rest)
    if (label === null) throw new Error(`bad labels: ${line}`)
    if (Object.hasOwn(labels, label[1] as string)) throw new Error(`label comes twice: ${line}`)
    labels[label[1] as string] = (label[2] as string).replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char))
    rest = rest.slice(label[0].length)
  }
  const number = match[3] as string
  if (!/^[+-]?(?:Inf|\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.test(number)) throw new Error(`not a number: ${line}`)
  return { name: match[1] as string, labels, value: Number(number.replace('Inf', 'Infinity')) }
}
