import { checkOptionNames, HeddleError, type Address, type OptionNames } from '../http/index.ts'
import { Alarm, systemClock, type Clock, type Listener, type QuicListener, type TlsServerOptions } from '../io/index.ts'
import type { Connections } from './connections.ts'
import type { Tunnels } from './fetch-tunnel.ts'
import type { CloseOptions, ServerStats } from './options.ts'
import { statsOf } from './stats.ts'

const closeDeadline = 10_000
const closeOptionNames: OptionNames<CloseOptions> = { deadline: true }
/** ms between two looks at the connections that are left. */
const lookEvery = 10

const closed = new HeddleError('SHUTDOWN', 'the server is closed')

/** A server that listens, made by `serve`. `await using` closes it gracefully at the end of the block. */
export class Server implements AsyncDisposable {
  readonly #clock: Clock
  readonly #listener: Listener | undefined
  readonly #quic: QuicListener | undefined
  readonly #connections: Connections
  readonly #secure: boolean
  readonly #tunnels: Tunnels | undefined
  readonly #alarm: Alarm
  readonly #look: Alarm
  #closing: PromiseWithResolvers<void> | undefined
  /** Keeps the process running while it closes. */
  #hold: NodeJS.Timeout | undefined

  /** At least one of `listener` and `quic` is given. */
  constructor(
    clock: Clock,
    listener: Listener | undefined,
    quic: QuicListener | undefined,
    connections: Connections,
    secure: boolean,
    tunnels: Tunnels | undefined,
  ) {
    this.#clock = clock
    this.#listener = listener
    this.#quic = quic
    this.#connections = connections
    this.#secure = secure
    this.#tunnels = tunnels
    this.#alarm = new Alarm(() => this.#cut())
    this.#look = new Alarm(() => this.#watch())
    this.#closing = undefined
    this.#hold = undefined
  }

  /** Where it listens: address and port, or the path of a Unix socket with port 0. */
  get address(): Address {
    return (this.#listener ?? (this.#quic as QuicListener)).address
  }

  /** The port; 0 for a Unix socket. */
  get port(): number {
    return this.address.port
  }

  /** The address, or the path of the Unix socket. */
  get hostname(): string {
    return this.address.address
  }

  /** `http://host:port` without a slash at the end, `localhost` when it listens on all addresses; `unix:PATH`. */
  get url(): string {
    const { address, port, family } = this.address
    if (family === 'unix') return `unix:${address}`
    const host = address === '::' || address === '0.0.0.0' ? 'localhost' : family === 'IPv6' ? `[${address}]` : address
    return `${this.#secure ? 'https' : 'http'}://${host}:${port}`
  }

  /** Counts of now and since the start. O(connections). */
  stats(): ServerStats {
    return statsOf(this.#listener, this.#quic, this.#connections)
  }

  /**
   * Changes TLS for connections to come; those that stand go on with theirs. What is given replaces what
   * was given before (`names` as a whole), what is not given stays: a renewed `cert` and `key` leave `ca`
   * and `names` as they are. Throws UsageError for what cannot be used, and changes nothing then.
   */
  updateTls(tls: TlsServerOptions): void {
    // Both check the same, QUIC something more: what it takes is taken by the other, too.
    this.#quic?.updateTls(tls)
    this.#listener?.updateTls(tls)
  }

  /** Closes the connections that have no open exchange, and goes on listening. HTTP/2 clients are told by GOAWAY. */
  closeIdleConnections(): void {
    // Outside of the run of an engine, from inside which a handler may have called.
    this.#clock.soon(() => this.#connections.shutdownIdle())
  }

  /** Cuts every connection, with the exchanges that are open, and goes on listening. */
  closeAllConnections(): void {
    this.#clock.soon(() => this.#connections.abort(new HeddleError('SHUTDOWN', 'the server cuts its connections')))
  }

  /** Lets the process live as long as it listens (the default). */
  ref(): this {
    this.#listener?.ref?.()
    this.#quic?.ref()
    return this
  }

  /** Lets the process end though it listens. Connections that stand keep it alive. */
  unref(): this {
    this.#listener?.unref?.()
    this.#quic?.unref()
    return this
  }

  /**
   * Stops gracefully: accepts no more, closes idle connections, lets running exchanges end (HTTP/1.1
   * answers with `Connection: close`, HTTP/2 clients are told twice by GOAWAY, so that no request on its
   * way is lost; WebSockets are closed with 1001), and cuts what is left at the deadline. Resolves when no connection is left.
   * A second call may bring the deadline forward.
   */
  close(options: CloseOptions = {}): Promise<void> {
    checkOptionNames('close', '', options, closeOptionNames)
    const deadline = this.#clock.now() + (options.deadline ?? closeDeadline)
    if (this.#closing !== undefined) {
      if (this.#alarm.list !== undefined && deadline < this.#alarm.deadline) this.#clock.set(this.#alarm, deadline)
      return this.#closing.promise
    }
    const closing = (this.#closing = Promise.withResolvers<void>())
    this.#clock.set(this.#alarm, deadline)
    // The last connection may go between two looks, and alarms alone keep no process running.
    if (this.#clock === systemClock()) this.#hold = setInterval(() => {}, closeDeadline)
    this.#quic?.stop()
    const stopped = this.#listener?.stop() ?? Promise.resolve()
    // A handler may have called, inside the run of an engine, where engines must not be told.
    this.#clock.soon(() => {
      this.#tunnels?.shutdown()
      this.#connections.shutdown()
      stopped.then(
        () => this.#watch(),
        (error: unknown) => {
          clearInterval(this.#hold)
          closing.reject(error)
        },
      )
    })
    return closing.promise
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Looks now and then whether the last connection is gone: engines know nothing of handshakes and last bytes. */
  #watch(): void {
    if ((this.#listener?.connections ?? 0) > 0 || (this.#quic?.handshakes ?? 0) > 0 || this.#connections.list.length > 0) {
      this.#clock.set(this.#look, this.#clock.now() + lookEvery)
      return
    }
    this.#clock.clear(this.#alarm)
    clearInterval(this.#hold)
    const quic = this.#quic
    if (quic === undefined) this.#closing?.resolve()
    // Its last words leave before the port closes.
    else
      this.#clock.soon(
        () =>
          void quic.close(closed).then(
            () => this.#closing?.resolve(),
            (error: unknown) => this.#closing?.reject(error),
          ),
      )
  }

  /** The deadline of `close` has come. */
  #cut(): void {
    this.#connections.abort(new HeddleError('SHUTDOWN', 'the server is closing'))
    this.#quic?.refuseHandshakes()
    // The engines' last words leave first.
    this.#clock.soon(() => this.#clock.soon(() => this.#listener?.destroyConnections()))
  }
}
