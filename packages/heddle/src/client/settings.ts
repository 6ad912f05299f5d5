import { createHash, randomBytes } from 'node:crypto'
import { ClientConnection, type Http1Limits, type Http1Options } from '../h1/index.ts'
import { UsageError, type ConnectionHandler, type HttpConnection, type Instant, type StreamEngine } from '../http/index.ts'
import { dial, systemClock, TlsSessions, type Clock, type Dialled, type TlsClientOptions } from '../io/index.ts'
import { loopHold, type LoopHold } from './loop-hold.ts'
import type { ClientOptions, Dialler } from './options.ts'
import { ProxyRules } from './proxy.ts'

/** Makes the engine that speaks on a new connection. */
export type EngineMaker = (dialled: Dialled, handler: ConnectionHandler, http1: Http1Options, now: Instant) => HttpConnection & StreamEngine

const http1Engine: EngineMaker = (dialled, handler, http1, now) => new ClientConnection(dialled.info, handler, http1, now)

/** A client's options, checked, with every default filled in. */
export class Settings {
  readonly maxConnectionsPerOrigin: number
  readonly maxConnections: number
  readonly maxWaitingPerOrigin: number
  readonly connectTimeout: number
  readonly queueTimeout: number
  readonly totalTimeout: number
  readonly originLifetime: number
  readonly options: ClientOptions
  readonly clock: Clock
  readonly connect: Dialler
  readonly proxy: ProxyRules
  /** One object for all origins: io caches contexts by its identity. */
  readonly tls: TlsClientOptions
  readonly http1: Http1Options
  readonly makeEngine: EngineMaker
  /** Holds the event loop while requests are under way; undefined with a clock that is not the system's. */
  readonly loopHold: LoopHold | undefined

  /** Throws UsageError for a value out of range. */
  constructor(options: ClientOptions, makeEngine: EngineMaker = http1Engine) {
    this.options = options
    this.maxConnectionsPerOrigin = count('maxConnectionsPerOrigin', options.maxConnectionsPerOrigin, 128, 1)
    this.maxConnections = count('maxConnections', options.maxConnections, Infinity, 1)
    this.maxWaitingPerOrigin = count('maxWaitingPerOrigin', options.maxWaitingPerOrigin, 1_000_000, 1)
    this.connectTimeout = duration('connectTimeout', options.connectTimeout, 10_000)
    this.queueTimeout = duration('queueTimeout', options.queueTimeout, Infinity)
    this.totalTimeout = duration('totalTimeout', options.totalTimeout, Infinity)
    this.originLifetime = duration('originLifetime', options.originLifetime, 60_000)
    this.clock = options.clock ?? systemClock()
    this.connect = options.connect ?? dial
    this.proxy = new ProxyRules(options.proxy ?? 'none', process.env)
    if (options.socketPath !== undefined && this.proxy.any) throw new UsageError('socketPath and proxy exclude each other')
    this.tls = { sessions: new TlsSessions(), ...options.tls, alpn: ['http/1.1'] }
    const http1 = { websocketKey, websocketAccept }
    this.http1 = options.limits === undefined ? http1 : { ...http1, limits: checkedLimits(options.limits) }
    this.makeEngine = makeEngine
    this.loopHold = options.clock === undefined || options.clock === systemClock() ? loopHold : undefined
  }
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

/** The limits that are given; one that is undefined is not. */
function checkedLimits(limits: Partial<Http1Limits>): Partial<Http1Limits> {
  const given = Object.entries(limits).filter(([, value]) => value !== undefined)
  for (const [name, value] of given) {
    if (!(typeof value === 'number' && value >= 0)) throw new UsageError(`limits.${name} must be a number, 0 or more`)
  }
  return Object.fromEntries(given) as Partial<Http1Limits>
}

/** RFC 6455 §4.1: 16 random bytes. */
function websocketKey(): string {
  return randomBytes(16).toString('base64')
}

/** RFC 6455 §4.2.2. */
function websocketAccept(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
}
