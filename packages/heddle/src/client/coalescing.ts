import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { PooledConnection } from './connection.ts'
import type { PooledOrigin } from './origin.ts'
import type { ClientTicket } from './ticket.ts'

/**
 * HTTP/2 connections that serve other origins besides their own (RFC 9113 §9.1.1), by the option
 * `coalesce`. An origin without a connection becomes the guest of another one's if the certificate there,
 * which was verified, is good for its host too, and either the server says that it answers for that origin
 * (ORIGIN frame, RFC 8336), or it says nothing of the kind and the origin's name leads to the same address.
 */
export class Coalescing {
  /** Connections that may have guests. */
  readonly #hosts: Set<PooledConnection>
  /** What their certificates were found to be good for, by host. */
  readonly #verdicts: WeakMap<PooledConnection, Map<string, boolean>>

  constructor() {
    this.#hosts = new Set()
    this.#verdicts = new WeakMap()
  }

  add(connection: PooledConnection): void {
    const { protocol, info, origin } = connection
    if (protocol === 'h2' && info.tls?.authorized === true && isDirect(origin)) this.#hosts.add(connection)
  }

  remove(connection: PooledConnection): void {
    this.#hosts.delete(connection)
  }

  /** A connection whose server says that it answers for `origin`. */
  named(origin: PooledOrigin): PooledConnection | undefined {
    return this.#find(origin, ({ engine }) => engine.originSet?.has(origin.key) === true)
  }

  /** A connection to one of `addresses`, to which the name of `origin` leads. */
  reached(origin: PooledOrigin, addresses: readonly string[]): PooledConnection | undefined {
    return this.#find(origin, (connection) => isUnsaid(connection, origin) && addresses.includes(connection.info.remote.address))
  }

  /** False: `reached` would find nothing, whatever the addresses. */
  mayReach(origin: PooledOrigin): boolean {
    return this.#find(origin, (connection) => isUnsaid(connection, origin)) !== undefined
  }

  #find(origin: PooledOrigin, isFit: (connection: PooledConnection) => boolean): PooledConnection | undefined {
    if (origin.misdirected || origin.http1Required || !isDirect(origin)) return undefined
    for (const connection of this.#hosts) {
      if (connection.origin !== origin && connection.engine.openable > 0 && isFit(connection) && this.#covers(connection, origin.host)) {
        return connection
      }
    }
    return undefined
  }

  #covers(connection: PooledConnection, host: string): boolean {
    let verdicts = this.#verdicts.get(connection)
    if (verdicts === undefined) {
      verdicts = new Map()
      this.#verdicts.set(connection, verdicts)
    }
    let verdict = verdicts.get(host)
    if (verdict === undefined) {
      verdict = isCovered(connection.info.tls?.peerCertificate, host)
      verdicts.set(host, verdict)
    }
    return verdict
  }
}

/** The other origins whose requests one connection takes, those of its own origin first. */
export class Guests {
  readonly #all: Set<PooledOrigin>
  /** Those with requests that wait, perhaps; whose turn it is first. */
  readonly #waiting: Set<PooledOrigin>

  constructor() {
    this.#all = new Set()
    this.#waiting = new Set()
  }

  add(guest: PooledOrigin): void {
    this.#all.add(guest)
    if (guest.waiting.length > 0) this.#waiting.add(guest)
  }

  /** `guest` has a request that waits. */
  wait(guest: PooledOrigin): void {
    this.#waiting.add(guest)
  }

  /** A request that waits; guests take turns. */
  next(): ClientTicket | undefined {
    for (const guest of this.#waiting) {
      const { first } = guest.waiting
      this.#waiting.delete(guest)
      if (first === undefined) continue
      this.#waiting.add(guest)
      return first
    }
    return undefined
  }

  /** `guest` has its requests served elsewhere from now on. */
  dismiss(guest: PooledOrigin): void {
    this.#all.delete(guest)
    this.#waiting.delete(guest)
    guest.lostHost()
  }

  dismissAll(): void {
    for (const guest of this.#all) this.dismiss(guest)
  }
}

/** TLS with the origin itself, at the address its own name leads to. */
function isDirect({ scheme, route }: PooledOrigin): boolean {
  return scheme === 'https' && route.protocols.includes('h2') && route.options.proxy === undefined && !('path' in route.target)
}

/** RFC 8336 §2.4: once a server has named origins, it answers for no others. */
function isUnsaid({ engine, origin: { port } }: PooledConnection, origin: PooledOrigin): boolean {
  return engine.originSet === undefined && port === origin.port
}

/** RFC 9110 §4.3.4 */
function isCovered(der: Uint8Array | undefined, host: string): boolean {
  if (der === undefined) return false
  const certificate = new X509Certificate(der)
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined
}
