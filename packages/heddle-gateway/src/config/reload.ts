import { isDeepStrictEqual } from 'node:util'
import { pathInWords, type PathStep } from './problem.ts'
import type { Config, ListenerConfig } from './types.ts'

/** A configuration that cannot take the place of the one that runs. Nothing was changed. */
export class ReloadError extends Error {
  /** What takes a restart: `listeners[0].port`. */
  readonly paths: readonly string[]

  constructor(paths: readonly string[]) {
    const [first, ...others] = paths
    super(
      others.length === 0
        ? `${first} cannot change while the gateway runs: it takes a restart`
        : `${paths.join(', ')} cannot change while the gateway runs: they take a restart`,
    )
    this.name = 'ReloadError'
    this.paths = paths
  }
}

/**
 * What runs after `next` took the place of `current`: routes and clusters that did not change are the objects
 * they were, so that whoever knows them goes on with what it has. Throws a {@link ReloadError} for what only a
 * restart can change. `extendedConnect`: clients are offered it, since the start.
 */
export function reloaded(current: Config, next: Config, extendedConnect: boolean): Config {
  const paths = restartPaths(current, next)
  if (!extendedConnect) {
    // RFC 8441 §3: connections that are open were not offered it, and new ones would be treated otherwise.
    const index = next.routes.findIndex((route) => route.extendedConnect)
    if (index >= 0) paths.push(pathInWords(['routes', index, 'extendedConnect']))
  }
  if (paths.length > 0) throw new ReloadError(paths)
  return { ...next, routes: kept(current.routes, next.routes), clusters: kept(current.clusters, next.clusters) }
}

/** `next`, with what is the same as before taken from `current`. */
function kept<Part extends { readonly name: string }>(current: readonly Part[], next: readonly Part[]): Part[] {
  return next.map((part) => {
    const known = current.find(({ name }) => name === part.name)
    return known !== undefined && isDeepStrictEqual(known, part) ? known : part
  })
}

function restartPaths(current: Config, next: Config): string[] {
  const paths: string[] = []
  const compare = (path: readonly PathStep[], before: unknown, after: unknown): void => {
    if (!isDeepStrictEqual(before, after)) paths.push(pathInWords(path))
  }
  for (const key of ['workers', 'admin', 'accessLog'] as const) compare([key], current[key], next[key])
  if (current.listeners.length !== next.listeners.length) return [...paths, 'listeners']
  next.listeners.forEach((listener, index) => {
    const before = current.listeners[index] as ListenerConfig
    for (const key of ['name', 'host', 'port', 'upgrades', 'protocols', 'limits', 'http2', 'http3'] as const)
      compare(['listeners', index, key], before[key], listener[key])
    // Certificates may change, plain text does not become TLS, and whether clients show certificates is theirs to know before.
    compare(['listeners', index, 'tls'], before.tls === undefined, listener.tls === undefined)
    compare(['listeners', index, 'tls', 'clientCa'], before.tls?.clientCa === undefined, listener.tls?.clientCa === undefined)
  })
  return paths
}
