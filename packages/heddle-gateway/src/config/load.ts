import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { z } from 'zod'
import { crossProblems } from './checks.ts'
import { fileReason } from './files.ts'
import { ConfigError, inWords, nearest, pathInWords, type ConfigProblem, type PathStep } from './problem.ts'
import { configSchema } from './schema.ts'
import type { Config } from './types.ts'
import { warningsOf } from './warnings.ts'
import { YamlText } from './yaml.ts'

/** How {@link loadConfig} tells what is doubtful. */
export interface LoadOptions {
  /**
   * Told of what is doubtful in a configuration that can be used: a route that is never reached, a
   * cluster no route leads to, a certificate that has expired. In the file's order, before the call
   * returns; not called for one with errors. Default: nobody is told.
   */
  readonly onWarning?: (problem: ConfigProblem) => void
}

/** What {@link parseConfig} cannot know from the text. */
export interface ParseOptions extends LoadOptions {
  /** How errors and warnings name the text. Default `config`. */
  readonly file?: string
  /** Where relative file names in it start. Default: the working directory. */
  readonly folder?: string
}

/** Reads and checks the configuration at `path`. Throws {@link ConfigError} with all that is wrong. */
export function loadConfig(path: string, options: LoadOptions = {}): Config {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigError([{ severity: 'error', file: path, line: 0, column: 0, path: '', message: fileReason(error) }])
  }
  return parseConfig(text, { ...options, file: path, folder: dirname(resolve(path)) })
}

/**
 * Checks a configuration in YAML and fills the defaults in. Throws {@link ConfigError} with all that
 * is wrong, each with line and column.
 *
 * ```ts
 * const config = parseConfig(`
 * listeners: [{ name: web, port: 8080 }]
 * routes: [{ name: all, cluster: app }]
 * clusters: [{ name: app, endpoints: [127.0.0.1:3000] }]
 * `)
 * ```
 */
export function parseConfig(text: string, options: ParseOptions = {}): Config {
  const { file = 'config', folder = process.cwd(), onWarning } = options
  const yaml = new YamlText(text)
  const place = (severity: ConfigProblem['severity'], found: readonly PlacedProblem[]): ConfigProblem[] =>
    found
      .toSorted((a, b) => a.offset - b.offset)
      .map(({ offset, path = [], message }) => ({ severity, file, ...yaml.place(offset), path: pathInWords(path), message }))
  const locate = (problem: FoundProblem): PlacedProblem => ({ ...problem, offset: yaml.offsetOf(problem.path, problem.atKey === true) })
  if (yaml.errors.length > 0) throw new ConfigError(place('error', yaml.errors))
  const written = yaml.value
  if (written === null || written === undefined) {
    throw new ConfigError(place('error', [{ offset: -1, message: 'is empty; expected listeners, routes and clusters' }]))
  }
  const raw = withoutExtensions(written)
  const result = configSchema(folder).safeParse(raw)
  const found = [...(result.success ? [] : schemaProblems(result.error.issues, raw, [])), ...crossProblems(raw)]
  if (!result.success || found.length > 0) {
    const advised = found.map((problem) => (isForAnchors(problem, yaml) ? { ...problem, message: anchorAdvice(problem) } : problem))
    throw new ConfigError(place('error', advised.map(locate)))
  }
  if (onWarning !== undefined) {
    for (const warning of place('warning', [...yaml.warnings, ...warningsOf(result.data, Date.now()).map(locate)])) onWarning(warning)
  }
  return result.data
}

/** A problem and where in the text it is; without a path, the text itself is meant. */
interface PlacedProblem {
  readonly offset: number
  readonly path?: readonly PathStep[]
  readonly message: string
}

/** Without the keys at the top that begin with `x-`: they are there for their anchors, or for other programs. */
function withoutExtensions(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return raw
  return Object.fromEntries(Object.entries(raw).filter(([key]) => !key.startsWith('x-')))
}

/** An unknown key at the top that has an anchor. */
function isForAnchors({ path, atKey }: FoundProblem, yaml: YamlText): boolean {
  const [key, ...deeper] = path
  return atKey === true && key !== undefined && deeper.length === 0 && yaml.isAnchored(key)
}

function anchorAdvice({ path }: FoundProblem): string {
  return `unknown key; one that is there for its anchor has a name that begins with "x-", such as "x-${path[0]}"`
}

interface FoundProblem {
  readonly path: readonly PathStep[]
  readonly message: string
  /** The key is wrong, not its value. */
  readonly atKey?: boolean
}

function schemaProblems(issues: readonly z.core.$ZodIssue[], raw: unknown, base: readonly PathStep[]): FoundProblem[] {
  return issues.flatMap((issue): FoundProblem[] => {
    const path = [...base, ...(issue.path as PathStep[])]
    if (issue.code === 'unrecognized_keys') {
      const known = issue.message.split(' ')
      return issue.keys.map((key) => {
        const guess = nearest(key, known)
        const advice = guess === undefined ? `known here: ${known.join(', ')}` : `did you mean ${inWords(guess)}?`
        return { path: [...path, key], message: `unknown key; ${advice}`, atKey: true }
      })
    }
    const value = valueAt(raw, path)
    if (issue.code === 'invalid_union') {
      // Text or a mapping: the branch of the type that was written knows best what is wrong.
      const branch = issue.errors[typeof value === 'string' || typeof value === 'boolean' || value === null ? 0 : issue.errors.length - 1]
      if (branch !== undefined) return schemaProblems(branch, raw, path)
    }
    return [
      { path, message: value === undefined ? `missing; expected ${issue.message}` : `found ${inWords(value)}, expected ${issue.message}` },
    ]
  })
}

function valueAt(raw: unknown, path: readonly PathStep[]): unknown {
  let value = raw
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<PathStep, unknown>)[step]
  }
  return value
}
