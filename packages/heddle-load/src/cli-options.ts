import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { nearest } from './nearest.ts'
import type { LoadKind, LoadOptions, LoadProtocol } from './options.ts'
import { fileReason, loadScenario, parseHex, type Scenario } from './scenario.ts'
import { parseDuration, parseSize } from './units.ts'

/** The words of a command line that cannot be followed. */
export class CommandError extends Error {}

/** What the program was told to do. */
export type Command =
  | { readonly name: 'help' | 'version' }
  | {
      readonly name: 'run'
      readonly options: LoadOptions
      readonly json: string | undefined
      readonly quiet: boolean
      /** How an option of `options` is called on the command line, or where it stands in the scenario. */
      readonly nameOf: (option: string) => string
    }

const text = { type: 'string' } as const
const list = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const

const words = {
  connections: { type: 'string', short: 'c' },
  streams: { type: 'string', short: 'm' },
  'in-flight': text,
  rate: { type: 'string', short: 'r' },
  arrivals: text,
  seed: text,
  pacing: text,
  'max-backlog': text,
  duration: { type: 'string', short: 'd' },
  requests: { type: 'string', short: 'n' },
  warmup: { type: 'string', short: 'w' },
  grace: text,
  timeout: text,
  'connect-timeout': text,
  threads: { type: 'string', short: 't' },
  protocol: { type: 'string', short: 'p' },
  grpc: flag,
  method: { type: 'string', short: 'X' },
  header: { type: 'string', short: 'H', multiple: true },
  host: text,
  body: { type: 'string', short: 'b' },
  'body-hex': text,
  'body-size': text,
  accept: text,
  scenario: { type: 'string', short: 'f' },
  echo: text,
  deflate: flag,
  ca: text,
  cert: text,
  key: text,
  sni: text,
  insecure: { type: 'boolean', short: 'k' },
  unix: text,
  'fail-if': list,
  json: text,
  quiet: { type: 'boolean', short: 'q' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const
const known: readonly string[] = Object.keys(words)

/** The option of the library, and what it is called here where that is not the same in kebab case. */
const names: Readonly<Record<string, string>> = {
  url: 'URL',
  kind: '--grpc',
  count: '--requests',
  bodySize: '--body-size',
  body: '--body',
  headers: '--header',
  requests: '--scenario',
  socketPath: '--unix',
  tls: '--ca, --cert, --key',
  'tls.ca': '--ca',
  'tls.cert': '--cert',
  'tls.key': '--key',
  'tls.servername': '--sni',
}

function nameOf(option: string): string {
  return names[option] ?? `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** Reads the command line. Throws {@link CommandError}, or a ScenarioError. */
export function readCommand(argv: readonly string[]): Command {
  const { values, positionals } = split(argv)
  if (values.help === true) return { name: 'help' }
  if (values.version === true) return { name: 'version' }
  const [url, extra] = positionals
  if (extra !== undefined) throw new CommandError(`there is one word too many: ${extra}`)
  if (url === undefined && values.scenario === undefined) {
    throw new CommandError('URL: expected a URL such as http://localhost:8080/, or a --scenario, found nothing')
  }
  const scenario = values.scenario === undefined ? undefined : loadScenario(values.scenario)
  const kind: LoadKind | undefined = values.grpc === true ? 'grpc' : undefined
  const options = defined({
    url: url ?? scenario?.url,
    kind,
    protocol: values.protocol as LoadProtocol | undefined,
    connections: count('connections', values.connections),
    streams: count('streams', values.streams),
    inFlight: count('in-flight', values['in-flight']),
    rate: rate(values.rate),
    arrivals: values.arrivals as LoadOptions['arrivals'],
    seed: count('seed', values.seed),
    pacing: values.pacing as LoadOptions['pacing'],
    maxBacklog: count('max-backlog', values['max-backlog']),
    duration: duration('duration', values.duration),
    count: count('requests', values.requests),
    warmup: duration('warmup', values.warmup),
    grace: duration('grace', values.grace),
    timeout: duration('timeout', values.timeout),
    connectTimeout: duration('connect-timeout', values['connect-timeout']),
    threads: count('threads', values.threads),
    method: values.method,
    headers: headers(values.header, values.host, scenario),
    requests: scenario?.requests,
    ...body(values),
    accept: values.accept,
    echo: values.echo as LoadOptions['echo'],
    deflate: values.deflate,
    tls: tls(values),
    socketPath: values.unix,
    failIf: values['fail-if'],
  }) as LoadOptions
  const where = (option: string): string => {
    if (scenario === undefined) return nameOf(option)
    if (option.startsWith('requests[')) return scenario.placeOf(option)
    return option === 'url' && url === undefined ? scenario.placeOf('url') : nameOf(option)
  }
  return { name: 'run', options, json: values.json, quiet: values.quiet === true, nameOf: where }
}

type Values = ReturnType<typeof split>['values']

function split(argv: readonly string[]) {
  const asked = askedFor(argv)
  try {
    const parsed = parseArgs({ args: [...argv], allowPositionals: true, tokens: true, options: words })
    const given = new Set<string>()
    for (const token of parsed.tokens) {
      if (token.kind !== 'option') continue
      if (given.has(token.name) && token.name !== 'header' && token.name !== 'fail-if') {
        throw new CommandError(`${token.rawName} is given twice`)
      }
      given.add(token.name)
    }
    return parsed
  } catch (error) {
    if (error instanceof CommandError) throw error
    // Node's message goes on with advice about positional arguments that does not apply here.
    const message = ((error as Error).message.split('. ')[0] as string).replace(/^[UO]/, (letter) => letter.toLowerCase())
    throw new CommandError(`${message}${asked}`)
  }
}

/** What was probably meant by the first option that does not exist. */
function askedFor(argv: readonly string[]): string {
  for (const word of argv) {
    const name = /^--([a-z-]+)/.exec(word)?.[1]
    if (name === undefined || known.includes(name)) continue
    const guess = nearest(name, known)
    return guess === undefined ? '' : `; did you mean --${guess}?`
  }
  return ''
}

function wrong(option: string, expected: string, found: string): CommandError {
  return new CommandError(`--${option}: expected ${expected}, found ${JSON.stringify(found)}`)
}

function count(option: string, word: string | undefined): number | undefined {
  if (word === undefined) return undefined
  if (!/^\d{1,15}$/.test(word)) throw wrong(option, 'a whole number', word)
  return Number(word)
}

function rate(word: string | undefined): number | undefined {
  if (word === undefined) return undefined
  const match = /^(\d{1,12}(?:\.\d+)?)(k?)(?:\/(s|m))?$/.exec(word)
  if (match === null) throw wrong('rate', 'requests per second such as 500, 2.5, 10k or 90/m', word)
  return (Number(match[1]) * (match[2] === 'k' ? 1_000 : 1)) / (match[3] === 'm' ? 60 : 1)
}

function duration(option: string, word: string | undefined): number | undefined {
  if (word === undefined) return undefined
  const ms = parseDuration(word)
  if (ms === undefined) throw wrong(option, 'a duration such as 500ms, 10s or 2m', word)
  return ms
}

function headers(lines: readonly string[] | undefined, host: string | undefined, scenario: Scenario | undefined): LoadOptions['headers'] {
  const pairs: [string, string][] = []
  if (scenario?.headers !== undefined) {
    for (const [name, value] of Object.entries(scenario.headers as Record<string, string | string[]>)) {
      for (const one of [value].flat()) pairs.push([name, one])
    }
  }
  for (const line of lines ?? []) {
    const colon = line.indexOf(':')
    if (colon < 1) throw wrong('header', "'name: value'", line)
    pairs.push([line.slice(0, colon).trim(), line.slice(colon + 1).trim()])
  }
  if (host !== undefined) pairs.push(['host', host])
  return pairs.length === 0 ? undefined : pairs
}

function body(values: Values): Pick<LoadOptions, 'body' | 'bodySize'> {
  const given = (['body', 'body-hex', 'body-size'] as const).filter((name) => values[name] !== undefined)
  if (given.length > 1) throw new CommandError(`--${given[0]} and --${given[1]} exclude each other`)
  if (values['body-size'] !== undefined) {
    const size = parseSize(values['body-size'])
    if (size === undefined) throw wrong('body-size', 'a size such as 512B, 64KiB or 10MB', values['body-size'])
    return { bodySize: size }
  }
  if (values['body-hex'] !== undefined) {
    const bytes = parseHex(values['body-hex'])
    if (bytes === undefined) throw wrong('body-hex', 'pairs of hexadecimal digits', values['body-hex'])
    return { body: bytes }
  }
  if (values.body === undefined) return {}
  return { body: values.body.startsWith('@') ? file('body', values.body.slice(1)) : values.body }
}

function tls({ ca, cert, key, sni, insecure }: Values): LoadOptions['tls'] {
  const read = (option: string, path: string | undefined): string | undefined =>
    path === undefined ? undefined : file(option, path).toString('latin1')
  const options = defined({
    ca: read('ca', ca),
    cert: read('cert', cert),
    key: read('key', key),
    servername: sni,
    rejectUnauthorized: insecure === true ? false : undefined,
  })
  return Object.keys(options).length === 0 ? undefined : options
}

function file(option: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new CommandError(`--${option}: ${path} ${fileReason(error)}`)
  }
}

function defined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}
