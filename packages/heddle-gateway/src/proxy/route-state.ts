import type { RouteConfig } from '../config/types.ts'
import type { Cluster } from '../upstream/index.ts'

/** What forwarding needs of one route, made of its configuration once, and how many requests are under way on it. */
export class RouteState {
  readonly config: RouteConfig
  readonly cluster: Cluster | undefined
  /** Requests under way. */
  active: number
  /** From the end of the request to the response's head, ms; also how long one waits for a connection. */
  readonly headTimeout: number
  /** The same, where it is on us to notice; Infinity: the cluster's connections do, which costs nothing per request. */
  readonly ownHeadTimeout: number
  /** Without a byte of the response, ms, where it is on us to notice. */
  readonly ownBodyTimeout: number

  constructor(config: RouteConfig, cluster: Cluster | undefined) {
    this.config = config
    this.cluster = cluster
    this.active = 0
    this.headTimeout = config.headTimeout ?? cluster?.config.headTimeout ?? Infinity
    this.ownHeadTimeout = this.headTimeout === cluster?.headTimeout ? Infinity : this.headTimeout
    const bodyTimeout = config.bodyTimeout ?? cluster?.config.bodyTimeout ?? Infinity
    this.ownBodyTimeout = bodyTimeout === cluster?.bodyTimeout ? Infinity : bodyTimeout
  }
}
