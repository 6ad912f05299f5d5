import { createServer, type Server, type Socket } from 'node:net'
import { checkOptionNames, UsageError, type Address, type ConnectionInfo, type OptionNames, type StreamEngine } from '../http/index.ts'
import { ipEnd, unixEnd } from './addresses.ts'
import type { Clock } from './clock.ts'
import { alpnOf, connectionFacts } from './connection-facts.ts'
import { shareReads } from './shared-reads.ts'
import type { SocketLike } from './socket.ts'
import { StreamDriver, type DriverOptions } from './tcp-driver.ts'
import { TlsAcceptor, type TlsOwner, type TlsServerOptions } from './tls-server.ts'

/** Where and how {@link listen} listens. */
export interface ListenOptions {
  /** Where time comes from. */
  readonly clock: Clock
  /** Default: all addresses. */
  readonly hostname?: string | undefined
  /** Default 0: any free one. */
  readonly port?: number | undefined
  /** Path of a Unix socket instead of hostname and port. */
  readonly path?: string | undefined
  /** Connections the kernel holds until they are accepted. Default 511. */
  readonly backlog?: number | undefined
  /** Connections held at once; more are dropped. Default: no limit. */
  readonly maxConnections?: number | undefined
  /** Connections that count toward `maxConnections` besides, such as those of UDP. */
  readonly heldElsewhere?: (() => number) | undefined
  /** Connections are TLS, with this identity and others by name. Default: plain text. */
  readonly tls?: TlsServerOptions | undefined
  /** ms until the TLS handshake must be done. Default 10000. */
  readonly handshakeTimeout?: number | undefined
  /** TLS handshakes in flight. For more the oldest makes room if it has taken 1 s, else they are dropped. Default 1000. */
  readonly maxHandshakes?: number | undefined
  /** Several processes share the port by SO_REUSEPORT (Node ≥ 23.1; ignored before). Default false. */
  readonly reusePort?: boolean | undefined
  /** As in `net.Server.listen`: workers of node:cluster do not share it. Default false. */
  readonly exclusive?: boolean | undefined
  /** Connections read into one buffer of the thread where this Node can do so. Default true; false: by 'data'. */
  readonly sharedReads?: boolean | undefined
  /** A connection stands, TLS included. It must be attached, or its socket destroyed. A throw destroys that connection. */
  onConnection(accepted: Accepted): void
  /** A handshake, a callback or accept itself failed; counted besides. It concerns no connection that was handed over. */
  readonly onError?: ((error: unknown) => void) | undefined
}

/** A connection a listener hands over. */
export interface Accepted {
  readonly socket: SocketLike
  readonly info: ConnectionInfo
  /** What TLS agreed on, or undefined. */
  readonly alpn: string | undefined
  /**
   * With client certificates: false if those for `host`, in lower case and without a port, are checked
   * against other authorities than the one of this connection was. Absent: no certificate was asked for.
   */
  readonly covers?: ((host: string) => boolean) | undefined
  /** Puts `engine` on it and starts reading. */
  attach(engine: StreamEngine, options?: DriverOptions): StreamDriver
}

/** What a {@link Listener} has counted since it began. */
export interface ListenerCounters {
  /** Connections accepted, those that TLS refused later included. */
  accepted: number
  /** Dropped because of `maxConnections`. */
  refused: number
  /** Dropped because of `maxHandshakes`. */
  handshakesRefused: number
  /** Handshakes that failed, were broken off or took too long. */
  handshakesFailed: number
  /** Failures of accept itself. */
  acceptErrors: number
}

/** A socket that listens. */
export interface Listener {
  readonly address: Address
  /** Connections that stand or shake hands now. */
  readonly connections: number
  /** TLS handshakes in flight. */
  readonly handshakes: number
  readonly counters: ListenerCounters
  /**
   * For handshakes to come, what is given replaces identity, authorities, names and callbacks, and what
   * is not given stays; connections that stand are left alone. Throws UsageError for what cannot be
   * used, and changes nothing then.
   */
  updateTls(tls: TlsServerOptions): void
  /** Accepts no more; what stands goes on. Resolves when the port is free. */
  stop(): Promise<void>
  /** Drops every connection that stands or shakes hands. */
  destroyConnections(): void
  /** The process stays alive while it listens: the default. Absent where there is no process to hold. */
  ref?(): void
  /** The process may end though it listens. */
  unref?(): void
}

const optionNames: OptionNames<ListenOptions> = {
  clock: true,
  hostname: true,
  port: true,
  path: true,
  backlog: true,
  maxConnections: true,
  heldElsewhere: true,
  tls: true,
  handshakeTimeout: true,
  maxHandshakes: true,
  reusePort: true,
  exclusive: true,
  sharedReads: true,
  onConnection: true,
  onError: true,
}

/** Starts to listen. Rejects with the system's error (EADDRINUSE, EACCES…), or UsageError for options that cannot be used. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const listener = new SocketListener(options)
  await listener.start()
  return listener
}

/** What a timer of Node can wait at most, ms: a longer time would end at once. */
const longestTimeout = 0x7fff_ffff
/** RFC 1122 §4.2.3.6: probes of an idle connection begin after this many ms. */
const keepAliveDelay = 60_000

class SocketListener implements Listener, TlsOwner {
  readonly counters: ListenerCounters
  readonly #options: ListenOptions
  readonly #server: Server
  readonly #sockets: Set<Socket>
  readonly #tls: TlsAcceptor | undefined
  #address: Address

  constructor(options: ListenOptions) {
    checkOptionNames('listen', '', options, optionNames)
    checkNumber('maxConnections', options.maxConnections, 0)
    checkNumber('maxHandshakes', options.maxHandshakes, 0)
    checkNumber('handshakeTimeout', options.handshakeTimeout, 1)
    this.counters = { accepted: 0, refused: 0, handshakesRefused: 0, handshakesFailed: 0, acceptErrors: 0 }
    this.#options = options
    this.#sockets = new Set()
    this.#address = unixEnd(options.path ?? '')
    const { tls, handshakeTimeout = 10_000, maxConnections } = options
    this.#tls = tls === undefined ? undefined : new TlsAcceptor(tls, Math.min(handshakeTimeout, longestTimeout), this)
    // Half-open: whether a FIN is answered at once is the engine's choice. Within a TLS handshake it is the end.
    this.#server = createServer({ allowHalfOpen: tls === undefined, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveDelay })
    if (maxConnections !== undefined) this.#server.maxConnections = maxConnections
    this.#server.on('connection', (socket) => this.#accept(socket))
    this.#server.on('drop', () => this.counters.refused++)
  }

  get address(): Address {
    return this.#address
  }

  get connections(): number {
    return this.#sockets.size
  }

  get handshakes(): number {
    return this.#tls?.inFlight ?? 0
  }

  start(): Promise<void> {
    const { path, hostname, port = 0, backlog = 511, reusePort = false, exclusive = false } = this.#options
    const server = this.#server
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(path === undefined ? { host: hostname, port, backlog, reusePort, exclusive } : { path, backlog, exclusive }, () => {
        server.off('error', reject)
        // EMFILE and its like: libuv accepts and closes such a connection by itself, so a flood of them does not spin.
        server.on('error', (error) => {
          this.counters.acceptErrors++
          this.#report(error)
        })
        const bound = server.address()
        if (bound !== null && typeof bound === 'object') this.#address = ipEnd(bound.address, bound.port, bound.family)
        resolve()
      })
    })
  }

  updateTls(tls: TlsServerOptions): void {
    if (this.#tls === undefined) throw new UsageError('this listener has no TLS')
    this.#tls.update(tls)
  }

  stop(): Promise<void> {
    // close() also waits for connections; the port is free before.
    this.#server.close()
    return new Promise((resolve) => setImmediate(resolve))
  }

  destroyConnections(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  ref(): void {
    this.#server.ref()
  }

  unref(): void {
    this.#server.unref()
  }

  onSecure(socket: Socket): void {
    this.#handOver(socket)
  }

  onHandshakeFailed(error: unknown): void {
    this.counters.handshakesFailed++
    this.#report(error)
  }

  onCallbackFailed(error: unknown): void {
    this.#report(error)
  }

  #accept(socket: Socket): void {
    const tls = this.#tls
    const { maxConnections = Infinity, heldElsewhere } = this.#options
    if (heldElsewhere !== undefined && this.#sockets.size + heldElsewhere() >= maxConnections) {
      this.counters.refused++
      socket.destroy()
      return
    }
    this.counters.accepted++
    if (tls !== undefined && tls.inFlight >= (this.#options.maxHandshakes ?? 1000) && !tls.dropOldest()) {
      this.counters.handshakesRefused++
      socket.destroy()
      return
    }
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    if (tls === undefined) this.#handOver(socket)
    else tls.accept(socket)
  }

  #handOver(socket: Socket): void {
    try {
      this.#options.onConnection(new AcceptedSocket(socket, this.#options, this.#tls))
    } catch (error) {
      socket.on('error', () => {})
      socket.destroy()
      this.#report(error)
    }
  }

  #report(error: unknown): void {
    try {
      this.#options.onError?.(error)
    } catch (second) {
      process.emitWarning(`onError failed: ${String(second)}`, 'HeddleWarning')
    }
  }
}

/** Throws UsageError for an option that is no number of at least `least`. */
export function checkNumber(name: string, value: number | undefined, least: number): void {
  if (value === undefined || (typeof value === 'number' && value >= least)) return
  throw new UsageError(`${name} must be a number, ${least} or more`)
}

class AcceptedSocket implements Accepted {
  readonly socket: SocketLike
  readonly info: ConnectionInfo
  readonly alpn: string | undefined
  readonly covers: ((host: string) => boolean) | undefined
  readonly #nodeSocket: Socket
  readonly #clock: Clock
  readonly #sharedReads: boolean

  constructor(socket: Socket, { path, clock, sharedReads = true }: ListenOptions, tls: TlsAcceptor | undefined) {
    this.socket = socket
    this.#nodeSocket = socket
    this.#sharedReads = sharedReads
    this.info = connectionFacts(socket, path, true)
    this.alpn = alpnOf(socket)
    this.covers = tls?.verifies === true ? (host) => tls.covers(this.info.tls?.serverName, host) : undefined
    this.#clock = clock
  }

  attach(engine: StreamEngine, options?: DriverOptions): StreamDriver {
    const pushed = this.#sharedReads && shareReads(this.#nodeSocket, (byteCount, buffer) => driver.onRead(byteCount, buffer))
    const driver = new StreamDriver(this.socket, this.#clock, pushed ? { ...options, pushed } : options)
    driver.attach(engine)
    return driver
  }
}
