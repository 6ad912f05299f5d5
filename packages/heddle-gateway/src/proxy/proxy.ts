import { CancelReason, type Exchange, type ExchangeHandler, type Head } from 'heddle/http'
import type { Clock } from 'heddle/io'
import type { Config, ListenerConfig, RouteConfig } from '../config/types.ts'
import type { ProxyObserver } from '../record.ts'
import type { Cluster } from '../upstream/index.ts'

/** What the proxy needs of the router. */
export interface RequestRouter {
  /** The first route that matches, or undefined. */
  match(head: Head): RouteConfig | undefined
}

/** The parts a reload replaces together. */
export interface ProxyParts {
  readonly config: Config
  readonly router: RequestRouter
  /** By name; every cluster that a route names. */
  readonly clusters: ReadonlyMap<string, Cluster>
}

export interface ProxyOptions extends ProxyParts {
  readonly observer: ProxyObserver
  readonly clock: Clock
  /** A tunnel in which no byte moves for so long is cut, ms. Default 1 hour. */
  readonly tunnelIdleTimeout?: number
}

/** Forwards requests of all listeners by the routes. */
export class Proxy {
  constructor(_options: ProxyOptions) {}

  /** Requests under way, tunnels included. */
  get active(): number {
    return 0
  }

  /** Open tunnels. */
  get tunnels(): number {
    return 0
  }

  /** New requests follow `parts`; those under way go on with what they began with. */
  replace(_parts: ProxyParts): void {}

  /** The raw handler to give to `serve` for `listener`. */
  onExchange(_listener: ListenerConfig, exchange: Exchange): ExchangeHandler {
    exchange.cancel(CancelReason.Refused)
    return exchange.handler
  }
}
