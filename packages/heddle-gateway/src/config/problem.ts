/** One thing wrong in a configuration file, or doubtful, with the place to look at. */
export interface ConfigProblem {
  /** A configuration with an `error` cannot be used; a `warning` is about one that can. */
  readonly severity: 'error' | 'warning'
  readonly file: string
  /** From 1; 0 when the file as a whole is meant. */
  readonly line: number
  /** From 1; 0 when the file as a whole is meant. */
  readonly column: number
  /** The place in words, `routes[2].match.pathPrefix`; empty for the file as a whole. */
  readonly path: string
  /** What was found and what was expected. */
  readonly message: string
}

/** A configuration that cannot be used. `problems` has all that is wrong, in the file's order; `message` has one line for each. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(formatProblem).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/**
 * `gateway.yaml:12:7: routes[2].match.pathPrefix: found "api", expected …`, the form editors and
 * terminals can jump to; for a warning, `warning:` comes after the place.
 */
export function formatProblem(problem: ConfigProblem): string {
  const { severity, file, line, column, path, message } = problem
  const place = line === 0 ? file : `${file}:${line}:${column}`
  return [place, severity === 'warning' ? 'warning' : '', path, message].filter((part) => part !== '').join(': ')
}

/** A key or index on the way to a value. */
export type PathStep = string | number

/** `['routes', 2, 'match']` → `routes[2].match`. */
export function pathInWords(path: readonly PathStep[]): string {
  let words = ''
  for (const step of path) {
    if (typeof step === 'number') words += `[${step}]`
    else words += words === '' ? step : `.${step}`
  }
  return words
}

/** A value as an error shows it: short, on one line. */
export function inWords(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'object') return 'a mapping'
  if (typeof value !== 'string') return String(value)
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}…` : value)
}

/** The known word nearest to `word`, if it is near enough to be a slip of the finger. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. */
function editDistance(a: string, b: string): number {
  const width = b.length + 1
  const table = new Uint16Array((a.length + 1) * width)
  const at = (i: number, j: number): number => table[i * width + j] as number
  for (let i = 0; i <= a.length; i++) {
    for (let j = 0; j <= b.length; j++) {
      let cost: number
      if (i === 0 || j === 0) cost = i + j
      else {
        const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
        cost = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced)
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, at(i - 2, j - 2) + 1)
      }
      table[i * width + j] = cost
    }
  }
  return at(a.length, b.length)
}
