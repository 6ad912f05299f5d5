import { serverLimits, type Http1Limits, type Http1Options } from '../h1/index.ts'
import { checkedLimits, serverLimits as http2Limits, type Http2Limits, type Http2Options } from '../h2/index.ts'
import { checkLimits, UsageError } from '../http/index.ts'
import { checkedLimits as checkedHttp3Limits, serverLimits as http3Limits, type Http3Limits, type Http3Options } from '../h3/index.ts'
import type { QuicOptions } from '../quic/index.ts'
import type { ServeOptions } from './options.ts'
import { websocketAccept } from './websocket-accept.ts'

/** What ALPN calls the protocols. */
export type ProtocolName = 'h3' | 'h2' | 'http/1.1'

const allProtocols: readonly ProtocolName[] = ['h3', 'h2', 'http/1.1']
const usualProtocols: readonly ProtocolName[] = ['h2', 'http/1.1']

/** The protocols to serve, best first. Throws UsageError for none, and for a name that is no protocol here. */
export function servedProtocols({ protocols = usualProtocols, tls, path, altSvc = true, quicKey }: ServeOptions): readonly ProtocolName[] {
  if (typeof altSvc !== 'boolean') throw new UsageError('serve: altSvc must be true or false')
  if (quicKey !== undefined && !(quicKey instanceof Uint8Array && quicKey.length === 32)) {
    throw new UsageError('serve: quicKey must be 32 octets')
  }
  const names = (Array.isArray(protocols) ? protocols : []).map((name: unknown) => (name === 'h1' ? 'http/1.1' : name)) as ProtocolName[]
  if (names.length === 0 || !names.every((name) => allProtocols.includes(name))) {
    throw new UsageError("serve: protocols must be a list of 'h3', 'h2' and 'http/1.1', or of some of them")
  }
  if (names.includes('h3')) {
    if (tls === undefined || tls === null) throw new UsageError('serve: HTTP/3 needs tls')
    if (path !== undefined) throw new UsageError('serve: HTTP/3 is not to be had on a Unix socket')
  }
  return [...new Set(names)]
}

/** Protocols that may be tunnelled to. */
export function tunnelledProtocols({ upgrades = [], websocket = false }: ServeOptions): readonly string[] {
  return websocket && !upgrades.includes('websocket') ? [...upgrades, 'websocket'] : upgrades
}

/** Of these, what HTTP/2 clients may tunnel to. */
export function extendedProtocols(options: ServeOptions): readonly string[] {
  return options.extendedConnect === false ? [] : tunnelledProtocols(options)
}

/** What HTTP/1.1 connections are made with. Throws UsageError for limits that are none. */
export function http1Options(options: ServeOptions, clock: { httpDate(): string }): Http1Options {
  return {
    date: clock,
    upgrades: tunnelledProtocols(options),
    websocketAccept: options.websocketAccept ?? websocketAccept,
    ...(options.limits === undefined ? undefined : { limits: checkLimits('serve', 'limits', options.limits, serverLimits) }),
    ...(options.halfOpen === undefined ? undefined : { halfOpen: options.halfOpen }),
  }
}

/** The origins to tell clients of, if any. Throws UsageError for what is none. */
function servedOrigins({ origins, tls }: ServeOptions): { readonly origins?: readonly string[] } {
  if (origins === undefined) return {}
  const isOrigin = (value: unknown): boolean =>
    typeof value === 'string' && value.startsWith('https://') && URL.parse(value)?.origin === value
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- callers without types
  if (!Array.isArray(origins) || !origins.every(isOrigin)) {
    throw new UsageError('serve: origins must be a list of origins as a browser writes them, such as https://a.example')
  }
  // RFC 8336 §2: whoever is not known by a certificate can claim nothing.
  if (tls === undefined || tls === null) throw new UsageError('serve: origins needs tls')
  return { origins }
}

/** What HTTP/2 connections are made with. Throws UsageError for limits that are none. */
export function http2Options(options: ServeOptions, clock: { httpDate(): string }): Http2Options {
  const own = options.http2 === undefined ? {} : checkedLimits('serve', options.http2)
  return {
    date: clock,
    limits: { ...sharedLimits(options.limits), ...own },
    extendedConnect: extendedProtocols(options).length > 0,
    ...servedOrigins(options),
  }
}

/** What HTTP/3 connections are made with. Throws UsageError for limits that are none. */
export function http3Options(options: ServeOptions, clock: { httpDate(): string }): Http3Options {
  const own = options.http3 === undefined ? {} : checkedHttp3Limits('serve', options.http3)
  return {
    date: clock,
    limits: { ...sharedHttp3Limits(options.limits), ...own },
    extendedConnect: extendedProtocols(options).length > 0,
    ...servedOrigins(options),
  }
}

/** Silence that ends a QUIC connection: at least so long, ms, for clients may be out of reach for a while; … */
const shortestSilence = 30_000
/** … at most so long, for those that are gone say nothing of it. … */
const longestSilence = 3_600_000
/** … But not before HTTP/3 says that an idle connection is over. */
const farewell = 5_000

/** What QUIC is told of these limits. */
export function quicOptions({ limits }: Http3Options, { handshakeTimeout = 10_000 }: ServeOptions): Partial<QuicOptions> {
  const { streamWindow, connectionWindow, maxWindow, maxConcurrentStreams, idleTimeout } = { ...http3Limits, ...limits }
  return {
    maxIdleTimeout: Math.ceil(Math.min(Math.max(idleTimeout + farewell, shortestSilence), longestSilence)),
    initialMaxStreamData: streamWindow,
    initialMaxData: connectionWindow,
    largestWindow: Math.max(maxWindow, connectionWindow),
    maxBidirectionalStreams: Math.min(maxConcurrentStreams, 2 ** 60),
    handshakeTimeout,
  }
}

function sharedHttp3Limits(limits: Partial<Http1Limits> = {}): Partial<Http3Limits> {
  const shared: Record<string, number> = {}
  for (const [name, value] of Object.entries(limits)) if (name in http3Limits) shared[name] = value
  return shared
}

/** Of `limits`, those both protocols have: who bounds a body or a wait means every request. */
function sharedLimits(limits: Partial<Http1Limits> = {}): Partial<Http2Limits> {
  const shared: Record<string, number> = {}
  for (const [name, value] of Object.entries(limits)) if (name in http2Limits) shared[name] = value
  return shared
}
