import { Client } from 'heddle/client'
import { checkOptionNames, isToken, UsageError, type OptionNames } from 'heddle/http'
import {
  duration,
  flag,
  numberAbove,
  oneOf,
  readAccept,
  readBody,
  readHeaders,
  readMethod,
  wholeNumber,
  wrong,
  type NameOf,
} from './check-options.ts'
import { frameMessage } from './grpc.ts'
import type { LoadHeaders, LoadKind, LoadOptions, LoadProtocol, LoadTlsOptions, RequestOptions } from './options.ts'
import type { Plan, PlannedRequest } from './plan.ts'
import { version } from './version.ts'

const requestNames: OptionNames<RequestOptions> = {
  name: true,
  url: true,
  method: true,
  headers: true,
  body: true,
  bodySize: true,
  weight: true,
  accept: true,
}
const optionNames: OptionNames<LoadOptions> = {
  ...requestNames,
  requests: true,
  kind: true,
  protocol: true,
  connections: true,
  streams: true,
  inFlight: true,
  rate: true,
  arrivals: true,
  seed: true,
  pacing: true,
  maxBacklog: true,
  duration: true,
  count: true,
  warmup: true,
  grace: true,
  timeout: true,
  connectTimeout: true,
  tls: true,
  socketPath: true,
  threads: true,
  echo: true,
  deflate: true,
  failIf: true,
  signal: true,
  onProgress: true,
}
const tlsNames: OptionNames<LoadTlsOptions> = { ca: true, cert: true, key: true, servername: true, rejectUnauthorized: true }

const kinds = ['http', 'websocket', 'grpc'] as const
const mostConnections = 100_000

/** Checks the options and fills the defaults in. Throws UsageError; `nameOf` is how it calls them. */
export function makePlan(options: LoadOptions, nameOf: NameOf = (option) => `run: ${option}`): Plan {
  checkOptionNames('run', '', options, optionNames)
  if (options.tls !== undefined) checkOptionNames('run', 'tls', options.tls, tlsNames)
  const kind = oneOf(nameOf('kind'), options.kind, kinds, /^wss?:/i.test(String(options.url)) ? 'websocket' : 'http')
  const protocol = readProtocol(nameOf('protocol'), options.protocol, kind)
  const requests = readRequests(options, kind, nameOf)
  const unsafe = protocol === 'h3' ? requests.find(({ scheme }) => scheme !== 'https') : undefined
  if (unsafe !== undefined) {
    throw new UsageError(`${nameOf('protocol')}: HTTP/3 needs TLS, and ${unsafe.origin} has none; expected https: or wss:`)
  }
  if (protocol === 'h3' && options.socketPath !== undefined) {
    throw new UsageError(`${nameOf('socketPath')}: HTTP/3 is not to be had on a Unix socket`)
  }
  const fault = protocol === 'h3' ? http3Fault() : undefined
  if (fault !== undefined) throw new UsageError(`${nameOf('protocol')}: ${fault}`)
  const connections = wholeNumber(nameOf('connections'), options.connections, 10, 1, mostConnections)
  const streams = wholeNumber(nameOf('streams'), options.streams, 1, 1, mostConnections)
  const maySpeakHttp1 =
    protocol === 'h1' || (protocol === 'auto' && (kind === 'websocket' || requests.some(({ scheme }) => scheme === 'http')))
  if (streams > 1 && maySpeakHttp1 && kind !== 'grpc') {
    throw new UsageError(
      `${nameOf('streams')}: HTTP/1.1 has one request at a time on a connection; ask for h2 or h3 (${nameOf('protocol')}), or for more connections`,
    )
  }
  const inFlight = wholeNumber(nameOf('inFlight'), options.inFlight, 1, 1, 100_000)
  if (inFlight > 1 && kind !== 'websocket')
    throw new UsageError(`${nameOf('inFlight')}: is for WebSocket; over HTTP/2 and HTTP/3 it is ${nameOf('streams')}`)
  const threads = wholeNumber(nameOf('threads'), options.threads, 1, 1, 256)
  if (threads > connections) throw new UsageError(`${nameOf('threads')}: ${threads} are more than there are connections (${connections})`)
  const rate = numberAbove(nameOf('rate'), options.rate, 0, 0, 10_000_000)
  if (rate === 0)
    for (const option of ['arrivals', 'pacing', 'maxBacklog'] as const) {
      if (options[option] !== undefined) throw new UsageError(`${nameOf(option)}: is for a fixed rate (${nameOf('rate')})`)
    }
  const count = wholeNumber(nameOf('count'), options.count, Infinity, 1, 1e12)
  return {
    kind,
    protocol,
    requests,
    connections,
    streams,
    inFlight,
    rate,
    arrivals: oneOf(nameOf('arrivals'), options.arrivals, ['poisson', 'uniform'], 'poisson'),
    seed: wholeNumber(nameOf('seed'), options.seed, 1, 0, Number.MAX_SAFE_INTEGER),
    pacing: oneOf(nameOf('pacing'), options.pacing, ['spin', 'timer'], 'spin'),
    maxBacklog: wholeNumber(nameOf('maxBacklog'), options.maxBacklog, Math.max(1_000, Math.ceil(rate * 10)), 0, 1e8),
    duration: duration(nameOf('duration'), options.duration, count === Infinity ? 10_000 : Infinity, 1),
    count,
    warmup: duration(nameOf('warmup'), options.warmup, 0, 0),
    grace: duration(nameOf('grace'), options.grace, 5_000, 0),
    timeout: duration(nameOf('timeout'), options.timeout, 30_000, 1),
    connectTimeout: duration(nameOf('connectTimeout'), options.connectTimeout, 10_000, 1),
    tls: readTls(options.tls, nameOf),
    socketPath: options.socketPath,
    threads,
    thread: 0,
    echo: forWebSocket('echo', oneOf(nameOf('echo'), options.echo, ['same', 'any'], 'same'), options, kind, nameOf),
    deflate: forWebSocket('deflate', flag(nameOf('deflate'), options.deflate, false), options, kind, nameOf),
  }
}

/** Why this Node has no HTTP/3, if that is so. */
function http3Fault(): string | undefined {
  return new Client({ protocols: ['h3', 'h1'] }).stats().http3Unavailable
}

function forWebSocket<Value>(option: 'echo' | 'deflate', value: Value, options: LoadOptions, kind: LoadKind, nameOf: NameOf): Value {
  if (options[option] !== undefined && kind !== 'websocket') throw new UsageError(`${nameOf(option)}: is for WebSocket`)
  return value
}

function readProtocol(name: string, given: unknown, kind: LoadKind): LoadProtocol {
  const protocol = oneOf(name, given, ['auto', 'h1', 'h2', 'h3'], 'auto')
  if (kind !== 'grpc') return protocol
  if (protocol === 'h1') throw new UsageError(`${name}: gRPC goes over h2 or h3 only`)
  return protocol === 'auto' ? 'h2' : protocol
}

function readTls(tls: LoadTlsOptions | undefined, nameOf: NameOf): LoadTlsOptions | undefined {
  if (tls === undefined) return undefined
  for (const option of ['ca', 'cert', 'key', 'servername'] as const) {
    const value: unknown = tls[option]
    if (value !== undefined && (typeof value !== 'string' || value === '')) throw wrong(nameOf(`tls.${option}`), 'a text', value)
  }
  flag(nameOf('tls.rejectUnauthorized'), tls.rejectUnauthorized, true)
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    throw new UsageError(`${nameOf('tls.cert')} and ${nameOf('tls.key')} go together`)
  }
  try {
    // It reads the certificates.
    void new Client({ tls })
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    throw new UsageError(`${nameOf('tls')}: ${error.message.replace(/^Client: (?:tls cannot be used: )?/, '')}`)
  }
  return tls
}

function readRequests(options: LoadOptions, kind: LoadKind, nameOf: NameOf): PlannedRequest[] {
  const { requests, url } = options
  const base = url === undefined ? undefined : readUrl(nameOf('url'), String(url), undefined)
  if (requests === undefined) return [readRequest(options, {}, base, kind, nameOf)]
  if (!Array.isArray(requests) || requests.length === 0) throw wrong(nameOf('requests'), 'a list with at least one request', requests)
  if (kind === 'websocket') throw new UsageError(`${nameOf('requests')}: a WebSocket load has one URL and one message`)
  for (const option of ['name', 'method', 'body', 'bodySize', 'weight', 'accept'] as const) {
    if (options[option] !== undefined) throw new UsageError(`${nameOf(option)}: is said by each of ${nameOf('requests')}`)
  }
  return (requests as readonly RequestOptions[]).map((request, i) => {
    const name = `requests[${i}]`
    checkOptionNames('run', name, request, requestNames)
    return readRequest(request, { headers: options.headers }, base, kind, (option) => nameOf(`${name}.${option}`))
  })
}

const schemes: Readonly<Record<LoadKind, readonly string[]>> = {
  http: ['http:', 'https:'],
  grpc: ['http:', 'https:'],
  websocket: ['ws:', 'wss:'],
}

function readUrl(name: string, text: string, base: URL | undefined): URL {
  // `localhost:8080` can be parsed, too: as a URL with the scheme "localhost".
  if (base === undefined && !(text.includes('://') && URL.canParse(text)))
    throw wrong(name, 'an absolute URL such as http://localhost:8080/', text)
  if (!URL.canParse(text, base)) throw wrong(name, 'a URL', text)
  return new URL(text, base)
}

function readRequest(
  request: RequestOptions,
  common: { readonly headers?: LoadHeaders | undefined },
  base: URL | undefined,
  kind: LoadKind,
  nameOf: NameOf,
): PlannedRequest {
  const urlName = nameOf('url')
  if (request.url === undefined && base === undefined) throw wrong(urlName, 'a URL such as http://localhost:8080/', undefined)
  const url = request.url === undefined ? (base as URL) : readUrl(urlName, String(request.url), base)
  if (!schemes[kind].includes(url.protocol)) {
    throw wrong(urlName, `a URL that begins with ${schemes[kind].join(' or ')}`, `${url.protocol}//${url.host}`)
  }
  const shared = readHeaders(nameOf('headers'), common.headers)
  const own = readHeaders(nameOf('headers'), request.headers)
  if (kind === 'websocket') checkHandshake(nameOf('headers'), [...shared.fields, ...own.fields])
  const given = readBody(request, nameOf)
  const body =
    kind === 'grpc' ? frameMessage(given ?? new Uint8Array(0)) : kind === 'websocket' ? (given ?? Buffer.from('heddle-load')) : given
  const method = readMethod(nameOf('method'), request.method) ?? (body === undefined ? 'GET' : 'POST')
  if (kind !== 'http' && request.method !== undefined && request.method !== 'POST') {
    throw new UsageError(`${nameOf('method')}: is for HTTP; ${kind === 'grpc' ? 'gRPC has POST' : 'a WebSocket has none'}`)
  }
  const path = `${url.pathname}${url.search}`
  if (kind === 'grpc' && !/^\/[^/]+\/[^/]+$/.test(url.pathname)) throw wrong(urlName, 'the path of a method, /package.Service/Method', path)
  const scheme = url.protocol === 'https:' || url.protocol === 'wss:' ? 'https' : 'http'
  const authority = own.host ?? shared.host ?? url.host
  return {
    name: requestName(request, kind, method, path, nameOf),
    weight: numberAbove(nameOf('weight'), request.weight, 1, 0, 1e9),
    origin: `${scheme}://${url.host}`,
    method,
    scheme,
    authority,
    path,
    fields: fieldsOf([...shared.fields, ...own.fields], url, kind, method, body),
    body,
    text: kind === 'websocket' && (given === undefined || typeof request.body === 'string'),
    accept: readAccept(nameOf('accept'), request.accept, kind === 'grpc' ? '200' : '2xx,3xx'),
  }
}

/** The fields that the handshake of a WebSocket makes itself. */
function checkHandshake(name: string, fields: readonly string[]): void {
  for (let i = 0; i < fields.length; i += 2) {
    const field = fields[i] as string
    const isOwn = field.startsWith('sec-websocket-') && field !== 'sec-websocket-protocol'
    if (isOwn || field === 'expect' || field === 'trailer')
      throw new UsageError(`${name}: ${field} is not to be given: it is the handshake's`)
    if (field !== 'sec-websocket-protocol') continue
    const words = (fields[i + 1] as string).split(',').map((word) => word.trim())
    if (!words.every(isToken)) throw wrong(`${name}: ${field}`, 'subprotocols with commas between them', fields[i + 1])
  }
}

function requestName({ name }: RequestOptions, kind: LoadKind, method: string, path: string, nameOf: NameOf): string {
  if (name === undefined) return kind === 'http' ? `${method} ${path}` : path
  if (typeof name !== 'string' || name === '' || name.length > 200) throw wrong(nameOf('name'), 'a name of 1 to 200 letters', name)
  return name
}

function fieldsOf(given: readonly string[], url: URL, kind: LoadKind, method: string, body: Uint8Array | undefined): string[] {
  const fields = [...given]
  const add = (name: string, value: string): void => {
    if (!given.some((text, i) => i % 2 === 0 && text === name)) fields.push(name, value)
  }
  add('user-agent', `heddle-load/${version}`)
  if (url.username !== '' || url.password !== '') {
    const words = [url.username, url.password].map(decoded).join(':')
    add('authorization', `Basic ${Buffer.from(words).toString('base64')}`)
  }
  if (kind === 'grpc') {
    add('content-type', 'application/grpc')
    fields.push('te', 'trailers')
  }
  // RFC 9110 §8.6: a method that is about content says when there is none.
  const length = body?.length ?? (['POST', 'PUT', 'PATCH'].includes(method) ? 0 : undefined)
  if (kind === 'http' && length !== undefined) fields.push('content-length', String(length))
  return fields
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** What the whole is called. */
export function targetInWords({ requests }: Plan): string {
  const [first] = requests as [PlannedRequest, ...PlannedRequest[]]
  const origins = [...new Set(requests.map(({ origin }) => origin))]
  if (requests.length === 1) return `${first.origin}${first.path}`
  return `${requests.length} requests to ${origins.length === 1 ? first.origin : `${origins.length} origins`}`
}
