import { PeerError, type ConnectionHandler } from '../http/index.ts'
import { StreamDriver } from '../io/index.ts'
import { EngineLoop, type EngineLoopOptions, type EngineSink } from './engine-loop.ts'
import { connectionInfo } from './network.ts'
import type { ConnectionEngine, EngineFactory } from './pair.ts'
import { RecordingConnection } from './recording.ts'
import type { World } from './world.ts'

/** The byte stream a scripted peer talks over. */
export interface PeerTransport {
  send(bytes: Uint8Array): void
  end(): void
  reset(): void
  /** Set by the peer. */
  onBytes: (bytes: Uint8Array) => void
  onEnd: () => void
  onReset: () => void
}

/**
 * What a peer wants next: exactly these bytes (a string is latin1), a pattern that matches at the
 * front, or a function that says how many bytes of the front fit (−1: it does not, or not yet).
 */
export type Wanted = string | Uint8Array | RegExp | ((received: Buffer) => number)

/**
 * A peer that follows a script: the test says what it sends, and what it wants to receive next and
 * why. Every `want…` first lets the world run until it is quiet; alarms need `world.advance`.
 */
export class ScriptedPeer {
  readonly world: World
  readonly #transport: PeerTransport
  #received: Buffer
  /** How the other side closed. */
  closedBy: 'no' | 'end' | 'reset'

  constructor(world: World, transport: PeerTransport) {
    this.world = world
    this.closedBy = 'no'
    this.#transport = transport
    this.#received = Buffer.alloc(0)
    transport.onBytes = (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes])
    }
    transport.onEnd = () => {
      if (this.closedBy === 'no') this.closedBy = 'end'
    }
    transport.onReset = () => {
      this.closedBy = 'reset'
    }
  }

  /** Received and not wanted yet. */
  get received(): Buffer {
    return this.#received
  }

  /** Sends bytes; a string is latin1. */
  send(bytes: string | Uint8Array): this {
    this.#transport.send(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    return this
  }

  /** FIN. */
  end(): this {
    this.#transport.end()
    return this
  }

  /** RST. */
  reset(): this {
    this.#transport.reset()
    return this
  }

  /** Lets the world run, then takes what is wanted off the front of what was received. Returns it. */
  want(why: string, wanted: Wanted): Buffer {
    this.world.run()
    const length = fits(wanted, this.#received)
    if (length < 0) this.#fail(why, `wanted ${describe(wanted)}`)
    const taken = this.#received.subarray(0, length)
    this.#received = this.#received.subarray(length)
    return taken
  }

  /** Nothing more came, and the connection stands. */
  wantIdle(why: string): void {
    this.world.run()
    if (this.#received.length > 0 || this.closedBy !== 'no') this.#fail(why, 'wanted nothing')
  }

  /** The other side closed, after nothing more: `end` by FIN, `reset` by RST. */
  wantClose(why: string, how: 'end' | 'reset'): void {
    this.world.run()
    if (this.closedBy !== how || this.#received.length > 0) this.#fail(why, `wanted the connection's ${how}`)
  }

  /** A view of this peer that speaks in frames. */
  frames<Frame>(codec: FrameCodec<Frame>): FramePeer<Frame> {
    return new FramePeer(this, codec)
  }

  #fail(why: string, wanted: string): never {
    const text = this.#received.toString('latin1')
    const shown = text.length > 500 ? `${text.slice(0, 500)}… (${text.length} bytes)` : text
    const state = this.closedBy === 'no' ? 'open' : `closed by ${this.closedBy}`
    throw new Error(`${why}: ${wanted}; received ${JSON.stringify(shown)}, ${state} (seed ${this.world.seed})`)
  }
}

/** How frames of a protocol look on the wire, in the objects of its `debug-frame`. */
export interface FrameCodec<Frame> {
  /** The first frame of `bytes` and its length on the wire; undefined while it is not complete. */
  read(bytes: Buffer): { readonly frame: Frame; readonly length: number } | undefined
  write(frame: Frame): Uint8Array
  describe(frame: Frame): string
}

/** A scripted peer that sends and wants frames. */
export class FramePeer<Frame> {
  readonly peer: ScriptedPeer
  readonly codec: FrameCodec<Frame>

  constructor(peer: ScriptedPeer, codec: FrameCodec<Frame>) {
    this.peer = peer
    this.codec = codec
  }

  send(...frames: Frame[]): this {
    for (const frame of frames) this.peer.send(this.codec.write(frame))
    return this
  }

  /** Takes the next frame, which must satisfy `matches`. */
  want(why: string, matches: (frame: Frame) => boolean): Frame {
    let seen: Frame | undefined
    this.peer.want(why, (received) => {
      const next = this.codec.read(received)
      if (next === undefined) return -1
      if (matches(next.frame)) {
        seen = next.frame
        return next.length
      }
      throw new Error(`${why}: another frame came: ${this.codec.describe(next.frame)} (seed ${this.peer.world.seed})`)
    })
    return seen as Frame
  }
}

/** Which part the engine of a {@link script} plays. */
export interface ScriptOptions extends EngineLoopOptions {
  /** Told of the connection. Default: a recording. */
  readonly handler?: ConnectionHandler
  /** What the engine is. Default `server`. */
  readonly role?: 'client' | 'server'
}

/** An engine with a scripted peer on the other side. */
export interface Script<E extends ConnectionEngine> {
  readonly engine: E
  readonly peer: ScriptedPeer
  /** The recording, unless another handler was given. */
  readonly connection: RecordingConnection
  readonly loop: EngineLoop
}

/** Runs an engine in memory against a scripted peer. */
export function script<E extends ConnectionEngine>(world: World, factory: EngineFactory<E>, options: ScriptOptions = {}): Script<E> {
  const connection = new RecordingConnection()
  const engine = factory(connectionInfo(options.role ?? 'server'), options.handler ?? connection, world.now())
  const transport = new LoopTransport()
  const loop = new EngineLoop(world, engine, transport, options)
  transport.loop = loop
  return { engine, peer: new ScriptedPeer(world, transport), connection, loop }
}

/** As {@link script}, by the production driver on one end of a link; the peer holds the other end. */
export function scriptOnLink<E extends ConnectionEngine>(
  world: World,
  factory: EngineFactory<E>,
  options: Pick<ScriptOptions, 'handler' | 'role'> & { readonly link?: Parameters<World['link']>[0] } = {},
): { readonly engine: E; readonly peer: ScriptedPeer; readonly connection: RecordingConnection; readonly driver: StreamDriver } {
  const connection = new RecordingConnection()
  const engine = factory(connectionInfo(options.role ?? 'server'), options.handler ?? connection, world.now())
  const [ours, theirs] = world.link(options.link)
  const driver = new StreamDriver(theirs, world)
  driver.attach(engine)
  return { engine, peer: new ScriptedPeer(world, socketTransport(ours)), connection, driver }
}

/** The transport of a peer that holds a socket, for servers and clients as a whole. */
export function socketTransport(socket: {
  write(chunk: Uint8Array): unknown
  end(): unknown
  resetAndDestroy(): unknown
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown
  on(event: 'end', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
}): PeerTransport {
  const transport: PeerTransport = {
    send: (bytes) => void socket.write(bytes),
    end: () => void socket.end(),
    reset: () => void socket.resetAndDestroy(),
    onBytes: () => {},
    onEnd: () => {},
    onReset: () => {},
  }
  socket.on('data', (chunk) => transport.onBytes(Buffer.from(chunk)))
  socket.on('end', () => transport.onEnd())
  socket.on('error', () => transport.onReset())
  return transport
}

/** The peer's side of an engine loop. */
class LoopTransport implements PeerTransport, EngineSink {
  readonly blocked = false
  loop: EngineLoop | undefined
  onBytes: (bytes: Uint8Array) => void = () => {}
  onEnd: () => void = () => {}
  onReset: () => void = () => {}

  send(bytes: Uint8Array): void {
    this.loop?.receive(bytes)
  }

  end(): void {
    this.loop?.receiveEnd()
  }

  reset(): void {
    this.loop?.receiveError(new PeerError('PEER_RESET', 'the peer reset the connection'))
  }
}

function fits(wanted: Wanted, received: Buffer): number {
  if (typeof wanted === 'function') return wanted(received)
  if (wanted instanceof RegExp) {
    const match = new RegExp(wanted.source, `${wanted.flags.replaceAll(/[gy]/g, '')}y`).exec(received.toString('latin1'))
    return match === null ? -1 : match[0].length
  }
  const bytes = typeof wanted === 'string' ? Buffer.from(wanted, 'latin1') : wanted
  return received.subarray(0, bytes.length).equals(bytes) ? bytes.length : -1
}

function describe(wanted: Wanted): string {
  if (typeof wanted === 'string') return JSON.stringify(wanted)
  if (wanted instanceof RegExp) return String(wanted)
  return typeof wanted === 'function' ? 'what the predicate takes' : `${wanted.length} bytes: ${Buffer.from(wanted).toString('hex')}`
}
