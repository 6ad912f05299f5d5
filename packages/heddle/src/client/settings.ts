import { createHash, randomBytes } from 'node:crypto'
import { clientLimits as http1Limits, type Http1Limits } from '../h1/index.ts'
import { checkedLimits, clientLimits, ResetCounts, type Http2Limits } from '../h2/index.ts'
import { clientLimits as http3ClientLimits, ResetCounts as Http3ResetCounts } from '../h3/index.ts'
import { checkLimits, checkOptionNames, UsageError } from '../http/index.ts'
import { checkTlsClientOptions, dial, systemClock, TlsSessions, type Clock, type TlsClientOptions } from '../io/index.ts'
import { makeEngine as heddleEngine, type EngineMaker, type EngineOptions } from './engine.ts'
import { loopHold, type LoopHold } from './loop-hold.ts'
import { clientOptionNames } from './option-names.ts'
import type { ClientOptions, ClientTlsOptions, Dialler } from './options.ts'
import { alpnOf, checkedProtocols, type ClientProtocol } from './protocols.ts'
import { ProxyRules } from './proxy.ts'
import { http3Limits, quicFault, quicSettings, type QuicSettings } from './quic-settings.ts'

/** A client's options, checked, with every default filled in. */
export class Settings {
  readonly maxConnectionsPerOrigin: number
  readonly maxTunnelsPerOrigin: number
  readonly maxConnections: number
  readonly maxWaitingPerOrigin: number
  readonly connectTimeout: number
  readonly queueTimeout: number
  /** How long a queue may stand still, where `queueTimeout` does not say how long a request may wait. */
  readonly queuePatience: number
  readonly totalTimeout: number
  readonly originLifetime: number
  readonly options: ClientOptions
  readonly clock: Clock
  readonly connect: Dialler
  readonly proxy: ProxyRules
  /** Without `h3`, if it cannot be spoken and others can. */
  readonly protocols: readonly ClientProtocol[]
  /** Undefined: nothing goes over QUIC. */
  readonly quic: QuicSettings | undefined
  /** Why HTTP/3 is not spoken although it is among the protocols. */
  readonly http3Unavailable: string | undefined
  /** http origins speak HTTP/2. */
  readonly h2c: boolean
  /** Connections may serve other origins besides their own. */
  readonly coalesces: boolean
  /** See {@link ClientOptions}. */
  readonly maxFailuresInRow: number
  /** A request that finds every stream taken has a connection made, if the limits allow it. */
  readonly connectsWhenFull: boolean
  /** One object for all origins: io caches contexts by its identity. */
  readonly tls: TlsClientOptions
  /** The same, for connections that have to speak HTTP/1.1. */
  readonly tlsHttp1: TlsClientOptions
  readonly engines: EngineOptions
  /** Counts the streams of all its connections that are reset. */
  readonly resets: ResetCounts
  readonly http3Resets: Http3ResetCounts
  readonly makeEngine: EngineMaker
  /** Holds the event loop while requests are under way; undefined with a clock that is not the system's. */
  readonly loopHold: LoopHold | undefined

  /** Throws UsageError for an option that is unknown, and for a value out of range. */
  constructor(options: ClientOptions, makeEngine: EngineMaker = heddleEngine) {
    checkOptionNames('Client', '', options, clientOptionNames)
    this.options = options
    this.maxConnectionsPerOrigin = count('maxConnectionsPerOrigin', options.maxConnectionsPerOrigin, 128, 1)
    this.maxTunnelsPerOrigin = count('maxTunnelsPerOrigin', options.maxTunnelsPerOrigin, Infinity, 1)
    this.maxConnections = count('maxConnections', options.maxConnections, Infinity, 1)
    this.maxWaitingPerOrigin = count('maxWaitingPerOrigin', options.maxWaitingPerOrigin, 1_000_000, 1)
    this.connectTimeout = duration('connectTimeout', options.connectTimeout, 10_000)
    this.queueTimeout = duration('queueTimeout', options.queueTimeout, Infinity)
    this.queuePatience = options.queueTimeout === undefined ? 60_000 : Infinity
    this.totalTimeout = duration('totalTimeout', options.totalTimeout, Infinity)
    this.originLifetime = duration('originLifetime', options.originLifetime, 60_000)
    this.clock = options.clock ?? systemClock()
    this.connect = options.connect ?? dial
    this.proxy = new ProxyRules(options.proxy ?? 'none', process.env)
    if (options.socketPath !== undefined && this.proxy.any) throw new UsageError('socketPath and proxy exclude each other')
    const protocols = checkedProtocols(options.protocols)
    this.http3Unavailable = protocols.includes('h3') ? quicFault(options) : undefined
    this.protocols = this.http3Unavailable === undefined ? protocols : protocols.filter((protocol) => protocol !== 'h3')
    if (this.protocols.length === 0) throw new UsageError(`Client: HTTP/3 cannot be spoken: ${this.http3Unavailable}`)
    this.h2c = flag('h2c', options.h2c)
    if (this.h2c && !this.protocols.includes('h2')) throw new UsageError("h2c needs 'h2' among the protocols")
    this.coalesces = flag('coalesce', options.coalesce)
    this.maxFailuresInRow = count('maxFailuresInRow', options.maxFailuresInRow, 8, 1)
    if (this.coalesces && changesIdentity(options.tls)) {
      throw new UsageError('coalesce relies on the usual check of certificates: no servername, checkServerIdentity or rejectUnauthorized')
    }
    this.connectsWhenFull = choice('whenFull', options.whenFull, ['queue', 'connect']) === 'connect'
    if (options.tls !== undefined) {
      checkTlsClientOptions('Client', options.tls)
      if ('alpn' in options.tls) throw new UsageError('Client: tls.alpn is what the client chooses itself')
    }
    this.tls = { sessions: new TlsSessions(), ...options.tls, alpn: alpnOf(this.protocols) }
    this.tlsHttp1 = { ...this.tls, alpn: alpnOf(['h1']) }
    this.resets = new ResetCounts()
    this.http3Resets = new Http3ResetCounts()
    const http1 = options.limits === undefined ? {} : checkLimits('Client', 'limits', options.limits, http1Limits)
    const http2 = options.http2 === undefined ? {} : checkedLimits('Client', options.http2)
    this.engines = {
      http1: { websocketKey, websocketAccept, ...(options.limits === undefined ? undefined : { limits: http1 }) },
      http2: { limits: http2Limits({ ...sharedLimits(http1, clientLimits), ...http2 }), resets: this.resets },
      http3: { limits: http3Limits(sharedLimits(http1, http3ClientLimits), options.http3), resets: this.http3Resets },
    }
    this.quic = this.protocols.includes('h3') ? quicSettings(options, this.tls, this.engines.http3) : undefined
    this.makeEngine = makeEngine
    this.loopHold = options.clock === undefined || options.clock === systemClock() ? loopHold : undefined
  }
}

function changesIdentity({ servername, checkServerIdentity, rejectUnauthorized }: ClientTlsOptions = {}): boolean {
  return servername !== undefined || checkServerIdentity !== undefined || rejectUnauthorized === false
}

/** Checks a time limit: ms above 0, or Infinity. */
export function duration(name: string, value: number | undefined, fallback: number): number {
  if (value === undefined) return fallback
  if (typeof value !== 'number' || !(value > 0)) throw new UsageError(`${name} must be a number of ms above 0, or Infinity`)
  return value
}

function count(name: string, value: number | undefined, fallback: number, least: number): number {
  if (value === undefined) return fallback
  if (value !== Infinity && !(Number.isInteger(value) && value >= least)) {
    throw new UsageError(`${name} must be an integer, at least ${least}, or Infinity`)
  }
  return value
}

function flag(name: string, value: boolean | undefined): boolean {
  if (value !== undefined && typeof value !== 'boolean') throw new UsageError(`${name} must be true or false`)
  return value === true
}

function choice<T extends string>(name: string, value: T | undefined, choices: readonly [T, ...T[]]): T {
  if (value === undefined) return choices[0]
  if (!choices.includes(value)) throw new UsageError(`${name} must be ${choices.map((each) => `'${each}'`).join(' or ')}`)
  return value
}

/** Of `limits`, those `others` have as well: whoever bounds a wait means every request. Draining is of HTTP/1.1; others reset. */
function sharedLimits<T extends object>(
  { drainSize: _size, drainTimeout: _timeout, ...limits }: Partial<Http1Limits>,
  others: T,
): Partial<T> {
  return Object.fromEntries(Object.entries(limits).filter(([name]) => name in others)) as Partial<T>
}

/** A connection usually runs this many streams at once (RFC 9113 §6.5.2). */
const usualStreams = 100
/** RFC 9113 §6.9.1 */
const largestWindow = 0x7fff_ffff

/**
 * The window of a connection holds those of all its streams, so that responses a program does not read
 * yet stop no other: with `Promise.all` over fetches whose bodies are read one after the other, a smaller
 * one would be a deadlock. (Node's server, moreover, cuts responses off when that window is used up.)
 */
function http2Limits(given: Partial<Http2Limits> = {}): Partial<Http2Limits> {
  const { streamWindow = clientLimits.streamWindow } = given
  return { connectionWindow: Math.min(streamWindow * usualStreams, largestWindow), ...given }
}

/** RFC 6455 §4.1: 16 random bytes. */
function websocketKey(): string {
  return randomBytes(16).toString('base64')
}

/** RFC 6455 §4.2.2. */
function websocketAccept(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
}
