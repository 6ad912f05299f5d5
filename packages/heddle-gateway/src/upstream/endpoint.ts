import type { Origin } from 'heddle/client'
import type { TlsClientOptions } from 'heddle/io'
import type { EndpointConfig } from '../config/types.ts'
import type { Health } from './health.ts'

/** How one endpoint is doing, for metrics and the admin page. */
export interface EndpointStats {
  /** `host:port` as configured, or `address:port` where a name stands for several machines. */
  readonly name: string
  /** Attempts under way, waiting ones included. */
  readonly active: number
  /** Attempts made, ever. */
  readonly requests: number
  /** Attempts that failed at the connection, by a time limit or by a broken answer. */
  readonly failures: number
  /** Times it was taken out, ever. */
  readonly ejections: number
  /** True while it gets no requests, or a single one to try it. */
  readonly ejected: boolean
  /** True after `consecutiveFailures` in a row, until an answer or `maxTime` ms without another one; also where `maxShare` keeps it in. */
  readonly failing: boolean
  /** Failures in a row, the last no older than `maxTime` ms. */
  readonly failuresInRow: number
  /** True while its last attempt, no older than `maxTime` ms, did not fail. */
  readonly answering: boolean
  /** Requests waiting for a connection to it, or for a stream. */
  readonly waiting: number
  /** Open connections. */
  readonly connections: number
  /** Open HTTP/2 and HTTP/3 streams. */
  readonly streams: number
}

/** One place requests can be sent to. Another one takes its place when its addresses change. */
export class Endpoint {
  /** `host:port` as configured, or `address:port` where a name stands for several machines. */
  readonly name: string
  readonly config: EndpointConfig
  /** Where the client's pool keeps its connections. */
  readonly origin: Origin
  /** IP addresses to connect to: several are one machine's. Empty: `config.host` is not resolved yet. */
  addresses: readonly string[]
  readonly health: Health
  /** Attempts under way, waiting ones included. */
  active: number
  requests: number
  failures: number
  /** TLS options of its connections by the client's they were made of: contexts are cached by identity. */
  readonly tls: Map<TlsClientOptions, TlsClientOptions>
  /** It left its cluster; attempts begun before may still be under way. */
  retired: boolean

  constructor(name: string, config: EndpointConfig, origin: Origin, addresses: readonly string[], health: Health) {
    this.name = name
    this.config = config
    this.origin = origin
    this.addresses = addresses
    this.health = health
    this.active = 0
    this.requests = 0
    this.failures = 0
    this.tls = new Map()
    this.retired = false
  }

  /** `options` of its client, with the name that its certificate must have. */
  tlsFor(options: TlsClientOptions, servername: string): TlsClientOptions {
    let own = this.tls.get(options)
    if (own === undefined) {
      own = { ...options, servername }
      this.tls.set(options, own)
    }
    return own
  }

  /** Takes over where `predecessor`, of the same name at another address, stopped. */
  continueCounts(predecessor: Endpoint): void {
    this.requests = predecessor.requests
    this.failures = predecessor.failures
    this.health.ejections = predecessor.health.ejections
  }
}
