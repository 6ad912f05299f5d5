import { NetworkError, TimeoutError, type Address, type ConnectionInfo, type HeddleError, type TlsFacts } from '../http/index.ts'
import {
  Alarm,
  StreamDriver,
  type Accepted,
  type Dialled,
  type DialOptions,
  type DialTarget,
  type Listener,
  type ListenOptions,
  type SocketLike,
} from '../io/index.ts'
import type { LinkSocket } from './link-socket.ts'
import type { LinkOptions } from './link.ts'
import { NetworkListener } from './world-listener.ts'
import type { World } from './world.ts'

/** How a host of a world's network is reached and what it offers. */
export interface HostOptions {
  /** The links of its connections. Default: those of `World.link`. */
  readonly link?: LinkOptions
  /** Speaks TLS, with these ALPN protocols, best first. Nothing is encrypted; facts and delays are as with TLS. */
  readonly tls?: { readonly alpn?: readonly string[] }
}

/** An end of a connection of a world's network, as `dial` and `listen` of `heddle/io` hand them out. */
export interface WorldConnection extends Dialled, Accepted {
  readonly socket: LinkSocket
}

/** Somebody who listens in the {@link Network} of a world. */
export interface WorldListener {
  /** Connections accepted so far. */
  readonly accepted: number
  /** From now on connections are refused; those that stand go on. */
  stop(): void
}

interface Host extends HostOptions {
  accepted: number
  readonly onConnection: ((connection: WorldConnection) => void) | 'black hole'
}

type DialDone = (error: HeddleError | undefined, dialled: WorldConnection | undefined) => void

let nextConnectionId = 1_000_000_000

/**
 * Hosts that can be dialled by name within a world. A name nobody listens on fails to resolve, a
 * port nobody listens on is refused, a black hole never answers.
 */
export class Network {
  readonly #world: World
  readonly #hosts = new Map<string, Host>()
  readonly #names = new Set<string>()
  readonly #addresses = new Map<string, string>()
  #port = 49_152
  /** Shaped as `dial` of `heddle/io`: give it to a client as its dialler. */
  readonly dial: (target: DialTarget, options: DialOptions, done: DialDone) => { cancel(): void }

  /** Shaped as `listen` of `heddle/io`: give it to a server. `hostname` is the name to be dialled, default `localhost`. */
  readonly serve: (options: ListenOptions) => Promise<Listener>

  constructor(world: World) {
    this.#world = world
    this.serve = async (options) => new NetworkListener(this, options)
    this.dial = (target, options, done) => this.#dial(target, options, done)
  }

  /** Accepts connections to `host`:`port`. Each must be attached, or its socket be used or destroyed. */
  listen(host: string, port: number, onConnection: (connection: WorldConnection) => void, options: HostOptions = {}): WorldListener {
    return this.#add(keyOf(host, port), host, { ...options, accepted: 0, onConnection })
  }

  /** A port of `host` that nobody listens on. */
  freePort(host: string): number {
    let port = 1024
    while (this.#hosts.has(keyOf(host, port))) port++
    return port
  }

  /** Accepts connections to the Unix socket `path`. */
  listenPath(path: string, onConnection: (connection: WorldConnection) => void, options: HostOptions = {}): WorldListener {
    return this.#add(path, undefined, { ...options, accepted: 0, onConnection })
  }

  /** `host`:`port` takes what is sent to it and never answers. */
  blackHole(host: string, port: number): WorldListener {
    return this.#add(keyOf(host, port), host, { accepted: 0, onConnection: 'black hole' })
  }

  /** A plain connection to `host`:`port`; `done` as in `dial`. `link` overrides what the host says of its links. */
  connect(host: string, port: number, done: DialDone, link?: LinkOptions): { cancel(): void } {
    return this.#dial({ host, port }, { clock: this.#world }, done, link)
  }

  #add(key: string, name: string | undefined, host: Host): WorldListener {
    if (this.#hosts.has(key)) throw new Error(`${key} is taken`)
    this.#hosts.set(key, host)
    if (name !== undefined) this.#names.add(name)
    return {
      get accepted() {
        return host.accepted
      },
      stop: () => {
        if (this.#hosts.get(key) === host) this.#hosts.delete(key)
      },
    }
  }

  #dial(target: DialTarget, options: DialOptions, done: DialDone, link?: LinkOptions): { cancel(): void } {
    if (options.proxy !== undefined) throw new Error("the world's network dials no proxies; listen as the proxy and dial it yourself")
    const world = this.#world
    const key = 'path' in target ? target.path : keyOf(target.host, target.port)
    const host = this.#hosts.get(key)
    const delay = link?.delay ?? host?.link?.delay ?? 1
    const finish = (error: HeddleError | undefined, connection: WorldConnection | undefined): void => {
      world.clear(timeout)
      arrival.cancel()
      done(error, connection)
    }
    const timeLimit = options.connectTimeout ?? 10_000
    const timeout = new Alarm(() =>
      finish(new TimeoutError('connect', `no connection to ${key} within ${timeLimit} ms`, { unprocessed: true }), undefined),
    )
    world.set(timeout, world.now() + timeLimit)
    // TCP's handshake is one round trip, TLS 1.3 one more.
    const arrival = world.after(delay * (options.tls === undefined ? 2 : 4), () => {
      const now = this.#hosts.get(key)
      if (now?.onConnection === 'black hole') return
      const failure = now === undefined ? this.#missing(target, key) : this.#mismatch(now, options, key)
      if (failure !== undefined) return finish(failure, undefined)
      finish(undefined, this.#join(now as Host, target, options, link))
    })
    return {
      cancel: () => {
        world.clear(timeout)
        arrival.cancel()
      },
    }
  }

  #missing(target: DialTarget, key: string): HeddleError {
    if ('path' in target || this.#names.has(target.host)) {
      return new NetworkError('CONNECT_FAILED', `connect ECONNREFUSED ${key}`, { unprocessed: true })
    }
    return new NetworkError('DNS_FAILED', `getaddrinfo ENOTFOUND ${target.host}`, { unprocessed: true })
  }

  #mismatch(host: Host, options: DialOptions, key: string): HeddleError | undefined {
    if (options.tls === undefined) return undefined
    if (host.tls === undefined) return new NetworkError('TLS_FAILED', `${key} does not speak TLS`, { unprocessed: true })
    const offered = options.tls.alpn ?? ['http/1.1']
    const accepted = host.tls.alpn ?? ['http/1.1']
    if (accepted.some((protocol) => offered.includes(protocol))) return undefined
    return new NetworkError('TLS_FAILED', `${key} speaks none of ${offered.join(', ')}`, { unprocessed: true })
  }

  #join(host: Host, target: DialTarget, options: DialOptions, link: LinkOptions | undefined): WorldConnection {
    const world = this.#world
    const tls = options.tls
    const [here, there] = world.link(tls === undefined ? { ...host.link, ...link } : { writes: 'late', ...host.link, ...link })
    const offered = tls?.alpn ?? ['http/1.1']
    const facts: TlsFacts | undefined =
      tls === undefined
        ? undefined
        : {
            version: 'TLSv1.3',
            cipher: 'TLS_AES_128_GCM_SHA256',
            alpn: (host.tls?.alpn ?? ['http/1.1']).find((protocol) => offered.includes(protocol)),
            serverName: tls.servername ?? ('path' in target ? undefined : target.host),
            authorized: true,
            peerCertificate: undefined,
          }
    const local = 'path' in target ? unixAddress('') : this.#address('client', this.#port++)
    const remote = 'path' in target ? unixAddress(target.path) : this.#address(target.host, target.port)
    const dialled = connection(world, here, { id: nextConnectionId++, local, remote, tls: facts })
    const accepted = connection(world, there, { id: nextConnectionId++, local: remote, remote: local, tls: facts })
    host.accepted++
    // A client that speaks plainly to a TLS port gets nothing but the end of the connection.
    if (host.tls !== undefined && tls === undefined) there.resetAndDestroy()
    else if (host.onConnection !== 'black hole') host.onConnection(accepted)
    return dialled
  }

  #address(host: string, port: number): Address {
    let address = this.#addresses.get(host)
    if (address === undefined) {
      address = `192.0.2.${this.#addresses.size + 1}`
      this.#addresses.set(host, address)
    }
    return { address, port, family: 'IPv4' }
  }
}

/** `socket` with the facts and the driver a real connection would have. */
export function connection<S extends SocketLike>(
  world: World,
  socket: S,
  info: ConnectionInfo,
): Dialled & Accepted & { readonly socket: S } {
  return {
    socket,
    info,
    alpn: info.tls?.alpn,
    attach(engine, options) {
      const driver = new StreamDriver(socket, world, options)
      driver.attach(engine)
      return driver
    },
  }
}

/** Facts for a connection that has none of its own. */
export function connectionInfo(role: 'client' | 'server'): ConnectionInfo {
  const client: Address = { address: '192.0.2.1', port: 49_152, family: 'IPv4' }
  const server: Address = { address: '192.0.2.2', port: 80, family: 'IPv4' }
  return {
    id: nextConnectionId++,
    local: role === 'client' ? client : server,
    remote: role === 'client' ? server : client,
    tls: undefined,
  }
}

function unixAddress(path: string): Address {
  return { address: path, port: 0, family: 'unix' }
}

function keyOf(host: string, port: number): string {
  return `${host}:${port}`
}
