/** A small client of HTTP/3 with the face of `NodeClient`: the engine on a UDP port, and nothing of `heddle/client`. */
import { Readable, Writable } from 'node:stream'
import { ClientConnection, type Http3Options } from '../src/h3/index.ts'
import {
  CancelReason,
  HeddleError,
  requestHead,
  type ConnectionHandler,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
} from '../src/http/index.ts'
import { systemClock } from '../src/io/index.ts'
import { UdpDriver } from '../src/io/udp-driver.ts'
import { loadNative, type TlsContext, type TlsContextOptions } from '../src/native/index.ts'
import type { QuicApplication, QuicConnection, QuicOptions, QuicStreamHandler } from '../src/quic/index.ts'
import { askBy, type Answer, type Asked, type Talk } from './node-client.ts'

const native = loadNative()
/** Why there is no HTTP/3 here; false: there is. */
export const noHttp3: string | false = 'unavailable' in native ? native.unavailable : false

export interface Http3ClientOptions {
  readonly port: number
  /** Default 127.0.0.1. */
  readonly address?: string
  /** The server's name; what its certificate must be for, if there is a `ca`. Default: `address`. */
  readonly host?: string
  /** Default: any certificate is taken. */
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly groups?: string
  readonly http3?: Http3Options
  readonly quic?: Partial<QuicOptions>
  /** Its UDP port. Default: one of its own, which it closes. */
  readonly from?: Http3Port
}

/** A UDP port of clients. */
export class Http3Port {
  readonly driver: UdpDriver
  readonly #contexts: Map<string, TlsContext>

  private constructor(driver: UdpDriver) {
    this.driver = driver
    this.#contexts = new Map()
  }

  static async open(host = '127.0.0.1', quic: Partial<QuicOptions> = {}): Promise<Http3Port> {
    if ('unavailable' in native) throw new Error(native.unavailable)
    const { udp, crypto } = native
    return new Http3Port(await UdpDriver.open(udp, { host }, systemClock(), { onError() {} }, { crypto, connection: quic }))
  }

  connect(options: Http3ClientOptions, application: QuicApplication): QuicConnection {
    if ('unavailable' in native) throw new Error(native.unavailable)
    const { port, address = '127.0.0.1', host = address } = options
    const tls = this.#contextOf(options)
    return this.driver.connect(native.udp.address(address, port), application, undefined, (transportParameters, handler) =>
      tls.client({ host, transportParameters }, handler),
    )
  }

  async close(): Promise<void> {
    await this.driver.close(new HeddleError('SHUTDOWN', 'the client is closed'))
    for (const context of this.#contexts.values()) context.close()
    this.#contexts.clear()
  }

  /** One for all connections that trust and show the same. */
  #contextOf({ ca, cert, key, groups = '*X25519' }: Http3ClientOptions): TlsContext {
    if ('unavailable' in native) throw new Error(native.unavailable)
    const name = JSON.stringify([ca, cert, groups])
    let context = this.#contexts.get(name)
    if (context === undefined) {
      const trust: Partial<TlsContextOptions> = ca === undefined ? { rejectUnauthorized: false } : { ca }
      context = native.tls({ side: 'client', groups, ...trust, ...(cert === undefined ? {} : { cert, key }) })
      this.#contexts.set(name, context)
    }
    return context
  }
}

/** One connection, which begins when it is made. */
export class Http3Client implements ConnectionHandler {
  /** Zeros: how often the server said that it goes away. */
  readonly goaways: number[]
  /** Resolves when requests can be sent; rejects when the connection comes to nothing. */
  readonly ready: Promise<void>
  /** What the connection ended with. */
  readonly closed: Promise<HeddleError | undefined>
  quic: QuicConnection | undefined
  connection: ClientConnection | undefined
  extendedConnect: boolean
  readonly #options: Http3ClientOptions
  readonly #ready: PromiseWithResolvers<void>
  readonly #closed: PromiseWithResolvers<HeddleError | undefined>
  readonly #waiting: (() => void)[]
  #port: Http3Port | undefined
  #isClosed: boolean

  constructor(options: Http3ClientOptions) {
    this.goaways = []
    this.quic = undefined
    this.connection = undefined
    this.extendedConnect = false
    this.#options = options
    this.#ready = Promise.withResolvers()
    this.#closed = Promise.withResolvers()
    this.ready = this.#ready.promise
    this.closed = this.#closed.promise
    this.ready.catch(() => {})
    this.#waiting = []
    this.#port = options.from
    this.#isClosed = false
    this.#connect().catch(this.#ready.reject)
  }

  async #connect(): Promise<void> {
    this.#port ??= await Http3Port.open((this.#options.address ?? '127.0.0.1').includes(':') ? '::1' : '127.0.0.1', this.#options.quic)
    if (this.#isClosed) return
    const quic = this.#port.connect(this.#options, new Opening(this.#ready.reject, this.#closed.resolve))
    this.quic = quic
    const { remote, local } = quic.route
    const info: ConnectionInfo = { id: 1, remote, local, tls: undefined }
    this.connection = new ClientConnection(info, this, quic, this.#options.http3 ?? {}, systemClock().now())
    quic.application = this.connection
  }

  /** Opens an exchange of the raw face, when there is room for one. */
  async open(handler: ExchangeHandler): Promise<Exchange> {
    await this.ready
    for (;;) {
      const exchange = (this.connection as ClientConnection).open(handler)
      if (exchange !== undefined) return exchange
      await Promise.race([
        new Promise<void>((resolve) => this.#waiting.push(resolve)),
        this.closed.then((error) => Promise.reject(error ?? new Error('closed'))),
      ])
    }
  }

  start(asked: Asked, endStream: boolean): Talk {
    const talk = new Http3Talk(asked, endStream, `${this.#options.host ?? this.#options.address ?? '127.0.0.1'}:${this.#options.port}`)
    this.open(talk).then(
      (exchange) => talk.begin(exchange),
      (error: unknown) => talk.fail(error as Error),
    )
    return talk
  }

  ask(asked: Asked = {}): Promise<Answer> {
    return askBy(this, asked, false)
  }

  /** The port is closed without a word if it is the client's own; else CONNECTION_CLOSE is said. */
  close(): Promise<void> {
    const { quic } = this
    this.#isClosed = true
    this.#closed.resolve(undefined)
    this.#ready.reject(new Error('closed'))
    quic?.close(0x100, '')
    return this.#port === undefined || this.#port === this.#options.from ? Promise.resolve() : this.#port.close()
  }

  onReady({ extendedConnect }: { extendedConnect: boolean }): void {
    this.extendedConnect = extendedConnect
    this.#ready.resolve()
  }
  onExchange(): ExchangeHandler {
    throw new Error('an exchange from a server')
  }
  onCapacity(): void {
    for (const go of this.#waiting.splice(0)) go()
  }
  onDraining(): void {
    this.goaways.push(0)
  }
  onDrained(): void {}
  onClose(error: HeddleError | undefined): void {
    this.#ready.reject(error ?? new Error('closed'))
    this.#closed.resolve(error)
  }
}

/** What a connection runs until the engine is made: for a moment. */
class Opening implements QuicApplication {
  readonly deadline = Infinity
  readonly #fail: (error: HeddleError) => void
  readonly #end: (error: HeddleError) => void

  constructor(fail: (error: HeddleError) => void, end: (error: HeddleError) => void) {
    this.#fail = fail
    this.#end = end
  }

  startRun(): void {}
  finishRun(): void {}
  onReady(): void {}
  onStream(): QuicStreamHandler {
    throw new Error('too early')
  }
  onStreamsAvailable(): void {}
  onClose(error: HeddleError): void {
    this.#fail(error)
    this.#end(error)
  }
  expire(): void {}
}

type Received = Record<string, string | string[] | undefined>

class Http3Talk implements Talk, ExchangeHandler {
  readonly out: Writable
  readonly content: Readable
  readonly informational: string[]
  readonly response: Talk['response']
  readonly continued: Promise<void>
  exchange: Exchange | undefined
  readonly #asked: Asked
  readonly #endStream: boolean
  readonly #authority: string
  readonly #response: PromiseWithResolvers<Awaited<Talk['response']>>
  readonly #continued: PromiseWithResolvers<void>
  readonly #begun: PromiseWithResolvers<void>
  #trailers: Received
  #writable: (() => void) | undefined
  #unconsumed: number
  #isOver: boolean

  constructor(asked: Asked, endStream: boolean, authority: string) {
    this.informational = []
    this.exchange = undefined
    this.#asked = asked
    this.#endStream = endStream
    this.#authority = authority
    this.#response = Promise.withResolvers()
    this.#continued = Promise.withResolvers()
    this.#begun = Promise.withResolvers()
    this.response = this.#response.promise
    this.continued = this.#continued.promise
    this.response.catch(() => {})
    this.#trailers = {}
    this.#writable = undefined
    this.#unconsumed = 0
    this.#isOver = false
    this.out = new Writable({
      write: (chunk: Uint8Array, _encoding, done) => void this.#begun.promise.then(() => this.#send(chunk, done)),
      final: (done) => void this.#begun.promise.then(() => this.#finish(done)),
    })
    this.content = new Readable({ read: () => this.#credit() })
    for (const stream of [this.out, this.content]) stream.on('error', () => {})
  }

  begin(exchange: Exchange): void {
    this.exchange = exchange
    if (this.#isOver) return exchange.cancel(CancelReason.Cancelled)
    const { method = 'GET', path = '/', headers = {} } = this.#asked
    const { host = this.#authority, ...rest } = headers
    const fields = Object.entries(rest).flatMap(([name, value]) => [value].flat().flatMap((one) => [name.toLowerCase(), one]))
    const head =
      method === 'CONNECT' ? requestHead('CONNECT', '', path, '', fields) : requestHead(method, 'https', String(host), path, fields)
    try {
      exchange.sendHead(head, this.#endStream)
    } catch (error) {
      exchange.cancel(CancelReason.InternalError)
      return this.fail(error as Error)
    }
    this.#begun.resolve()
  }

  fail(error: Error): void {
    this.#isOver = true
    this.#response.reject(error)
    this.content.destroy(error)
    this.out.destroy(error)
    this.#begun.resolve()
    this.#writable?.()
  }

  trailers(): Received {
    return this.#trailers
  }

  abort(): void {
    this.#isOver = true
    this.exchange?.cancel(CancelReason.Cancelled)
  }

  #send(chunk: Uint8Array, done: () => void): void {
    if (this.#isOver || this.exchange?.sendData(chunk, 0, chunk.length, false) !== false) done()
    else this.#writable = done
  }

  #finish(done: () => void): void {
    const { trailers } = this.#asked
    const { exchange } = this
    if (exchange !== undefined && !this.#isOver && !this.#endStream) {
      if (trailers === undefined) exchange.sendData(new Uint8Array(0), 0, 0, true)
      else exchange.sendTrailers(Object.entries(trailers).flat())
    }
    done()
  }

  #credit(): void {
    const count = this.#unconsumed
    this.#unconsumed = 0
    if (count > 0) this.exchange?.consume(count)
  }

  onHead(head: Head, end: boolean): void {
    const { status, fields } = head
    if (status < 200) {
      const link = receivedOf(fields)['link']
      this.informational.push(`${status}${link === undefined ? '' : ` ${String(link)}`}`)
      if (status === 100) this.#continued.resolve()
      return
    }
    if (end) this.content.push(null)
    this.#response.resolve({ status, headers: receivedOf(fields), content: this.content })
  }
  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    if (limit > start) {
      this.#unconsumed += limit - start
      if (this.content.push(Buffer.from(buffer.subarray(start, limit)))) this.#credit()
    }
    if (end) this.content.push(null)
  }
  onTrailers(fields: Fields): void {
    this.#trailers = receivedOf(fields)
    this.content.push(null)
  }
  onSent(_byteCount: number, writable: boolean): void {
    const done = this.#writable
    if (!writable || done === undefined) return
    this.#writable = undefined
    done()
  }
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    if (error === undefined) this.#writable?.()
    else this.fail(error)
  }
}

/** Fields as Node tells them. */
function receivedOf(fields: Fields): Received {
  const received: Received = {}
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    const value = fields[i + 1] as string
    const before = received[name]
    if (name === 'set-cookie') received[name] = [...(Array.isArray(before) ? before : []), value]
    else received[name] = before === undefined ? value : `${String(before)}, ${value}`
  }
  return received
}
