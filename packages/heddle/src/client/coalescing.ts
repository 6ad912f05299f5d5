import { X509Certificate } from 'node:crypto'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
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
  /** Their certificates, once somebody asked. */
  readonly #certificates: WeakMap<PooledConnection, PeerCertificate>

  constructor() {
    this.#hosts = new Set()
    this.#certificates = new WeakMap()
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

  /** False: `reached` would find nothing, whatever the addresses. Certificates are asked last: that takes the longest. */
  mayReach(origin: PooledOrigin): boolean {
    return this.#find(origin, (connection) => isUnsaid(connection, origin), false) !== undefined
  }

  #find(origin: PooledOrigin, isFit: (connection: PooledConnection) => boolean, asksCertificate = true): PooledConnection | undefined {
    if (origin.misdirected || origin.http1Required || !isDirect(origin)) return undefined
    for (const connection of this.#hosts) {
      if (connection.origin === origin || connection.engine.openable === 0 || !isFit(connection)) continue
      if (!asksCertificate || this.#covers(connection, origin.host)) return connection
    }
    return undefined
  }

  /** As a connection of its own would be judged (RFC 9110 §4.3.4). */
  #covers(connection: PooledConnection, host: string): boolean {
    let certificate = this.#certificates.get(connection)
    if (certificate === undefined) {
      const der = connection.info.tls?.peerCertificate
      if (der === undefined) return false
      certificate = new X509Certificate(der).toLegacyObject() as unknown as PeerCertificate
      this.#certificates.set(connection, certificate)
    }
    return checkServerIdentity(host, certificate) === undefined
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
      if (first === undefined || guest.leavesHost()) continue
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

/** RFC 8336 §2.4: `host` said meanwhile that it does not answer for `guest`, which came because of its address. */
export function isDisowned({ engine }: PooledConnection, guest: PooledOrigin): boolean {
  return engine.originSet !== undefined && !engine.originSet.has(guest.key)
}

/** RFC 8336 §2.4: once a server has named origins, it answers for no others. */
function isUnsaid({ engine, origin: { port } }: PooledConnection, origin: PooledOrigin): boolean {
  return engine.originSet === undefined && port === origin.port
}
