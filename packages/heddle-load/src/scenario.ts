import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { inWords } from './check-options.ts'
import { nearest } from './nearest.ts'
import type { LoadHeaders, RequestOptions } from './options.ts'
import { SourceText, type PathStep } from './source-text.ts'
import { parseSize } from './units.ts'

/** A file of requests, read. `requests` and `headers` are what {@link LoadOptions} have by these names. */
export interface Scenario {
  /** What the URLs of the requests are relative to. */
  readonly url: string | undefined
  readonly headers: LoadHeaders | undefined
  readonly requests: readonly RequestOptions[]
  /** `load.yaml:3:7: requests[0].url`: where in the file something stands. */
  placeOf(path: string): string
}

/** A scenario that cannot be used: one line for each thing that is wrong, `load.yaml:3:7: requests[0].weight: found …, expected …`. */
export class ScenarioError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ScenarioError'
  }
}

/*
 * Every error text of the schema says what was expected; what was found, and where, is put in front of it.
 * For unknown keys it is the list of the known ones. What a URL, a method or a header may be is checked when the
 * load is planned.
 */

function mapping<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  const keys = Object.keys(shape).join(' ')
  return z.strictObject(shape, { error: (issue) => (issue.code === 'unrecognized_keys' ? keys : 'a mapping') })
}

const text = z.string({ error: 'a text' })
const headerText = z.union([text, z.number().transform(String), z.boolean().transform(String)], { error: 'a text, or a list of texts' })
const headers = z.record(z.string(), z.union([headerText, z.array(headerText)], { error: 'a text, or a list of texts' }), {
  error: 'a mapping of names and values',
})
const size = z.string({ error: 'a size such as 512B, 64KiB or 10MB' }).transform((value, context) => {
  const bytes = parseSize(value)
  if (bytes !== undefined) return bytes
  context.addIssue({ code: 'custom', message: 'a size such as 512B, 64KiB or 10MB', input: value })
  return z.NEVER
})
const status = z.union([z.number(), z.string()], { error: 'a status such as 200 or 2xx' })

const request = mapping({
  name: text.optional(),
  url: text.optional(),
  method: text.optional(),
  headers: headers.optional(),
  body: text.optional(),
  bodyFile: text.optional(),
  bodyHex: z.string({ error: 'hexadecimal digits' }).optional(),
  bodySize: size.optional(),
  weight: z.number({ error: 'a number above 0' }).optional(),
  accept: z.union([status, z.array(status)], { error: 'a status such as 200 or 2xx, or a list of them' }).optional(),
})
const scenario = mapping({
  url: text.optional(),
  headers: headers.optional(),
  requests: z.array(request, { error: 'a list of requests' }).min(1, { error: 'a list with at least one request' }),
})

/**
 * Reads requests from a file in YAML or JSON. Throws {@link ScenarioError} with all that is wrong.
 *
 * ```yaml
 * url: http://localhost:8080
 * requests:
 *   - { url: /items, weight: 9 }
 *   - { url: /items, method: POST, body: '{"name":"x"}', headers: { content-type: application/json }, accept: 201 }
 * ```
 */
export function loadScenario(path: string): Scenario {
  let file: string
  try {
    file = readFileSync(path, 'utf8')
  } catch (error) {
    throw new ScenarioError(`${path}: ${fileReason(error)}`)
  }
  const source = new SourceText(path, file)
  if (source.errors.length > 0) throw new ScenarioError(source.errors.join('\n'))
  const read = scenario.safeParse(source.value)
  if (!read.success) throw new ScenarioError(problems(read.error.issues, source).join('\n'))
  const folder = dirname(resolve(path))
  return {
    url: read.data.url,
    headers: read.data.headers,
    requests: read.data.requests.map(({ bodyFile, bodyHex, ...rest }, i) => {
      const at = (key: string): string => source.place(['requests', i, key], false)
      const given = [rest.body, rest.bodySize, bodyFile, bodyHex].filter((one) => one !== undefined)
      if (given.length > 1)
        throw new ScenarioError(`${source.place(['requests', i], false)}: has more than one of body, bodyFile, bodyHex and bodySize`)
      if (bodyFile !== undefined) return { ...rest, body: readBodyFile(resolve(folder, bodyFile), at('bodyFile')) }
      if (bodyHex !== undefined) return { ...rest, body: readHex(bodyHex, at('bodyHex')) }
      return rest
    }),
    placeOf: (where) => source.place(stepsOf(where), false),
  }
}

function readBodyFile(path: string, place: string): Uint8Array {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new ScenarioError(`${place}: ${path} ${fileReason(error)}`)
  }
}

function readHex(digits: string, place: string): Uint8Array {
  const bytes = parseHex(digits)
  if (bytes === undefined) throw new ScenarioError(`${place}: found ${inWords(digits)}, expected pairs of hexadecimal digits`)
  return bytes
}

/** Pairs of hexadecimal digits, blanks between them or not. */
export function parseHex(digits: string): Uint8Array | undefined {
  const packed = digits.replace(/\s+/g, '')
  return /^(?:[0-9a-f]{2})*$/i.test(packed) ? Buffer.from(packed, 'hex') : undefined
}

/** The operating system's error in words. */
export function fileReason(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'does not exist',
    EACCES: 'may not be read by this user',
    EISDIR: 'is a folder',
    ENOTDIR: 'lies below something that is not a folder',
  }
  return reasons[code] ?? `cannot be used (${code})`
}

/** `requests[2].url` → `['requests', 2, 'url']`. */
function stepsOf(words: string): PathStep[] {
  return words.split(/[.[\]]+/).flatMap((step): PathStep[] => (step === '' ? [] : [/^\d+$/.test(step) ? Number(step) : step]))
}

function problems(issues: readonly z.core.$ZodIssue[], source: SourceText): string[] {
  return issues.flatMap((issue) => {
    const path = issue.path as PathStep[]
    if (issue.code === 'unrecognized_keys') {
      const known = issue.message.split(' ')
      return issue.keys.map((key) => {
        const guess = nearest(key, known)
        const advice = guess === undefined ? `known here: ${known.join(', ')}` : `did you mean ${inWords(guess)}?`
        return `${source.place([...path, key], true)}: unknown key; ${advice}`
      })
    }
    const value = valueAt(source.value, path)
    return [`${source.place(path, false)}: found ${inWords(value)}, expected ${issue.message}`]
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
