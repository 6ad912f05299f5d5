import {
  PeerError,
  type ConnectionHandler,
  type ConnectionInfo,
  type HttpConnection,
  type Instant,
  type StreamEngine,
} from '../http/index.ts'
import { StreamDriver, type DriverOptions } from '../io/index.ts'
import { EngineLoop, type EngineLoopOptions, type EngineSink } from './engine-loop.ts'
import type { LinkSocket } from './link-socket.ts'
import type { LinkOptions } from './link.ts'
import { connectionInfo } from './network.ts'
import { RecordingConnection } from './recording.ts'
import type { World } from './world.ts'

/** An engine that is a connection: what every protocol folder exports, for client and server. */
export type ConnectionEngine = StreamEngine & HttpConnection

/** Makes one side's engine. */
export type EngineFactory<E extends ConnectionEngine = ConnectionEngine> = (
  info: ConnectionInfo,
  handler: ConnectionHandler,
  now: Instant,
) => E

/** Which engines {@link pair} and {@link enginePair} put together. */
export interface PairOptions<C extends ConnectionEngine, S extends ConnectionEngine> {
  /** Makes the client's engine. */
  readonly client: EngineFactory<C>
  /** Makes the server's engine. */
  readonly server: EngineFactory<S>
  /** Told of the client's connection. Default: a recording. */
  readonly clientHandler?: ConnectionHandler
  /** Told of the server's connection and its exchanges. Default: a recording. */
  readonly serverHandler?: ConnectionHandler
}

/** Two engines that talk to each other. */
export interface Pair<C extends ConnectionEngine, S extends ConnectionEngine> {
  readonly client: C
  readonly server: S
  /** Lost for both, as by a broken cable: `reset` tells both ends, `silence` tells nobody. */
  lose(loss: 'reset' | 'silence'): void
  /** Breaches of the contract between driver and engine. */
  readonly faults: string[]
}

/** Two engines on the production driver, and the link between them (see {@link pair}). */
export interface LinkedPair<C extends ConnectionEngine, S extends ConnectionEngine> extends Pair<C, S> {
  /** The client's end of the link. */
  readonly clientSocket: LinkSocket
  /** The server's end of the link. */
  readonly serverSocket: LinkSocket
  readonly clientDriver: StreamDriver
  readonly serverDriver: StreamDriver
}

/** Runs two engines against each other by the production driver over a link. */
export function pair<C extends ConnectionEngine, S extends ConnectionEngine>(
  world: World,
  options: PairOptions<C, S> & { readonly link?: LinkOptions; readonly driver?: DriverOptions },
): LinkedPair<C, S> {
  const [clientSocket, serverSocket] = world.link(options.link)
  const faults: string[] = []
  const driverOptions: DriverOptions = { ...options.driver, onBug: (error) => faults.push(`the engine threw: ${String(error)}`) }
  const clientDriver = new StreamDriver(clientSocket, world, driverOptions)
  const serverDriver = new StreamDriver(serverSocket, world, driverOptions)
  const client = options.client(connectionInfo('client'), options.clientHandler ?? new RecordingConnection(), world.now())
  const server = options.server(connectionInfo('server'), options.serverHandler ?? new RecordingConnection(), world.now())
  clientDriver.attach(client)
  serverDriver.attach(server)
  const lose = (loss: 'reset' | 'silence'): void => clientSocket.link.lose(loss)
  return { client, server, lose, faults, clientSocket, serverSocket, clientDriver, serverDriver }
}

/** Input of the other side at which an engine of an {@link enginePair} is blocked. */
const mostBetween = 65_536

/** Runs two engines against each other in memory, without drivers, sockets and delay. */
export function enginePair<C extends ConnectionEngine, S extends ConnectionEngine>(
  world: World,
  options: PairOptions<C, S> & EngineLoopOptions,
): Pair<C, S> {
  const client = options.client(connectionInfo('client'), options.clientHandler ?? new RecordingConnection(), world.now())
  const server = options.server(connectionInfo('server'), options.serverHandler ?? new RecordingConnection(), world.now())
  const toServer = new LoopSink()
  const toClient = new LoopSink()
  const clientLoop = new EngineLoop(world, client, toServer, options)
  const serverLoop = new EngineLoop(world, server, toClient, options)
  toServer.connect(clientLoop, serverLoop)
  toClient.connect(serverLoop, clientLoop)
  return {
    client,
    server,
    lose(loss) {
      toServer.silent = true
      toClient.silent = true
      if (loss === 'silence') return
      for (const loop of [clientLoop, serverLoop]) loop.receiveError(new PeerError('PEER_RESET', 'the connection was lost'))
    },
    get faults() {
      return [...clientLoop.faults, ...serverLoop.faults]
    },
  }
}

/** What one loop sends is the other's input. */
class LoopSink implements EngineSink {
  silent = false
  #from: EngineLoop | undefined
  #to: EngineLoop | undefined
  #wasBlocked = false

  connect(from: EngineLoop, to: EngineLoop): void {
    this.#from = from
    this.#to = to
    to.onTaken = () => {
      if (!this.#wasBlocked || this.blocked) return
      this.#wasBlocked = false
      from.flushSoon()
    }
  }

  get blocked(): boolean {
    const blocked = this.silent ? false : (this.#to as EngineLoop).waiting >= mostBetween
    if (blocked) this.#wasBlocked = true
    return blocked
  }

  onBytes(bytes: Buffer): void {
    if (this.silent) return
    const to = this.#to as EngineLoop
    // As a kernel does: bytes for an end that is gone are answered with RST.
    if (to.gone) this.#from?.receiveError(new PeerError('PEER_RESET', 'the peer is gone'))
    else to.receive(bytes)
  }

  onEnd(): void {
    if (!this.silent) this.#to?.receiveEnd()
  }

  onReset(): void {
    if (!this.silent) this.#to?.receiveError(new PeerError('PEER_RESET', 'the peer reset the connection'))
  }
}
