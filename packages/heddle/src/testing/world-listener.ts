import type { Address } from '../http/index.ts'
import type { Listener, ListenerCounters, ListenOptions } from '../io/index.ts'
import type { LinkSocket } from './link-socket.ts'
import type { HostOptions, Network, WorldConnection, WorldListener } from './network.ts'

/** What `listen` of `heddle/io` gives, in a world: names in place of addresses, TLS in name only. */
export class NetworkListener implements Listener {
  readonly address: Address
  readonly counters: ListenerCounters
  readonly handshakes: number
  readonly #options: ListenOptions
  readonly #listener: WorldListener
  readonly #sockets: Set<LinkSocket>

  /** `port` 0 becomes one that is free. */
  constructor(network: Network, options: ListenOptions) {
    this.counters = { accepted: 0, refused: 0, handshakesRefused: 0, handshakesFailed: 0, acceptErrors: 0 }
    this.handshakes = 0
    this.#options = options
    this.#sockets = new Set()
    const accept = (connection: WorldConnection): void => this.#accept(connection)
    const host: HostOptions = options.tls === undefined ? {} : { tls: { alpn: options.tls.alpn ?? ['http/1.1'] } }
    if (options.path !== undefined) {
      this.address = { address: options.path, port: 0, family: 'unix' }
      this.#listener = network.listenPath(options.path, accept, host)
    } else {
      const name = options.hostname ?? 'localhost'
      const port = options.port === undefined || options.port === 0 ? network.freePort(name) : options.port
      this.address = { address: name, port, family: 'IPv4' }
      this.#listener = network.listen(name, port, accept, host)
    }
  }

  get connections(): number {
    return this.#sockets.size
  }

  /** Identities mean nothing in a world. */
  updateTls(): void {}

  stop(): Promise<void> {
    this.#listener.stop()
    return Promise.resolve()
  }

  destroyConnections(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #accept(connection: WorldConnection): void {
    const { socket } = connection
    const { maxConnections = Infinity, onConnection, onError } = this.#options
    if (this.#sockets.size >= maxConnections) {
      this.counters.refused++
      socket.resetAndDestroy()
      return
    }
    this.counters.accepted++
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    try {
      onConnection(connection)
    } catch (error) {
      socket.destroy()
      onError?.(error)
    }
  }
}
