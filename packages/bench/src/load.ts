import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installed, runNode, runProgram } from './processes.ts'
import { median } from './report.ts'

/** The nine fields a browser sends with a navigation. */
export const browserFields: readonly (readonly [string, string])[] = [
  ['User-Agent', 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'],
  ['Accept', 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'],
  ['Accept-Language', 'en-US,en;q=0.9,de;q=0.8'],
  ['Accept-Encoding', 'gzip, deflate, br, zstd'],
  ['Referer', 'http://localhost/index.html'],
  ['Cookie', 'session=0123456789abcdef0123456789abcdef; theme=dark'],
  ['Sec-Fetch-Dest', 'document'],
  ['Sec-Fetch-Mode', 'navigate'],
  ['Cache-Control', 'max-age=0'],
]

export interface Http1Load {
  readonly port: number
  readonly path: string
  readonly connections: number
  readonly seconds: number
  readonly fields?: readonly (readonly [string, string])[]
  /** Requests sent in one write per connection; 1: not pipelined. */
  readonly pipeline?: number
}

/** Drives HTTP/1.1 load from core 1: with wrk where it is installed, else with our own generator. */
export async function http1Load(load: Http1Load): Promise<{ requests: number; seconds: number }> {
  return installed('wrk') ? await wrk(load) : await runNode(1, './generator.ts', [JSON.stringify(load)])
}

async function wrk({
  port,
  path,
  connections,
  seconds,
  fields = [],
  pipeline = 1,
}: Http1Load): Promise<{ requests: number; seconds: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-wrk-'))
  try {
    const script = join(folder, 'script.lua')
    const headers = fields.map(([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`)
    const pipelined = `init = function(args)\n  local r = {}\n  for i = 1, ${pipeline} do r[i] = wrk.format(nil, ${JSON.stringify(path)}) end\n  req = table.concat(r)\nend\nrequest = function() return req end`
    writeFileSync(script, [...headers, ...(pipeline > 1 ? [pipelined] : [])].join('\n'))
    const printed = await runProgram(1, 'wrk', [
      '-t1',
      `-c${connections}`,
      `-d${seconds}s`,
      '-s',
      script,
      `http://127.0.0.1:${port}${path}`,
    ])
    const match = /(\d+) requests in ([\d.]+)(ms|s|m)/.exec(printed)
    if (match === null) throw new Error(`wrk printed no count:\n${printed}`)
    if (/Non-2xx/.test(printed)) throw new Error(`not every answer was a success:\n${printed}`)
    return { requests: Number(match[1]), seconds: secondsOf(match.slice(1)) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export interface Http2Load {
  readonly port: number
  readonly tls?: boolean
  readonly connections: number
  /** Streams open at once on each connection. */
  readonly streams: number
  readonly seconds: number
  readonly fields?: readonly (readonly [string, string])[]
  /** Paths asked for in turn. Default: `/`. */
  readonly paths?: readonly string[]
  /** Content of each request, for POST. */
  readonly content?: string
  /** Initial window, log2, of streams and of the connection. Default 65,535 octets. */
  readonly windowBits?: number
  /** Requests per second and connection. Default: as many as can be answered. */
  readonly perSecond?: number
}

/** What a run of {@link http2Load} found. */
export interface Http2Run {
  readonly requests: number
  readonly seconds: number
  /** Median time from a request to the end of its answer; measured at a fixed rate only, else 0. */
  readonly p50Micros: number
}

/** True where the HTTP/2 load generator is installed. */
export function hasHttp2Load(): boolean {
  return installed('h2load')
}

/** Drives HTTP/2 load from core 1 with h2load. */
export async function http2Load(load: Http2Load): Promise<Http2Run> {
  const { port, tls = false, connections, streams, seconds, fields = [], paths = ['/'], content, windowBits, perSecond } = load
  const folder = mkdtempSync(join(tmpdir(), 'heddle-h2load-'))
  try {
    const base = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`
    const list = join(folder, 'urls')
    writeFileSync(list, paths.map((path) => `${base}${path}\n`).join(''))
    const body = join(folder, 'body')
    if (content !== undefined) writeFileSync(body, content)
    const log = join(folder, 'log')
    const printed = await runProgram(1, 'h2load', [
      `-c${connections}`,
      `-m${streams}`,
      '-t1',
      `-D${seconds}`,
      ...fields.map(([name, value]) => `-H${name.toLowerCase()}: ${value}`),
      ...(content === undefined ? [] : ['-d', body]),
      ...(windowBits === undefined ? [] : [`-w${windowBits}`, `-W${windowBits}`]),
      ...(perSecond === undefined ? [] : [`--rps=${perSecond}`, `--log-file=${log}`]),
      ...(paths.length > 1 ? ['-i', list] : [`${base}${paths[0]}`]),
    ])
    const done = /finished in ([\d.]+)(ms|s|m),/.exec(printed)
    const counts = /requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed/.exec(printed)
    if (done === null || counts === null) throw new Error(`h2load printed no count:\n${printed}`)
    const [, , , succeeded, failed] = counts.map(Number) as [number, number, number, number, number]
    if (succeeded === 0 || failed > succeeded / 10) throw new Error(`not every answer was a success:\n${printed}`)
    return { requests: succeeded, seconds: secondsOf(done), p50Micros: perSecond === undefined ? 0 : median(loggedMicros(log)) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export interface Http3Load {
  readonly port: number
  readonly connections: number
  /** Streams open at once on each connection. */
  readonly streams: number
  readonly seconds: number
}

/** Drives HTTP/3 load from core 1 with Heddle's own client. */
export async function http3Load(load: Http3Load): Promise<{ requests: number; seconds: number }> {
  return await runNode(1, './h3-generator.ts', [JSON.stringify(load)])
}

/** h2load writes a line per request: when it began, its status, and the µs it took. */
function loggedMicros(path: string): number[] {
  const lines = readFileSync(path, 'latin1').trimEnd().split('\n')
  return lines.map((line) => line.split('\t')).flatMap(([, status, micros]) => (status === '200' ? [Number(micros)] : []))
}

/** Of a match whose first group is a number and whose second is its unit. */
function secondsOf([, value, unit]: readonly string[]): number {
  return Number(value) * (unit === 's' ? 1 : unit === 'm' ? 60 : 0.001)
}
