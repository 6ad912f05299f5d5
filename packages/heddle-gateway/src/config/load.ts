import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isAlias, isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml'
import type { z } from 'zod'
import { crossProblems } from './checks.ts'
import { fileReason } from './files.ts'
import { ConfigError, inWords, nearest, pathInWords, type ConfigProblem, type PathStep } from './problem.ts'
import { configSchema } from './schema.ts'
import type { Config } from './types.ts'

export interface ParseOptions {
  /** How errors name the text. Default `config`. */
  readonly file?: string
  /** Where relative file names in it start. Default: the working directory. */
  readonly folder?: string
}

/** Reads and checks the configuration at `path`. Throws {@link ConfigError} with all that is wrong. */
export function loadConfig(path: string): Config {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigError([{ file: path, line: 0, column: 0, path: '', message: fileReason(error) }])
  }
  return parseConfig(text, { file: path, folder: dirname(resolve(path)) })
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
  const { file = 'config', folder = process.cwd() } = options
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const place = (offset: number): { line: number; column: number } => {
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
  if (document.errors.length > 0) {
    throw new ConfigError(
      document.errors.map((error) => ({ file, ...place(error.pos[0]), path: '', message: `not valid YAML: ${error.message}` })),
    )
  }
  let raw: unknown
  try {
    raw = document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    throw new ConfigError([{ file, line: 0, column: 0, path: '', message: `not valid YAML: ${(error as Error).message}` }])
  }
  if (raw === null || raw === undefined) {
    throw new ConfigError([{ file, line: 0, column: 0, path: '', message: 'is empty; expected listeners, routes and clusters' }])
  }
  const result = configSchema(folder).safeParse(raw)
  const found = [...(result.success ? [] : schemaProblems(result.error.issues, raw, [])), ...crossProblems(raw)]
  if (result.success && found.length === 0) return result.data
  const problems = found.map(({ path, message, atKey }: FoundProblem): ConfigProblem & { offset: number } => {
    const offset = offsetOf(document, path, atKey === true)
    return { file, ...place(offset), path: pathInWords(path), message, offset }
  })
  problems.sort((a, b) => a.offset - b.offset)
  throw new ConfigError(problems.map(({ file, line, column, path, message }) => ({ file, line, column, path, message })))
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

/** The offset of the value at `path`, or of its key; of the nearest mapping or list around it if it is missing. */
function offsetOf(document: Document, path: readonly PathStep[], atKey: boolean): number {
  let node: unknown = document.contents
  let offset = isNode(node) ? (node.range?.[0] ?? 0) : 0
  for (let depth = 0; depth < path.length; depth++) {
    const step = path[depth] as PathStep
    if (isAlias(node)) node = node.resolve(document)
    if (isSeq(node)) node = node.items[step as number]
    else if (isMap(node)) {
      const pair = node.items.find((item) => isPair(item) && isScalar(item.key) && item.key.value === step)
      if (pair === undefined) return offset
      const useKey = (atKey && depth === path.length - 1) || !isNode(pair.value)
      node = useKey ? pair.key : pair.value
    } else return offset
    if (!isNode(node)) return offset
    offset = node.range?.[0] ?? offset
  }
  return offset
}
