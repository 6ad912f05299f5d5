import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { isAuthority, isFieldName, isFieldValue, isPath, isToken } from 'heddle/http'
import { z } from 'zod'
import { isNormalPath } from '../routing/path.ts'
import { certificateIdentity, certificateNames, checkCertificate, checkPem, checkWritable } from './files.ts'
import type { Config, EndpointConfig } from './types.ts'
import { durationInWords, parseDuration, parseSize } from './units.ts'

/*
 * Every schema's error text says what was expected; `load.ts` puts what was found, and where, in
 * front of it. For unknown keys the text is the list of the known ones.
 */

/** A mapping with these keys and no others. */
function mapping<Shape extends z.ZodRawShape>(shape: Shape, expected = 'a mapping'): z.ZodObject<Shape, z.core.$strict> {
  const keys = Object.keys(shape).join(' ')
  return z.strictObject(shape, { error: (issue) => (issue.code === 'unrecognized_keys' ? keys : expected) })
}

function list<Element extends z.ZodType>(element: Element): z.ZodArray<Element> {
  return z.array(element, { error: 'a list' })
}

/** Text that `parse` understands; undefined from it means it does not. */
function text<Value>(expected: string, parse: (text: string) => Value | undefined) {
  return z.string({ error: expected }).transform((value, context) => {
    const parsed = parse(value)
    if (parsed !== undefined) return parsed
    context.addIssue({ code: 'custom', message: expected, input: value })
    return z.NEVER
  })
}

function wholeNumber(min: number, max: number) {
  const expected = `a whole number from ${min} to ${max}`
  return z.number({ error: expected }).refine((value) => Number.isInteger(value) && value >= min && value <= max, { error: expected })
}

const altSvcWords = 'true, false, or the port from 1 to 65535 at which clients find HTTP/3'

function portNumber(expected: string) {
  return z.number({ error: expected }).refine((value) => Number.isInteger(value) && value >= 1 && value <= 65_535, { error: expected })
}

const countWords = 'a whole number from 1 to 1000000, or none'
const countOrNone = z.union([
  text(countWords, (value) => (value === 'none' ? Infinity : undefined)),
  z.number({ error: countWords }).refine((value) => Number.isInteger(value) && value >= 1 && value <= 1_000_000, { error: countWords }),
])
const yesOrNo = z.boolean({ error: 'true or false' })
const durationWords = 'a duration such as 250ms, 10s, 1m or 2h'
const duration = text(durationWords, (value) => positive(parseDuration(value)))
const durationOrNone = text(`${durationWords}, or none`, (value) => (value === 'none' ? Infinity : positive(parseDuration(value))))
const durationOrZero = text(durationWords, parseDuration)
const sizeOrNone = text('a size such as 512B, 64KiB or 10MB, or none', (value) => (value === 'none' ? Infinity : parseSize(value)))

const windowOf = (least: string, from: number) =>
  text(`a size from ${least} to 1GiB`, (value) => {
    const size = parseSize(value)
    return size !== undefined && size >= from && size <= 2 ** 30 ? size : undefined
  })
// RFC 9113 §6.9.2: a connection's window begins with 65,535 octets and cannot be made smaller.
const connectionWindow = windowOf('64KiB', 65_536)
const streamWindow = windowOf('1KiB', 1_024)

/** What clients' and upstreams' HTTP/2 connections have in common. */
const http2 = {
  connectionWindow: connectionWindow.default(2 ** 22),
  maxWindow: connectionWindow.default(2 ** 24),
  pingInterval: durationOrNone.default(15_000),
  pingTimeout: duration.default(10_000),
}

function positive(value: number | undefined): number | undefined {
  return value === 0 ? undefined : value
}

const name = text('a name of letters, digits, ".", "_", "-" or ":", at most 100', (value) =>
  /^[A-Za-z0-9._:-]{1,100}$/.test(value) ? value : undefined,
)
const listenHost = text('an IP address or host name to listen on', (value) => (isHostName(value) || isIP(value) !== 0 ? value : undefined))
const token = (expected: string) => text(expected, (value) => (isToken(value) ? value : undefined))

function isHostName(value: string): boolean {
  return value.length <= 253 && /^(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})\.)*[A-Za-z0-9_][A-Za-z0-9_-]{0,62}\.?$/.test(value)
}

const peerBlock = text('an IP address or CIDR block such as 10.0.0.0/8', (value) => {
  const [address = '', bits, ...rest] = value.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0) return undefined
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))) return undefined
  return value
})

const endpointWords = 'host:port, or a mapping of host and port'

/** `host:port` or `[::1]:port`; in words, what was expected instead. */
function readEndpoint(value: string): EndpointConfig | string {
  if (isIP(value) === 6) return `an IPv6 address in brackets and a port, such as [${value}]:8080`
  if (/^[a-z]+:\/\//i.test(value)) return 'host:port without a scheme; for TLS the cluster has the key tls'
  const match = /^(?:\[(.*)\]|([^:]*)):(\w*)$/.exec(value)
  if (match === null) return endpointWords
  const [, literal, name = '', digits = ''] = match
  if (literal === undefined ? !isHostName(name) : isIP(literal) !== 6)
    return `a host name${literal === undefined ? ' or an IPv4 address' : ', or an IPv6 address in the brackets,'} before the port`
  const port = Number(digits)
  if (!/^\d+$/.test(digits) || port < 1 || port > 65_535) return 'a port from 1 to 65535 after the host'
  return { host: literal ?? name, port }
}

/** `host:port`, `[::1]:port`, or a mapping of the two. */
const endpoint = z.union([
  z.string({ error: endpointWords }).transform((value, context) => {
    const read = readEndpoint(value)
    if (typeof read !== 'string') return read
    context.addIssue({ code: 'custom', message: read, input: value })
    return z.NEVER
  }),
  mapping(
    {
      host: text('a host name or IP address', (value) => (isHostName(value) || isIP(value) !== 0 ? value : undefined)),
      port: wholeNumber(1, 65_535),
    },
    endpointWords,
  ),
])

/** The same endpoint twice would be one name for two: in metrics, and to whoever reads them. */
function differentEndpoints(endpoints: readonly EndpointConfig[], context: z.core.$RefinementCtx): void {
  const names = endpoints.map(({ host, port }) => `${host.toLowerCase().replace(/\.$/, '')} ${port}`)
  names.forEach((name, index) => {
    const first = names.indexOf(name)
    if (first !== index)
      context.addIssue({ code: 'custom', message: `another endpoint than endpoints[${first}]`, path: [index], input: endpoints })
  })
}

const defaultMaxTime = 30_000

/** An ejection must be able to last its base time. */
function risingTimes(times: { readonly baseTime: number; readonly maxTime: number }, context: z.core.$RefinementCtx): void {
  const { baseTime, maxTime } = times
  if (baseTime <= maxTime) return
  // Of the two, one that is written.
  const [path, message] =
    maxTime === defaultMaxTime
      ? ['baseTime', `a duration of at most maxTime, ${durationInWords(maxTime)}`]
      : ['maxTime', `a duration of at least baseTime, ${durationInWords(baseTime)}`]
  context.addIssue({ code: 'custom', message, path: [path], input: times })
}

/** Fields the engines keep from us (RFC 9110 §7.6.1), and Host, which is the authority. A condition on one would never hold. */
const hopByHop = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'host'])

const matchSchema = mapping({
  hosts: list(
    text('a host name such as example.org or *.example.org, without port', (value) => {
      const host = value.toLowerCase()
      const bare = host.startsWith('*.') ? host.slice(2) : host
      const literal = /^\[(.+)\]$/.exec(bare)?.[1]
      if (literal !== undefined) return isIP(literal) === 6 ? host : undefined
      return isHostName(bare) ? host.replace(/\.$/, '') : undefined
    }),
  ).default([]),
  pathPrefix: text('a path such as /api, in normal form and without a query', (value) =>
    isPath(value) && isNormalPath(value) ? value : undefined,
  ).default('/'),
  grpcService: text('the full name of a gRPC service such as package.Service', (value) =>
    /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$/.test(value) ? value : undefined,
  ).optional(),
  methods: list(text('a method such as GET, in upper case', (value) => (/^[A-Z][A-Z0-9-]*$/.test(value) ? value : undefined))).default([]),
  headers: list(
    mapping({
      name: text('the name of an end-to-end field; for Host there is "hosts"', (value) => {
        const lower = value.toLowerCase()
        return isFieldName(lower) && !hopByHop.has(lower) ? lower : undefined
      }),
      value: text('a field value without line breaks', (value) => (isFieldValue(value) ? value : undefined)).optional(),
    }).transform((header) => ({ name: header.name, value: header.value })),
  ).default([]),
}).transform((value) => ({ ...value, grpcService: value.grpcService }))

const route = mapping({
  name,
  match: matchSchema.prefault({}),
  cluster: z.string({ error: 'the name of a cluster' }),
  timeout: durationOrNone.default(Infinity),
  headTimeout: durationOrNone.optional(),
  bodyTimeout: durationOrNone.optional(),
  grpcDeadline: yesOrNo.default(false),
  maxConcurrentStreams: countOrNone.default(Infinity),
  streamWindow: streamWindow.optional(),
  extendedConnect: yesOrNo.default(false),
  tunnelIdleTimeout: durationOrNone.default(3_600_000),
  retry: mapping({ attempts: wholeNumber(0, 10).default(2) }).prefault({}),
  authority: text('host or host:port', (value) => (isAuthority(value) ? value : undefined)).optional(),
}).transform((value) => ({
  ...value,
  headTimeout: value.headTimeout,
  bodyTimeout: value.bodyTimeout,
  streamWindow: value.streamWindow,
  authority: value.authority,
}))

/** A file named in the configuration, relative to the configuration's folder; `check` says what is wrong with it. */
function file(folder: string, expected: string, check: (path: string) => string | undefined) {
  return z.string({ error: expected }).transform((value, context) => {
    const path = resolve(folder, value)
    const problem = value === '' ? 'is empty' : check(path)
    if (problem !== undefined) context.addIssue({ code: 'custom', message: `${expected}, but ${problem}`, input: value })
    return path
  })
}

/** The schema of a configuration whose relative file names start at `folder`. */
export function configSchema(folder: string): z.ZodType<Config> {
  const certificateFile = file(folder, 'a PEM file of certificates', (path) => checkPem(path, 'CERTIFICATE'))
  const keyFile = file(folder, 'a PEM file of a private key', (path) => checkPem(path, 'PRIVATE KEY'))
  const certificate = mapping({
    cert: certificateFile,
    key: keyFile,
    names: list(
      text('a server name such as example.org or *.example.org', (value) =>
        isHostName(value.replace(/^\*\./, '')) ? value.toLowerCase() : undefined,
      ),
    ).optional(),
  }).transform((value, context) => {
    const problem = checkCertificate(value.cert, value.key)
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem, path: ['key'], input: value.key })
    return { cert: value.cert, key: value.key, names: value.names ?? certificateNames(value.cert) }
  })

  const listener = mapping({
    name,
    host: listenHost.default('0.0.0.0'),
    port: wholeNumber(0, 65_535),
    tls: mapping({
      certificates: list(certificate).refine((value) => value.length > 0, { error: 'at least one certificate' }),
      clientCa: certificateFile.optional(),
    })
      .transform((value, context) => {
        const identities = value.certificates.map(({ cert }) => certificateIdentity(cert))
        identities.forEach((identity, index) => {
          const first = identities.indexOf(identity)
          if (identity === undefined || first === index) return
          const message = `another certificate than that of certificates[${first}]; an entry may have several names`
          context.addIssue({ code: 'custom', message, path: ['certificates', index, 'cert'], input: value })
        })
        return { certificates: value.certificates, clientCa: value.clientCa }
      })
      .optional(),
    trust: list(peerBlock).default([]),
    via: token('a pseudonym for Via, one token').default('heddle'),
    forwarded: z
      .enum(['x-forwarded', 'forwarded', 'both', 'none'], { error: 'x-forwarded, forwarded, both or none' })
      .default('x-forwarded'),
    upgrades: list(
      // h2c would tunnel requests past routes and rules: an old way of smuggling.
      text('the name of an upgrade protocol such as websocket, and not h2c', (value) =>
        isToken(value) && value.toLowerCase() !== 'h2c' ? value.toLowerCase() : undefined,
      ),
    ).default(['websocket']),
    protocols: list(z.enum(['h1', 'h2', 'h3'], { error: 'h1, h2 or h3' }))
      .refine((value) => value.length > 0, { error: 'at least one of h1, h2 and h3' })
      .default(['h1', 'h2']),
    altSvc: z.union([z.boolean({ error: altSvcWords }), portNumber(altSvcWords)]).default(true),
    http2: mapping({
      streamWindow: streamWindow.default(2 ** 20),
      ...http2,
      maxConcurrentStreams: wholeNumber(1, 1_000_000).default(100),
    }).prefault({}),
    http3: mapping({
      streamWindow: streamWindow.default(2 ** 20),
      connectionWindow: connectionWindow.default(2 ** 22),
      maxWindow: connectionWindow.default(2 ** 24),
      maxConcurrentStreams: wholeNumber(1, 1_000_000).default(100),
    }).prefault({}),
    limits: mapping({
      maxConnections: wholeNumber(1, 1_000_000).default(10_000),
      maxContentLength: sizeOrNone.default(Infinity),
      headTimeout: duration.default(10_000),
      bodyTimeout: durationOrNone.default(30_000),
      idleTimeout: duration.default(60_000),
      sendTimeout: durationOrNone.default(60_000),
    }).prefault({}),
  }).transform((value) => ({ ...value, tls: value.tls }))

  const cluster = mapping({
    name,
    endpoints: list(endpoint)
      .refine((value) => value.length > 0, { error: 'at least one endpoint' })
      .superRefine(differentEndpoints),
    tls: mapping({
      ca: certificateFile.optional(),
      cert: certificateFile.optional(),
      key: keyFile.optional(),
      serverName: text('a host name', (value) => (isHostName(value) ? value : undefined)).optional(),
    })
      .transform((value, context) => {
        if ((value.cert === undefined) !== (value.key === undefined)) {
          const [present, absent] = value.key === undefined ? (['cert', 'key'] as const) : (['key', 'cert'] as const)
          context.addIssue({ code: 'custom', message: `${absent} beside ${present}`, path: [absent], input: undefined })
        }
        const problem = value.cert === undefined || value.key === undefined ? undefined : checkCertificate(value.cert, value.key)
        if (problem !== undefined) context.addIssue({ code: 'custom', message: problem, path: ['key'], input: value.key })
        return { ca: value.ca, cert: value.cert, key: value.key, serverName: value.serverName }
      })
      .optional(),
    protocol: z.enum(['auto', 'h1', 'h2', 'h2c', 'h3'], { error: 'auto, h1, h2, h2c or h3' }).default('auto'),
    http2: mapping({
      streamWindow: streamWindow.default(2 ** 17),
      ...http2,
      idleTimeout: duration.default(60_000),
      maxFailuresInRow: countOrNone.default(8),
    }).prefault({}),
    http3: mapping({
      streamWindow: streamWindow.default(2 ** 17),
      idleTimeout: duration.default(60_000),
      maxFailuresInRow: countOrNone.default(8),
    }).prefault({}),
    connectTimeout: duration.default(5_000),
    headTimeout: durationOrNone.default(60_000),
    bodyTimeout: durationOrNone.default(60_000),
    sendTimeout: durationOrNone.default(60_000),
    idleTimeout: duration.default(4_000),
    maxConnectionsPerEndpoint: wholeNumber(1, 100_000).default(256),
    maxTunnelsPerEndpoint: wholeNumber(1, 1_000_000).default(10_000),
    maxWaiting: wholeNumber(1, 1_000_000).default(1_024),
    resolveInterval: duration.default(30_000),
    ejection: mapping({
      consecutiveFailures: wholeNumber(0, 1_000_000).default(5),
      baseTime: duration.default(1_000),
      maxTime: duration.default(defaultMaxTime),
      maxShare: z
        .number({ error: 'a number from 0 to 1' })
        .refine((value) => value >= 0 && value <= 1, { error: 'a number from 0 to 1' })
        .default(0.5),
    })
      .superRefine(risingTimes)
      .prefault({}),
  }).transform((value) => ({ ...value, tls: value.tls }))

  return mapping({
    workers: z
      .union([
        text('a whole number from 1 to 256, or auto', (value) => (value === 'auto' ? Math.min(256, availableParallelism()) : undefined)),
        wholeNumber(1, 256),
      ])
      .default(1),
    admin: mapping({
      host: listenHost.default('127.0.0.1'),
      port: wholeNumber(0, 65_535),
      hosts: list(
        text('a host name without a port', (value) => (isHostName(value) ? value.toLowerCase().replace(/\.$/, '') : undefined)),
      ).default([]),
    }).optional(),
    accessLog: mapping({
      path: z.string({ error: 'the path of a file, or stdout' }).transform((value, context) => {
        if (value === 'stdout') return value
        const path = resolve(folder, value)
        const problem = value === '' ? 'is empty' : checkWritable(path)
        if (problem !== undefined)
          context.addIssue({ code: 'custom', message: `the path of a file, or stdout, but ${problem}`, input: value })
        return path
      }),
    }).optional(),
    listeners: list(listener).refine((value) => value.length > 0, { error: 'at least one listener' }),
    routes: list(route).refine((value) => value.length > 0, { error: 'at least one route' }),
    clusters: list(cluster).refine((value) => value.length > 0, { error: 'at least one cluster' }),
    drainTimeout: duration.default(30_000),
    tunnelGrace: durationOrZero.optional(),
  }).transform((value, context) => {
    const { drainTimeout, tunnelGrace = Math.round((drainTimeout * 2) / 3) } = value
    if (tunnelGrace > drainTimeout) {
      const message = `a duration of at most drainTimeout, ${durationInWords(drainTimeout)}`
      context.addIssue({ code: 'custom', message, path: ['tunnelGrace'], input: value })
    }
    return { ...value, admin: value.admin, accessLog: value.accessLog, tunnelGrace }
  })
}
