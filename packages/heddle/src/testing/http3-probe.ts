import { DebugFields, readDebugFrame, StreamType, type DebugFrame } from '../h3/index.ts'
import { HeddleError } from '../http/index.ts'
import { systemClock, UdpDriver } from '../io/index.ts'
import { loadNative, type Native, type TlsContext } from '../native/index.ts'
import type { QuicApplication, QuicConnection, QuicOptions, QuicStream, QuicStreamHandler } from '../quic/index.ts'
import { PeerStream } from './h3-peer.ts'

/** What a test waits for at most, ms: a machine may be slow. */
const patience = 30_000

/** How an {@link Http3Probe} connects. */
export interface Http3ProbeOptions {
  readonly port: number
  /** Default 127.0.0.1. */
  readonly host?: string
  /** PEM of who signed the server's certificate. */
  readonly ca: string
  /** PEM of a certificate to show, and its key. */
  readonly cert?: string
  readonly key?: string
  /** Default localhost. */
  readonly serverName?: string
  /** What SETTINGS say. */
  readonly settings?: readonly (readonly [id: number, value: number])[]
  /** False: no control stream is opened. Default true. */
  readonly handshake?: boolean
  readonly quic?: Partial<QuicOptions>
}

/** A stream that gives credit only while it `reads`. */
export class ProbeStream extends PeerStream {
  reads = true
  /** False: what comes is counted and forgotten. */
  keeps = true
  /** Octets that came. */
  count = 0
  #held = 0

  override onData(buffer: Uint8Array, start: number, limit: number, fin: boolean): void {
    if (this.keeps) this.received = Buffer.concat([this.received, buffer.subarray(start, limit)])
    this.count += limit - start
    if (fin) this.ended = true
    this.#held += limit - start
    if (this.reads) this.read()
  }

  /** Gives credit for what came so far. */
  read(): void {
    this.quic?.consume(this.#held)
    this.#held = 0
  }
}

/** What a server answered, as it was on the wire. */
export interface ProbeAnswer {
  /** Field lines, pseudo-header fields first. */
  readonly head: readonly string[]
  readonly status: number
  readonly content: string
  readonly trailers: readonly string[]
}

/** A client of HTTP/3 on a real UDP port that follows no rule but the test's: what it sends is what it is told to. */
export class Http3Probe implements QuicApplication {
  readonly deadline: number = Infinity
  readonly connection: QuicConnection
  /** Streams the server opened, by id. */
  readonly accepted: Map<number, ProbeStream>
  ready: boolean
  /** How the connection ended. */
  error: HeddleError | undefined
  readonly #driver: UdpDriver
  readonly #tls: TlsContext
  readonly #fields: DebugFields

  /** Why there is no HTTP/3 here; false: there is. */
  static get unavailable(): string | false {
    const native = loadNative()
    return 'unavailable' in native ? native.unavailable : false
  }

  /** Connects; resolves when the handshake is over, and rejects if it fails. */
  static async connect(options: Http3ProbeOptions): Promise<Http3Probe> {
    const { host = '127.0.0.1', handshake = true, settings = [] } = options
    const native = loadNative() as Native
    const tls = native.tls({ side: 'client', alpn: ['h3'], ca: options.ca, cert: options.cert, key: options.key })
    const driver = await UdpDriver.open(
      native.udp,
      { host: host.includes(':') ? '::1' : '127.0.0.1' },
      systemClock(),
      { onError() {} },
      { crypto: native.crypto, connection: options.quic },
    )
    const probe = new Http3Probe(driver, tls, native, options)
    await probe.until('the handshake', () => probe.ready || probe.error !== undefined)
    if (probe.error !== undefined) {
      await probe.close()
      throw probe.error
    }
    if (handshake) probe.openCritical(StreamType.Control).send({ type: 'SETTINGS', settings })
    return probe
  }

  constructor(driver: UdpDriver, tls: TlsContext, native: Native, options: Http3ProbeOptions) {
    const { host = '127.0.0.1', port, serverName = 'localhost' } = options
    this.accepted = new Map()
    this.ready = false
    this.error = undefined
    this.#driver = driver
    this.#tls = tls
    this.#fields = new DebugFields(0, 0)
    this.connection = driver.connect(native.udp.address(host, port), this, undefined, (transportParameters, handler) =>
      tls.client({ host: serverName, transportParameters }, handler),
    )
  }

  // ── QuicApplication ─────────────────────────────────────────────────────────────────────────────

  startRun(): void {}
  finishRun(): void {}
  expire(): void {}
  onStreamsAvailable(): void {}

  onReady(): void {
    this.ready = true
  }

  onStream(quic: QuicStream): QuicStreamHandler {
    const stream = new ProbeStream()
    stream.quic = quic
    this.accepted.set(quic.id, stream)
    return stream
  }

  onClose(error: HeddleError): void {
    this.error = error
  }

  // ── What the client does ────────────────────────────────────────────────────────────────────────

  /** Opens a stream; waits for the server to allow it. */
  async open(bidirectional = true): Promise<ProbeStream> {
    await this.until('a stream', () => this.connection.openableBidirectional > 0 || !bidirectional || this.error !== undefined)
    return this.openNow(bidirectional)
  }

  /** Opens a stream, which the server allows. */
  openNow(bidirectional = true): ProbeStream {
    const stream = new ProbeStream()
    stream.quic = this.connection.open(bidirectional, stream)
    if (stream.quic === undefined) throw new Error(`no stream can be opened: ${this.error?.message ?? 'the server allows none'}`)
    return stream
  }

  /** Opens a stream that goes one way, and says what it is. */
  openCritical(type: number): ProbeStream {
    return this.openNow(false).sendBytes(Uint8Array.of(type))
  }

  /** A request of these field lines, pseudo-header fields first, which are sent as they are. */
  async request(fields: readonly string[], end = true): Promise<ProbeStream> {
    return (await this.open()).sendHead(fields, end)
  }

  /** What came on `stream` when it is over. Rejects if it was reset, or the connection closed. */
  async answer(stream: ProbeStream): Promise<ProbeAnswer> {
    await this.until('an answer', () => stream.ended || stream.reset !== undefined || this.error !== undefined)
    if (!stream.ended) throw this.error ?? new Error(`the stream was reset with ${stream.reset}`)
    const sections: string[][] = []
    let content = ''
    for (const frame of this.takeFrames(stream)) {
      if (frame.type === 'DATA') content += Buffer.from(frame.data).toString('latin1')
      else if (frame.type === 'HEADERS') sections.push(this.fields(stream, frame.block, sections.length > 0 && content !== ''))
    }
    // Interim responses come before.
    const final = sections.findIndex((lines) => Number(lines[1]) >= 200)
    const head = sections[final] ?? []
    return { head, status: Number(head[1]), content, trailers: sections[final + 1] ?? [] }
  }

  /** Takes the whole frames that came. */
  takeFrames(stream: ProbeStream): DebugFrame[] {
    const frames: DebugFrame[] = []
    for (let next = readDebugFrame(stream.received); next !== undefined; next = readDebugFrame(stream.received)) {
      stream.received = stream.received.subarray(next.length)
      frames.push(next.frame)
    }
    return frames
  }

  fields(stream: ProbeStream, block: Uint8Array, areTrailers = false): string[] {
    return this.#fields.read(stream.id, block, areTrailers ? 'trailers' : 'response') ?? ['cannot be decoded', '']
  }

  /** Waits for what must come. */
  async until(why: string, isThere: () => boolean): Promise<void> {
    const limit = Date.now() + patience
    while (!isThere()) {
      if (Date.now() > limit) throw new Error(`${why}: it did not come within ${patience / 1_000} s`)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  /** The connection was closed by the server; its error. */
  async closed(): Promise<HeddleError> {
    await this.until('the end of the connection', () => this.error !== undefined)
    return this.error as HeddleError
  }

  async close(): Promise<void> {
    await this.#driver.close(new HeddleError('SHUTDOWN', 'the test is over'))
    this.#tls.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
