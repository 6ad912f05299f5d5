import type { HeddleError, Instant } from '../http/index.ts'
import type { QuicCrypto, TlsContext } from '../native/index.ts'
import {
  QuicConnection,
  type QuicApplication,
  type QuicOptions,
  type QuicStream,
  type QuicStreamHandler,
  type Route,
} from '../quic/index.ts'
import { DatagramLink, type DatagramLinkOptions } from './datagram-link.ts'
import { Random } from './random.ts'

/** An application that takes note of what it is told. */
export class RecordingApplication implements QuicApplication {
  ready = false
  error: HeddleError | undefined
  streams: QuicStream[] = []
  tickets: Uint8Array[] = []
  tokens: Uint8Array[] = []
  available = 0
  deadline: Instant = Infinity
  /** Called with each stream that the peer opens. */
  accept: (stream: QuicStream) => QuicStreamHandler

  constructor(accept: (stream: QuicStream) => QuicStreamHandler) {
    this.accept = accept
  }

  startRun(): void {}
  finishRun(): void {}
  expire(): void {}
  onReady(): void {
    this.ready = true
  }
  onStream(stream: QuicStream): QuicStreamHandler {
    this.streams.push(stream)
    return this.accept(stream)
  }
  onStreamsAvailable(): void {
    this.available++
  }
  onClose(error: HeddleError): void {
    this.error = error
  }
  onTicket(ticket: Uint8Array): void {
    this.tickets.push(ticket)
  }
  onToken(token: Uint8Array): void {
    this.tokens.push(token)
  }
}

/** What a {@link QuicPair} is made of. */
export interface QuicPairOptions {
  readonly seed: number
  readonly crypto: QuicCrypto
  readonly clientTls: TlsContext
  readonly serverTls: TlsContext
  readonly client: QuicApplication
  readonly server: QuicApplication
  readonly host?: string
  readonly clientOptions?: Partial<QuicOptions>
  readonly serverOptions?: Partial<QuicOptions>
  readonly link?: DatagramLinkOptions
  readonly ticket?: Uint8Array | undefined
  /** The server knows the client's address from a Retry. Default true: three times what came is no matter. */
  readonly isValidated?: boolean
}

const room = 2_048

/**
 * Two QUIC connections, a client and a server, and the network between them: time passes only as the next
 * datagram or deadline says. TLS has randomness of its own, all else is as the seed says.
 */
export class QuicPair {
  readonly random: Random
  readonly toServer: DatagramLink
  readonly toClient: DatagramLink
  readonly client: QuicConnection
  readonly server: QuicConnection
  /** The addresses that the server sees the client at; the last one counts. */
  clientRoute: Route
  readonly serverRoute: Route
  now: Instant
  /** Datagrams written by each. */
  clientSent: number
  serverSent: number
  gone: QuicConnection[]
  readonly #buffer: Uint8Array

  constructor(options: QuicPairOptions) {
    const { seed, crypto, client, server } = options
    this.random = new Random(seed)
    this.toServer = new DatagramLink(this.random, options.link)
    this.toClient = new DatagramLink(this.random, options.link)
    this.now = 1_000
    this.clientSent = 0
    this.serverSent = 0
    this.gone = []
    this.#buffer = new Uint8Array(room)
    this.serverRoute = routeOf(5_000, 443)
    this.clientRoute = routeOf(443, 5_000)
    const seeded: QuicCrypto = { ...methodsOf(crypto), random: (byteCount) => this.random.bytes(byteCount) }
    const original = this.random.bytes(8)
    const clientId = this.random.bytes(8)
    const issuer = {
      issue: (): Uint8Array => this.random.bytes(8),
      resetToken: (id: Uint8Array): Uint8Array => seeded.statelessResetToken(new Uint8Array(32).fill(1), id),
      retire: (): void => {},
    }
    this.client = new QuicConnection(
      {
        isServer: false,
        route: this.serverRoute,
        localId: clientId,
        remoteId: original,
        originalDestination: original,
        isValidated: true,
        issuer,
        crypto: seeded,
        options: options.clientOptions,
        openTls: (transportParameters, handler) =>
          options.clientTls.client({ host: options.host ?? 'localhost', transportParameters, ticket: options.ticket }, handler),
        onGone: (connection) => this.gone.push(connection),
      },
      client,
      this.now,
    )
    this.server = new QuicConnection(
      {
        isServer: true,
        route: this.clientRoute,
        localId: this.random.bytes(8),
        remoteId: clientId,
        originalDestination: original,
        isValidated: options.isValidated ?? true,
        issuer,
        crypto: seeded,
        options: options.serverOptions,
        openTls: (transportParameters, handler) => options.serverTls.server({ transportParameters }, handler),
        onGone: (connection) => this.gone.push(connection),
      },
      server,
      this.now,
    )
    this.client.start(this.now)
    this.#flush()
  }

  /** Goes on until `done`, or nothing is left to wait for, or `until` ms have passed. True: `done`. */
  run(done: () => boolean, until = 60_000): boolean {
    const end = this.now + until
    for (;;) {
      this.#flush()
      if (done()) return true
      const next = Math.min(this.client.deadline, this.server.deadline, this.toServer.deadline, this.toClient.deadline)
      if (next > end) {
        this.now = end
        return done()
      }
      this.now = Math.max(this.now, next)
      this.#step()
    }
  }

  /** `ms` pass. */
  advance(ms: number): void {
    this.run(() => false, ms)
  }

  #step(): void {
    const { now, client, server } = this
    for (let datagram = this.toServer.take(now); datagram !== undefined; datagram = this.toServer.take(now)) {
      server.receive(datagram.bytes, 0, datagram.bytes.length, this.clientRoute, datagram.ecn, now)
    }
    for (let datagram = this.toClient.take(now); datagram !== undefined; datagram = this.toClient.take(now)) {
      client.receive(datagram.bytes, 0, datagram.bytes.length, this.serverRoute, datagram.ecn, now)
    }
    if (client.deadline <= now) client.expire(now)
    if (server.deadline <= now) server.expire(now)
  }

  #flush(): void {
    const { now, client, server } = this
    const buffer = this.#buffer
    for (let size = client.transmit(buffer, 0, room, now); size > 0; size = client.transmit(buffer, 0, room, now)) {
      this.clientSent++
      this.toServer.send(buffer, 0, size, client.ecn, now)
    }
    for (let size = server.transmit(buffer, 0, room, now); size > 0; size = server.transmit(buffer, 0, room, now)) {
      this.serverSent++
      this.toClient.send(buffer, 0, size, server.ecn, now)
    }
  }
}

function routeOf(remotePort: number, localPort: number): Route {
  return {
    key: `${remotePort} ${localPort}`,
    remote: { address: '192.0.2.1', port: remotePort, family: 'IPv4' },
    local: { address: '192.0.2.2', port: localPort, family: 'IPv4' },
  }
}

/** `crypto` may be an object of a class: its methods, bound. */
function methodsOf(crypto: QuicCrypto): QuicCrypto {
  return {
    hkdfExtract: (suite, salt, secret) => crypto.hkdfExtract(suite, salt, secret),
    expandLabel: (suite, secret, label, length) => crypto.expandLabel(suite, secret, label, length),
    packetKey: (suite, key, iv) => crypto.packetKey(suite, key, iv),
    headerKey: (suite, key) => crypto.headerKey(suite, key),
    retryTag: (pseudoPacket) => crypto.retryTag(pseudoPacket),
    sealToken: (key, content) => crypto.sealToken(key, content),
    openToken: (key, token) => crypto.openToken(key, token),
    statelessResetToken: (key, connectionId) => crypto.statelessResetToken(key, connectionId),
    random: (byteCount) => crypto.random(byteCount),
  }
}
