import type { Clock } from 'heddle/io'
import type { ClientOptions } from 'heddle/client'
import type { ClusterConfig } from '../config/types.ts'
import type { Endpoint, EndpointStats } from './endpoint.ts'

/** What tests replace; production gives none of it. */
export interface ClusterOptions {
  /** Laid over the options the cluster makes for its client. */
  readonly client?: Partial<ClientOptions>
  /** In [0, 1): chooses endpoints. Default Math.random. */
  readonly random?: () => number
}

/** How a cluster is doing. */
export interface ClusterStats {
  readonly name: string
  readonly endpoints: readonly EndpointStats[]
  /** Requests under way or waiting. */
  readonly active: number
  /** Requests waiting for a connection. */
  readonly waiting: number
  /** Open upstream connections. */
  readonly connections: number
}

/** A group of endpoints that answer the same requests. */
export class Cluster {
  readonly name: string
  readonly config: ClusterConfig

  constructor(config: ClusterConfig, _clock: Clock, _options: ClusterOptions = {}) {
    this.name = config.name
    this.config = config
  }

  /** The better of two endpoints drawn at random, or undefined if the cluster has none. `exclude` is avoided where there is another. */
  pick(_exclude?: Endpoint): Endpoint | undefined {
    return undefined
  }

  stats(): ClusterStats {
    return { name: this.name, endpoints: [], active: 0, waiting: 0, connections: 0 }
  }

  /** Lets the requests under way finish, then closes every connection. */
  close(): Promise<void> {
    return Promise.resolve()
  }

  /** Cuts what is under way. */
  destroy(): void {}
}
