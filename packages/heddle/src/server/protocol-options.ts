import { serverLimits, type Http1Limits, type Http1Options } from '../h1/index.ts'
import { checkedLimits, serverLimits as http2Limits, type Http2Limits, type Http2Options } from '../h2/index.ts'
import { checkLimits, UsageError } from '../http/index.ts'
import type { ServedProtocol, ServeOptions } from './options.ts'
import { websocketAccept } from './websocket-accept.ts'

const allProtocols: readonly ServedProtocol[] = ['h2', 'http/1.1']

/** The protocols to serve, best first. Throws UsageError for none, and for a name that is no protocol here. */
export function servedProtocols({ protocols = allProtocols }: ServeOptions): readonly ServedProtocol[] {
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- callers without types
  if (!Array.isArray(protocols) || protocols.length === 0 || !protocols.every((name) => allProtocols.includes(name as ServedProtocol))) {
    throw new UsageError("serve: protocols must be a list of 'h2' and 'http/1.1', or of one of them")
  }
  return protocols
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

/** What HTTP/2 connections are made with. Throws UsageError for limits that are none. */
export function http2Options(options: ServeOptions, clock: { httpDate(): string }): Http2Options {
  const own = options.http2 === undefined ? {} : checkedLimits('serve', options.http2)
  return {
    date: clock,
    limits: { ...sharedLimits(options.limits), ...own },
    extendedConnect: extendedProtocols(options).length > 0,
  }
}

/** Of `limits`, those both protocols have: who bounds a body or a wait means every request. */
function sharedLimits(limits: Partial<Http1Limits> = {}): Partial<Http2Limits> {
  const shared: Record<string, number> = {}
  for (const [name, value] of Object.entries(limits)) if (name in http2Limits) shared[name] = value
  return shared
}
