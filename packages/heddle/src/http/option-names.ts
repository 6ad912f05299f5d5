import { UsageError } from './errors.ts'

/** The names of all members of `T`: the compiler sees to it that none is missing. */
export type OptionNames<T> = Readonly<Record<keyof T, true>>

/**
 * Throws UsageError if `options` is no object, or has a member that is not in `known`: a misspelt
 * option would pass for the default, and a misspelt limit for one that is kept. `face` says who is
 * asked (`serve`, `Client`), `path` where the options are: '' or `limits`.
 */
export function checkOptionNames(face: string, path: string, options: unknown, known: Readonly<Record<string, unknown>>): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new UsageError(`${face}: ${path === '' ? 'the options' : path} must be an object`)
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(known, name)) continue
    const prefix = path === '' ? '' : `${path}.`
    const near = nearest(name, Object.keys(known))
    const advice = near === undefined ? '' : `; did you mean ${prefix}${near}?`
    throw new UsageError(`${face}: there is no option ${prefix}${name}${advice}`)
  }
}

/** The limits that are given, checked: their names are those of `known`, and each is a number, 0 or more. One that is undefined is not given. */
export function checkLimits<T extends object>(face: string, path: string, limits: Partial<T>, known: T): Partial<T> {
  checkOptionNames(face, path, limits, known as Readonly<Record<string, unknown>>)
  const given = Object.entries(limits).filter(([, value]) => value !== undefined)
  for (const [name, value] of given) {
    if (!(typeof value === 'number' && value >= 0)) throw new UsageError(`${face}: ${path}.${name} must be a number, 0 or more`)
  }
  return Object.fromEntries(given) as Partial<T>
}

/** The name that was probably meant: one that is few changes away, or of which one is the beginning of the other. */
function nearest(name: string, known: readonly string[]): string | undefined {
  const lower = name.toLowerCase()
  let best: string | undefined
  let least = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const other = candidate.toLowerCase()
    const begins = Math.min(lower.length, other.length) >= 3 && (other.startsWith(lower) || lower.startsWith(other))
    // A single slip is likelier than half a name, and that likelier than two slips.
    const distance = Math.min(changes(lower, other), begins ? 1.5 : Infinity)
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** How many letters have to be put in, left out, replaced or swapped with their neighbour to make `b` of `a`. */
function changes(a: string, b: string): number {
  let before: number[] = []
  let last: number[] = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      let least = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, (last[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, (before[j - 2] as number) + 1)
      row.push(least)
    }
    before = last
    last = row
  }
  return last[b.length] as number
}
