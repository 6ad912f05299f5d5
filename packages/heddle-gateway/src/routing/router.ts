import { fieldValue, type Fields, type Head } from 'heddle/http'
import type { MatchConfig, RouteConfig } from '../config/types.ts'
import { isGrpcType } from '../grpc-type.ts'
import { isPlainPath, readPath } from './path.ts'

/** Why there is no route for a request; also the word in `heddle-reason`. Answered with 404 and 400. */
export type RouteRefusal = 'no_route' | 'unsafe_path'

/**
 * The routing table: the first route in the file's order whose conditions all hold.
 *
 * Routes are sorted by host once; a request then looks at the routes its host can reach, in order.
 * Nothing is allocated for a request with a plain path.
 */
export class Router {
  readonly #hosts: HostIndex

  constructor(routes: readonly RouteConfig[]) {
    this.#hosts = new HostIndex(routes.map((route) => new Entry(route)))
  }

  /**
   * The route of a request, or why it has none. A tunnel by Upgrade matches as the GET it was sent
   * as. `unsafe_path`: the path has dot segments, or reads as different routes depending on how
   * an upstream treats `%2F`, `\` and `//` (see {@link readPath}).
   */
  match(head: Head): RouteConfig | RouteRefusal {
    const entries = this.#hosts.find(head.authority)
    const { path } = head
    if (isPlainPath(path)) return firstMatch(entries, head, path)
    const readings = readPath(path)
    if (readings === undefined) return 'unsafe_path'
    const route = firstMatch(entries, head, readings.strict)
    return firstMatch(entries, head, readings.loose) === route ? route : 'unsafe_path'
  }
}

function firstMatch(entries: readonly Entry[], head: Head, path: string): RouteConfig | RouteRefusal {
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as Entry
    if (entry.matches(head, path)) return entry.route
  }
  return 'no_route'
}

/** One route, its conditions made ready. */
class Entry {
  readonly route: RouteConfig
  readonly hosts: readonly string[]
  /** Without a slash at the end; empty for `/`. */
  readonly prefix: string
  /** Calls of gRPC only, of the service that is `prefix`. */
  readonly grpc: boolean
  readonly methods: readonly string[]
  readonly headers: MatchConfig['headers']

  constructor(route: RouteConfig) {
    this.route = route
    this.hosts = route.match.hosts
    const { grpcService } = route.match
    this.grpc = grpcService !== undefined
    this.prefix = grpcService === undefined ? route.match.pathPrefix.replace(/\/$/, '') : `/${grpcService}`
    this.methods = route.match.methods
    this.headers = route.match.headers
  }

  /** All conditions but the host. */
  matches(head: Head, path: string): boolean {
    if (!this.#matchesPath(path)) return false
    if (this.grpc && (head.method !== 'POST' || !isGrpcType(fieldValue(head.fields, 'content-type') ?? ''))) return false
    if (this.methods.length > 0 && !this.methods.includes(head.protocol === '' ? head.method : 'GET')) return false
    for (let i = 0; i < this.headers.length; i++) {
      const condition = this.headers[i] as MatchConfig['headers'][number]
      if (!hasField(head.fields, condition.name, condition.value)) return false
    }
    return true
  }

  #matchesPath(path: string): boolean {
    const { prefix } = this
    // A plain CONNECT has no path, and OPTIONS * is about the whole server: only `/` has room for the latter.
    if (prefix === '') return path !== ''
    if (!path.startsWith(prefix)) return false
    if (path.length === prefix.length) return true
    const next = path.charCodeAt(prefix.length)
    return next === 0x2f || next === 0x3f
  }
}

function hasField(fields: Fields, name: string, value: string | undefined): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] === name && (value === undefined || fields[i + 1] === value)) return true
  }
  return false
}

/** Host → the routes it can reach. */
class HostIndex {
  /** Bound of {@link seen}: names come from clients, so it must not grow with them. */
  static readonly seenLimit: number = 1_024
  readonly exact: Map<string, Entry[]>
  /** By the part after `*`, which begins with a dot. */
  readonly wildcard: Map<string, Entry[]>
  readonly any: Entry[]
  /** Authorities as they were sent → result, to save the normalisation. */
  readonly seen: Map<string, Entry[]>

  constructor(entries: readonly Entry[]) {
    this.exact = new Map()
    this.wildcard = new Map()
    this.any = entries.filter((entry) => entry.hosts.length === 0)
    this.seen = new Map()
    for (const host of new Set(entries.flatMap((entry) => entry.hosts))) {
      // For a wildcard, `host` stands for any name below it: a pattern covers it if it covers a label there.
      const name = host.startsWith('*.') ? host.slice(1) : host
      const reachable = entries.filter((entry) => entry.hosts.length === 0 || entry.hosts.some((pattern) => covers(pattern, name)))
      const index = host.startsWith('*.') ? this.wildcard : this.exact
      index.set(name, reachable)
    }
  }

  find(authority: string): readonly Entry[] {
    const known = this.seen.get(authority)
    if (known !== undefined) return known
    const found = this.#search(hostOf(authority))
    if (this.seen.size >= HostIndex.seenLimit) this.seen.clear()
    this.seen.set(authority, found)
    return found
  }

  #search(host: string): Entry[] {
    const exact = this.exact.get(host)
    if (exact !== undefined) return exact
    if (this.wildcard.size > 0) {
      // The longest suffix first: its list includes the routes of the shorter ones.
      for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
        const below = dot > 0 ? this.wildcard.get(host.slice(dot)) : undefined
        if (below !== undefined) return below
      }
    }
    return this.any
  }
}

/** Whether `pattern` matches `name`, where a name that begins with a dot stands for all names below it. */
export function covers(pattern: string, name: string): boolean {
  if (!pattern.startsWith('*.')) return pattern === name
  const suffix = pattern.slice(1)
  return name.endsWith(suffix) && (name.length > suffix.length || name.startsWith('.'))
}

/** `Example.org.:8080` → `example.org`. */
export function hostOf(authority: string): string {
  const colon = authority.lastIndexOf(':')
  const bare = colon >= 0 && colon > authority.lastIndexOf(']') ? authority.slice(0, colon) : authority
  const host = bare.toLowerCase()
  return host.endsWith('.') ? host.slice(0, -1) : host
}
