import {
  ClientConnection,
  DebugFields,
  describeDebugFrame,
  ErrorCode,
  errorName,
  literalSection,
  readDebugFrame,
  ServerConnection,
  StreamType,
  writeDebugFrame,
  type DebugFrame,
  type Http3Options,
} from '../h3/index.ts'
import { requestHead, type HeddleError, type Head } from '../http/index.ts'
import type { QuicApplication, QuicStream, QuicStreamHandler } from '../quic/index.ts'
import { connectionInfo } from './network.ts'
import { quicDoubles, type QuicDouble, type QuicDoubleOptions } from './quic-double.ts'
import { RecordingConnection } from './recording.ts'
import type { World } from './world.ts'

/** What a frame must be: its type, and each of the members given here. */
export type WantedFrame = {
  [T in DebugFrame['type']]: { readonly type: T } & Partial<Extract<DebugFrame, { type: T }>>
}[DebugFrame['type']]

/** A stream as a scripted peer sees it: everything is kept. */
export class PeerStream implements QuicStreamHandler {
  quic: QuicStream | undefined
  /** Received and not wanted yet. */
  received: Buffer
  ended: boolean
  /** Codes of RESET_STREAM and STOP_SENDING. */
  reset: number | undefined
  stopped: number | undefined
  closed: boolean

  constructor() {
    this.quic = undefined
    this.received = Buffer.alloc(0)
    this.ended = false
    this.reset = undefined
    this.stopped = undefined
    this.closed = false
  }

  get id(): number {
    return this.#opened.id
  }

  get #opened(): QuicStream {
    if (this.quic === undefined) throw new Error('the stream is not open')
    return this.quic
  }

  /** Sends octets as they are. */
  sendBytes(bytes: Uint8Array, end = false): this {
    this.#opened.send(bytes, 0, bytes.length, end)
    return this
  }

  send(...frames: DebugFrame[]): this {
    for (const frame of frames) this.sendBytes(writeDebugFrame(frame))
    return this
  }

  /** Sends a field section of plain literals. */
  sendHead(fields: readonly string[], end = false): this {
    return this.sendBytes(writeDebugFrame({ type: 'HEADERS', block: literalSection(fields) }), end)
  }

  sendContent(content: string | Uint8Array, end = false): this {
    return this.sendBytes(writeDebugFrame({ type: 'DATA', data: Buffer.from(content as string, 'latin1') }), end)
  }

  sendEnd(): this {
    return this.sendBytes(new Uint8Array(0), true)
  }

  onData(buffer: Uint8Array, start: number, limit: number, fin: boolean): void {
    this.received = Buffer.concat([this.received, buffer.subarray(start, limit)])
    this.#opened.consume(limit - start)
    if (fin) this.ended = true
  }

  onReset(errorCode: number): void {
    this.reset = errorCode
  }

  onStopSending(errorCode: number): void {
    this.stopped = errorCode
  }

  onSent(): void {}

  onClose(): void {
    this.closed = true
  }
}

/** A peer that follows a script on the other end of a {@link QuicDouble}. Every `want…` first lets the world run until it is quiet. */
export class Http3Peer implements QuicApplication {
  readonly world: World
  readonly deadline: number = Infinity
  /** Streams the other side opened, by id. */
  readonly accepted: Map<number, PeerStream>
  error: HeddleError | undefined
  readonly #role: 'client' | 'server'
  readonly #double: QuicDouble
  readonly #other: QuicDouble
  readonly #fields: DebugFields
  /** Our streams of each type. */
  readonly #critical: Map<number, PeerStream>
  #theirs: Map<number, PeerStream>

  constructor(world: World, role: 'client' | 'server', double: QuicDouble, other: QuicDouble, fields: DebugFields) {
    this.world = world
    this.accepted = new Map()
    this.error = undefined
    this.#role = role
    this.#double = double
    this.#other = other
    this.#fields = fields
    this.#critical = new Map()
    this.#theirs = new Map()
  }

  startRun(): void {}
  finishRun(): void {}
  onReady(): void {}
  onStreamsAvailable(): void {}
  expire(): void {}

  onStream(quic: QuicStream): QuicStreamHandler {
    const stream = new PeerStream()
    stream.quic = quic
    this.accepted.set(quic.id, stream)
    return stream
  }

  onClose(error: HeddleError): void {
    this.error = error
  }

  // ── What the peer does ──────────────────────────────────────────────────────────────────────────

  /** Opens a stream. */
  open(bidirectional = true): PeerStream {
    const stream = new PeerStream()
    stream.quic = this.#double.open(bidirectional, stream)
    if (stream.quic === undefined) throw new Error('no stream can be opened')
    return stream
  }

  /** Opens a stream that goes one way, and says what it is. */
  openCritical(type: number): PeerStream {
    const stream = this.open(false)
    this.#critical.set(type, stream)
    return stream.sendBytes(Uint8Array.of(type))
  }

  /** Opens the control stream with SETTINGS. */
  handshake(settings: readonly (readonly [id: number, value: number])[] = []): this {
    this.openCritical(StreamType.Control).send({ type: 'SETTINGS', settings })
    return this
  }

  /** Our control stream. */
  get control(): PeerStream {
    return this.critical(StreamType.Control)
  }

  critical(type: number): PeerStream {
    const stream = this.#critical.get(type)
    if (stream === undefined) throw new Error(`stream of type ${type} was not opened`)
    return stream
  }

  /** Client: a request. */
  request(fields: readonly string[], end = true): PeerStream {
    const stream = this.open().sendHead(fields, end)
    // It is there before another begins.
    this.world.run()
    return stream
  }

  close(code: number): void {
    this.#double.close(code, '')
  }

  // ── What the peer wants ─────────────────────────────────────────────────────────────────────────

  /** The other side's stream that says that it is of `type`. */
  theirs(type: number): PeerStream {
    this.world.run()
    for (const [id, stream] of this.accepted) {
      if ((id & 2) === 0 || stream.received.length === 0 || [...this.#theirs.values()].includes(stream)) continue
      this.#theirs.set(stream.received[0] as number, stream)
      stream.received = stream.received.subarray(1)
    }
    const stream = this.#theirs.get(type)
    if (stream === undefined) throw new Error(`no stream of type ${type} came`)
    return stream
  }

  /** The stream on which the other side sends its request. */
  wantStream(why: string, id: number): PeerStream {
    this.world.run()
    const stream = this.accepted.get(id)
    if (stream === undefined) throw new Error(`${why}: stream ${id} was not opened`)
    return stream
  }

  /** Takes the next frame of a stream, which must have the members of `wanted`. Frames that mean nothing are skipped. */
  wantFrame<T extends DebugFrame['type']>(
    why: string,
    stream: PeerStream,
    wanted: Extract<WantedFrame, { type: T }>,
  ): Extract<DebugFrame, { type: T }> {
    this.world.run()
    for (;;) {
      const next = readDebugFrame(stream.received)
      if (next === undefined) throw new Error(`${why}: no frame came, ${stream.received.length} octets; ${this.#state(stream)}`)
      stream.received = stream.received.subarray(next.length)
      const { frame } = next
      if (frame.type === 'UNKNOWN' && wanted.type !== 'UNKNOWN') continue
      const fits = Object.entries(wanted).every(([name, value]) => isSame((frame as unknown as Record<string, unknown>)[name], value))
      if (!fits) throw new Error(`${why}: another frame came: ${describeDebugFrame(frame)} (seed ${this.world.seed})`)
      return frame as Extract<DebugFrame, { type: T }>
    }
  }

  /** Takes a field section. `lines`: its field lines, pseudo-header fields first. */
  wantHead(why: string, stream: PeerStream, lines?: readonly string[]): string[] {
    return this.#wantSection(why, stream, this.#role === 'client' ? 'response' : 'request', lines)
  }

  wantTrailers(why: string, stream: PeerStream, lines?: readonly string[]): string[] {
    return this.#wantSection(why, stream, 'trailers', lines)
  }

  #wantSection(why: string, stream: PeerStream, of: 'request' | 'response' | 'trailers', lines?: readonly string[]): string[] {
    const { block } = this.wantFrame(why, stream, { type: 'HEADERS' })
    const encoder = this.theirs(StreamType.Encoder)
    this.#fields.receive(encoder.received)
    encoder.received = Buffer.alloc(0)
    const read = this.#fields.read(stream.id, block, of)
    if (read === undefined) throw new Error(`${why}: the field section cannot be decoded`)
    if (lines !== undefined && !isSame(read, lines)) throw new Error(`${why}: wanted ${lines.join(' ')}, received ${read.join(' ')}`)
    return read
  }

  /** Takes DATA frames until the stream has no more. */
  wantContent(why: string, stream: PeerStream, content: string, end = true): void {
    this.world.run()
    let text = ''
    while (stream.received.length > 0) text += Buffer.from(this.wantFrame(why, stream, { type: 'DATA' }).data).toString('latin1')
    if (text !== content) throw new Error(`${why}: wanted ${JSON.stringify(content)}, received ${JSON.stringify(text)}`)
    if (end) this.wantEnd(why, stream)
  }

  /** The stream ended well, with nothing more in it. */
  wantEnd(why: string, stream: PeerStream): void {
    this.world.run()
    if (!stream.ended || stream.received.length > 0) throw new Error(`${why}: wanted the end, ${this.#state(stream)}`)
  }

  wantReset(why: string, stream: PeerStream, code: number): void {
    this.world.run()
    if (stream.reset !== code) throw new Error(`${why}: wanted ${errorName(code)}, ${this.#state(stream)}`)
  }

  wantStopSending(why: string, stream: PeerStream, code: number | undefined): void {
    this.world.run()
    if (stream.stopped !== code) throw new Error(`${why}: wanted STOP_SENDING ${code}, ${this.#state(stream)}`)
  }

  /** The connection stands. */
  wantOpen(why: string): void {
    this.world.run()
    if (this.#other.closedWith === undefined) return
    const { code, reason } = this.#other.closedWith
    throw new Error(`${why}: the connection was closed with ${errorName(code)}: ${reason}`)
  }

  /** The other side closed the connection. */
  wantClose(why: string, code: number): void {
    this.world.run()
    const seen = this.#other.closedWith
    if (seen?.code === code) return
    throw new Error(
      `${why}: wanted the connection closed with ${errorName(code)}, ${seen === undefined ? 'it stands' : `${errorName(seen.code)}: ${seen.reason}`}`,
    )
  }

  #state(stream: PeerStream): string {
    const words = [stream.ended ? 'it ended' : 'it is open']
    if (stream.reset !== undefined) words.push(`reset ${errorName(stream.reset)}`)
    if (stream.stopped !== undefined) words.push(`stopped ${errorName(stream.stopped)}`)
    const seen = this.#other.closedWith
    if (seen !== undefined) words.push(`connection closed ${errorName(seen.code)}: ${seen.reason}`)
    return `${words.join(', ')} (seed ${this.world.seed})`
  }
}

function isSame(a: unknown, b: unknown): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.from(a).equals(b)
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => isSame(one, b[i]))
  return Object.is(a, b)
}

/** An engine with a scripted peer on the other side. */
export interface Http3Script<E> {
  readonly engine: E
  readonly peer: Http3Peer
  readonly connection: RecordingConnection
  /** The engine's end. */
  readonly double: QuicDouble
  readonly faults: readonly string[]
}

/** How a {@link Http3Script} begins. */
export interface Http3ScriptOptions {
  readonly options?: Http3Options
  readonly handler?: RecordingConnection
  /** What the peer's SETTINGS say. */
  readonly settings?: readonly (readonly [id: number, value: number])[]
  /** False: the peer's control stream is the test's. Default true: it is opened with SETTINGS. */
  readonly handshake?: boolean
  readonly quic?: Partial<QuicDoubleOptions>
}

function script<E extends ClientConnection | ServerConnection>(
  world: World,
  role: 'client' | 'server',
  make: (connection: RecordingConnection, double: QuicDouble) => E,
  given: Http3ScriptOptions,
): Http3Script<E> {
  const { handshake = true, settings = [], handler = new RecordingConnection() } = given
  const doubles = quicDoubles(world, {
    streamWindow: 1_048_576,
    connectionWindow: 4_194_304,
    sendBuffer: 65_536,
    maxStreams: 100,
    delay: 1,
    jitter: 0,
    pieces: world.random.pick([1, 'random', 1_200]),
    ...given.quic,
  })
  const [ours, theirs] = role === 'client' ? [doubles.client, doubles.server] : [doubles.server, doubles.client]
  const engine = make(handler, ours)
  const setting = (id: number): number => settings.find(([known]) => known === id)?.[1] ?? 0
  const peer = new Http3Peer(world, role === 'client' ? 'server' : 'client', theirs, ours, new DebugFields(setting(1), setting(7)))
  ours.application = engine
  theirs.application = peer
  ours.start()
  theirs.start()
  world.run()
  if (handshake) peer.handshake(settings)
  world.run()
  return { engine, peer, connection: handler, double: ours, faults: doubles.faults }
}

/** A server's engine with a scripted client. */
export function serverScript(world: World, given: Http3ScriptOptions = {}): Http3Script<ServerConnection> {
  return script(
    world,
    'server',
    (handler, double) => new ServerConnection(connectionInfo('server'), handler, double, given.options ?? {}, world.now()),
    given,
  )
}

/** A client's engine with a scripted server. */
export function clientScript(world: World, given: Http3ScriptOptions = {}): Http3Script<ClientConnection> {
  return script(
    world,
    'client',
    (handler, double) => new ClientConnection(connectionInfo('client'), handler, double, given.options ?? {}, world.now()),
    given,
  )
}

/** The lines of a plain request. */
export const getFields: readonly string[] = [':method', 'GET', ':scheme', 'http', ':authority', 'origin.test', ':path', '/']
export const postFields: readonly string[] = [':method', 'POST', ':scheme', 'http', ':authority', 'origin.test', ':path', '/']

export function getHead(path = '/', fields: readonly string[] = []): Head {
  return requestHead('GET', 'http', 'origin.test', path, fields)
}

export { ErrorCode }
