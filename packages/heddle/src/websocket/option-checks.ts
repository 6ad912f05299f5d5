import { checkOptionNames, isToken, UsageError } from '../http/index.ts'

/** What a value of an option has to be, and whether one is. */
export interface Check {
  /** What was expected, to be read behind "must be". */
  readonly expected: string
  accepts(value: unknown): boolean
}

/** One for each option of `T`: the compiler sees to it that none is missing. */
export type OptionChecks<T> = Readonly<Record<keyof T, Check>>

/**
 * Throws UsageError for an option that there is none of, and for a value that it cannot have: `face` says who is
 * asked (`upgrade`), `path` where the options are ('' or `deflate`). One that is undefined is not given.
 */
export function checkOptions(face: string, path: string, options: unknown, checks: Readonly<Record<string, Check>>): void {
  checkOptionNames(face, path, options, checks)
  for (const name of Object.keys(options as object)) {
    const value = (options as Record<string, unknown>)[name]
    const check = checks[name] as Check
    if (value === undefined || check.accepts(value)) continue
    throw wrongOption(face, path === '' ? name : `${path}.${name}`, check.expected, value)
  }
}

/** The error for an option that is not what it must be. */
export function wrongOption(face: string, name: string, expected: string, found: unknown): UsageError {
  return new UsageError(`${face}: ${name} must be ${expected}, not ${shown(found)}`)
}

/** A value as messages show it, in few words. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? `${JSON.stringify(value.slice(0, 60))}…` : JSON.stringify(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'object' || value === null) return String(value)
  if (Array.isArray(value)) return `a list of ${value.length}`
  const prototype = Object.getPrototypeOf(value) as { readonly constructor?: unknown } | null
  const make = prototype?.constructor
  return typeof make === 'function' && make.name !== '' && make !== Object
    ? `${/^[AEIOU]/.test(make.name) ? 'an' : 'a'} ${make.name}`
    : 'an object'
}

// ── What options can be ───────────────────────────────────────────────────────────────────────────

export function check(expected: string, accepts: (value: unknown) => boolean): Check {
  return { expected, accepts }
}

/** An option that has no wrong value, or is checked by whoever takes it. */
export const anything: Check = check('anything', () => true)
export const aBoolean: Check = check('true or false', (value) => typeof value === 'boolean')
export const aString: Check = check('a string', (value) => typeof value === 'string')
export const aFunction: Check = check('a function', (value) => typeof value === 'function')
export const anObject: Check = check('an object', isObject)
/** Of options that have objects with options of their own. */
export const aSwitch: Check = check('true, false or an object', (value) => typeof value === 'boolean' || isObject(value))
export const aDuration: Check = check('a number of ms above 0, or Infinity', (value) => typeof value === 'number' && value > 0)
export const aWait: Check = check('a number of ms, 0 or more', (value) => typeof value === 'number' && value >= 0)
export const aSize: Check = check('a number, 0 or more', (value) => typeof value === 'number' && value >= 0)
export const aFragmentSize: Check = check('an integer, 1 or more, or Infinity', (value) => isInteger(value, 1, Infinity))
export const windowBits: Check = anInteger(9, 15)
export const aClock: Check = check('a clock, with now, set, clear and soon', (value) =>
  ['now', 'set', 'clear', 'soon'].every((name) => isObject(value) && typeof (value as Record<string, unknown>)[name] === 'function'),
)
export const headers: Check = check('an object, a list of pairs, or Headers', isObject)
/** '' is none. */
export const subprotocols: Check = check(
  'a subprotocol (a token), a list of them, or a function that chooses one',
  (value) => typeof value === 'function' || value === '' || isSubprotocol(value) || (Array.isArray(value) && value.every(isSubprotocol)),
)
export const origins: Check = check(
  "an origin such as 'https://app.example.org', '*', 'null', a list of them, or a function",
  (value) =>
    typeof value === 'function' || typeof value === 'string' || (Array.isArray(value) && value.every((one) => typeof one === 'string')),
)

/** An integer from `least` to `most`; if that is Infinity, Infinity will do, too. */
export function anInteger(least: number, most: number): Check {
  const range = most === Infinity ? `${least} or more` : `${least} to ${most}`
  return check(`an integer, ${range}`, (value) => isInteger(value, least, most))
}

/** What `inner` takes, and null for what is not given. */
export function orNull(inner: Check): Check {
  return check(inner.expected, (value) => value === null || inner.accepts(value))
}

export function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

function isInteger(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most && (Number.isInteger(value) || value === Infinity)
}

function isSubprotocol(value: unknown): boolean {
  return typeof value === 'string' && isToken(value)
}
