import { isDeepStrictEqual } from 'node:util'
import { covers } from '../routing/router.ts'
import { checkDates } from './files.ts'
import { inWords, type PathStep } from './problem.ts'
import type { Config, MatchConfig } from './types.ts'

/** Something doubtful in a configuration that can be used. */
export interface Doubt {
  readonly path: readonly PathStep[]
  readonly message: string
}

/**
 * What in a valid configuration is hardly meant: routes and certificates that are never used,
 * clusters no route leads to, and certificates that peers refuse at `now` (ms since 1970).
 */
export function warningsOf(config: Config, now: number): Doubt[] {
  return [...hiddenRoutes(config), ...unusedClusters(config), ...unusedCertificates(config), ...badDates(config, now)]
}

function hiddenRoutes({ routes }: Config): Doubt[] {
  return routes.flatMap((route, index) => {
    const first = routes.findIndex((earlier) => takesAllOf(earlier.match, route.match))
    if (first === index) return []
    const message = `is never reached: all that it matches is taken by routes[${first}], ${inWords(routes[first]?.name)}, before it`
    return [{ path: ['routes', index, 'name'], message }]
  })
}

/** Whether every request that `later` matches is matched by `earlier`. A match takes all of itself. */
function takesAllOf(earlier: MatchConfig, later: MatchConfig): boolean {
  const { hosts, pathPrefix, methods, headers, ...others } = earlier
  const { hosts: laterHosts, pathPrefix: laterPrefix, methods: laterMethods, headers: laterHeaders, ...laterOthers } = later
  const prefix = pathPrefix.replace(/\/$/, '')
  return (
    (hosts.length === 0 ||
      (laterHosts.length > 0 && laterHosts.every((host) => hosts.some((pattern) => covers(pattern, host.replace(/^\*/, '')))))) &&
    (laterPrefix === prefix || laterPrefix.startsWith(`${prefix}/`)) &&
    (methods.length === 0 || (laterMethods.length > 0 && laterMethods.every((method) => methods.includes(method)))) &&
    headers.every(({ name, value }) =>
      laterHeaders.some((header) => header.name === name && (value === undefined || header.value === value)),
    ) &&
    // Conditions of other kinds: none, or the same.
    (Object.values(others).every((condition) => condition === undefined) || isDeepStrictEqual(others, laterOthers))
  )
}

function unusedClusters({ routes, clusters }: Config): Doubt[] {
  const used = new Set(routes.map(({ cluster }) => cluster))
  return clusters.flatMap(({ name }, index) =>
    used.has(name) ? [] : [{ path: ['clusters', index, 'name'], message: `no route leads to the cluster ${inWords(name)}` }],
  )
}

/** The first certificate is for names that no other has; one behind it needs a name of its own. */
function unusedCertificates({ listeners }: Config): Doubt[] {
  return listeners.flatMap(({ tls }, listener) =>
    (tls?.certificates ?? []).flatMap(({ names }, index, all) => {
      const taken = new Set(all.slice(0, index).flatMap((earlier) => earlier.names))
      if (index === 0 || names.some((name) => !taken.has(name))) return []
      const why = names.length === 0 ? 'it has no DNS name; give it "names"' : `certificates before it have its names, ${names.join(', ')}`
      return [{ path: ['listeners', listener, 'tls', 'certificates', index, 'cert'], message: `is never shown: ${why}` }]
    }),
  )
}

function badDates({ listeners, clusters }: Config, now: number): Doubt[] {
  const doubts: Doubt[] = []
  const check = (path: readonly PathStep[], file: string | undefined, need: 'every' | 'some'): void => {
    const message = file === undefined ? undefined : checkDates(file, need, now)
    if (message !== undefined) doubts.push({ path, message })
  }
  listeners.forEach(({ tls }, index) => {
    const path = ['listeners', index, 'tls']
    tls?.certificates.forEach(({ cert }, certificate) => check([...path, 'certificates', certificate, 'cert'], cert, 'every'))
    check([...path, 'clientCa'], tls?.clientCa, 'some')
  })
  clusters.forEach(({ tls }, index) => {
    check(['clusters', index, 'tls', 'cert'], tls?.cert, 'every')
    check(['clusters', index, 'tls', 'ca'], tls?.ca, 'some')
  })
  return doubts
}
