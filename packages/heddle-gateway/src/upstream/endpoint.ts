import type { EndpointConfig } from '../config/types.ts'

/** How one endpoint is doing, for metrics and the admin page. */
export interface EndpointStats {
  /** `host:port` as configured, or `address:port` where a name has several addresses. */
  readonly name: string
  /** Requests under way. */
  readonly active: number
  /** Attempts made, ever. */
  readonly requests: number
  /** Attempts that failed at the connection, by a time limit or by a broken answer. */
  readonly failures: number
  /** Times it was taken out. */
  readonly ejections: number
  /** True while it gets no requests. */
  readonly ejected: boolean
}

/** One place requests can be sent to. */
export class Endpoint {
  readonly name: string
  readonly config: EndpointConfig
  active: number
  requests: number
  failures: number
  ejections: number
  /** Instant until which it gets no requests; 0: it is in. */
  ejectedUntil: number

  constructor(name: string, config: EndpointConfig) {
    this.name = name
    this.config = config
    this.active = 0
    this.requests = 0
    this.failures = 0
    this.ejections = 0
    this.ejectedUntil = 0
  }
}
