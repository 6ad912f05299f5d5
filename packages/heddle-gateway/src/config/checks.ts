import { inWords, nearest, type PathStep } from './problem.ts'

/** Something wrong that no single value shows. */
export interface CrossProblem {
  readonly path: readonly PathStep[]
  readonly message: string
}

/**
 * What the schema cannot see: names used twice, routes to clusters that do not exist, two sockets
 * on one address, values that exclude each other. Works on the raw document, so that it finds these in a file that has other
 * mistakes as well, and says nothing about values of the wrong type: the schema does.
 */
export function crossProblems(document: unknown): CrossProblem[] {
  const problems: CrossProblem[] = []
  for (const key of ['listeners', 'routes', 'clusters']) duplicateNames(document, key, problems)
  unknownClusters(document, problems)
  sharedAddresses(document, problems)
  contradictions(document, problems)
  return problems
}

function duplicateNames(document: unknown, key: string, problems: CrossProblem[]): void {
  const first = new Map<string, number>()
  items(document, key).forEach((item, index) => {
    const name = field(item, 'name')
    if (typeof name !== 'string') return
    const earlier = first.get(name)
    if (earlier === undefined) first.set(name, index)
    else problems.push({ path: [key, index, 'name'], message: `${inWords(name)} is already the name of ${key}[${earlier}]` })
  })
}

function unknownClusters(document: unknown, problems: CrossProblem[]): void {
  const names = items(document, 'clusters')
    .map((cluster) => field(cluster, 'name'))
    .filter((name) => typeof name === 'string')
  // Without a list of clusters every route would be wrong, and the missing list is reported anyway.
  if (names.length === 0) return
  items(document, 'routes').forEach((route, index) => {
    const cluster = field(route, 'cluster')
    if (typeof cluster !== 'string' || names.includes(cluster)) return
    const guess = nearest(cluster, names)
    const advice = guess === undefined ? `the clusters are ${names.join(', ')}` : `did you mean ${inWords(guess)}?`
    problems.push({ path: ['routes', index, 'cluster'], message: `no cluster has the name ${inWords(cluster)}; ${advice}` })
  })
}

function sharedAddresses(document: unknown, problems: CrossProblem[]): void {
  const taken: { host: string; port: number; transport: Transport; where: string }[] = []
  const take = (place: unknown, defaultHost: string, path: readonly PathStep[], where: string): void => {
    const transports = transportsOf(field(place, 'protocols'))
    const port = field(place, 'port')
    const host = field(place, 'host') ?? defaultHost
    if (typeof port !== 'number' || port === 0 || typeof host !== 'string') return
    const other = taken.find(
      (entry) => entry.port === port && transports.includes(entry.transport) && (entry.host === host || isAny(entry.host) || isAny(host)),
    )
    if (other === undefined) taken.push(...transports.map((transport) => ({ host, port, transport, where })))
    else
      problems.push({
        path: [...path, 'port'],
        message: `${host}:${port} is already taken by ${other.where} (${other.host}:${other.port})`,
      })
  }
  items(document, 'listeners').forEach((listener, index) => take(listener, '0.0.0.0', ['listeners', index], `listeners[${index}]`))
  take(field(document, 'admin'), '127.0.0.1', ['admin'], 'admin')
}

type Transport = 'tcp' | 'udp'

/** What a listener with these protocols listens by. */
function transportsOf(protocols: unknown): readonly Transport[] {
  if (!Array.isArray(protocols) || !protocols.includes('h3')) return ['tcp']
  return protocols.every((name) => name === 'h3') ? ['udp'] : ['tcp', 'udp']
}

function contradictions(document: unknown, problems: CrossProblem[]): void {
  items(document, 'routes').forEach((route, index) => {
    const match = field(route, 'match')
    if (field(match, 'grpcService') !== undefined && field(match, 'pathPrefix') !== undefined)
      problems.push({ path: ['routes', index, 'match', 'pathPrefix'], message: 'excluded by grpcService, which is a path as well' })
  })
  items(document, 'listeners').forEach((listener, index) => {
    const at = items(listener, 'protocols').indexOf('h3')
    const path = ['listeners', index]
    if (at >= 0 && field(listener, 'tls') === undefined)
      problems.push({ path: [...path, 'protocols', at], message: 'h3 needs tls: there is no HTTP/3 on plain text' })
    const altSvc = field(listener, 'altSvc')
    if (at < 0 && (altSvc === true || typeof altSvc === 'number'))
      problems.push({ path: [...path, 'altSvc'], message: 'tells of HTTP/3, and h3 is not among the protocols' })
  })
  items(document, 'clusters').forEach((cluster, index) => {
    const protocol = field(cluster, 'protocol')
    const secure = field(cluster, 'tls') !== undefined
    const path = ['clusters', index, 'protocol']
    if (protocol === 'h2' && !secure)
      problems.push({ path, message: 'h2 needs tls ({} for the usual authorities); HTTP/2 on plain text is h2c' })
    if (protocol === 'h3' && !secure) problems.push({ path, message: 'h3 needs tls ({} for the usual authorities)' })
    if (protocol === 'h2c' && secure) problems.push({ path, message: 'h2c is on plain text; with tls it is h2' })
  })
}

/** Listening on all addresses excludes the same port on any one of them. */
function isAny(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

function items(document: unknown, key: string): readonly unknown[] {
  const value = field(document, key)
  return Array.isArray(value) ? value : []
}

function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined
}
