import { latin1Slice } from '../bytes/index.ts'
import { TimeoutError, type Address, type HeddleError, type Instant } from '../http/index.ts'
import type { QuicCrypto, TlsSession, TlsSessionHandler } from '../native/index.ts'
import type { QuicApplication } from './application.ts'
import { QuicConnection } from './connection.ts'
import { Greeter, smallestReset } from './greeter.ts'
import type { IdIssuer } from './local-ids.ts'
import { smallestDatagram } from './mtu.ts'
import type { QuicOptions } from './options.ts'
import { PacketReader, PacketType } from './packet.ts'
import type { Route } from './path.ts'
import type { QuicStreamHandler } from './stream.ts'
import { Tokens, type OpenedToken } from './tokens.ts'
import { TransportError } from './transport-error.ts'

/** Octets of the connection ids that an endpoint chooses: short headers do not tell. */
export const localIdSize = 8

/** What an endpoint is made with. */
export interface EndpointOptions {
  readonly crypto: QuicCrypto
  /** 32 octets: stateless resets and tokens. Endpoints that share it take each other's. Default: random. */
  readonly key?: Uint8Array | undefined
  readonly connection?: Partial<QuicOptions> | undefined
  /** Server: what answers connections; undefined: none is taken. */
  readonly server?: EndpointServer | undefined
}

/** What a server's endpoint asks. */
export interface EndpointServer {
  openTls(transportParameters: Uint8Array, handler: TlsSessionHandler): TlsSession
  /** The application of a connection that begins; it becomes another's later by `connection.application`. */
  onConnection(connection: QuicConnection): void
  /** The first datagram of a connection ended it, for example because there is no certificate for the client. */
  onStillborn?(error: HeddleError): void
  /** Connections held at once, asked for with each that comes; more are told CONNECTION_REFUSED. */
  readonly maxConnections: number
  /** Handshakes in flight; with more, clients must show that they receive at their address (Retry). */
  readonly retryAbove: number
  /** Handshakes in flight; for more the oldest makes room if it has taken 1 s, else they are not answered. */
  readonly maxHandshakes: number
  /** ms since 1970. */
  wallTime(): number
}

/** A datagram that belongs to no connection: Version Negotiation, Retry, a refusal or a stateless reset. */
export interface LooseDatagram {
  readonly route: Route
  readonly bytes: Uint8Array
}

/**
 * ms that a handshake has at least. It takes two or three round trips; whoever has not ended it by then makes room
 * for others if there is none left, so that a few who never end theirs keep nobody out.
 */
const patience = 1_000

/** Loose datagrams that wait; more are not sent. */
const mostLoose = 64

/** What clients are told that come when nobody is taken any more. */
const refusal = 'the server takes no more connections'

/** The application of a client's connection until its first datagram was read. */
class Newcomer implements QuicApplication {
  readonly deadline = Infinity
  /** What that ended the connection with. */
  error: HeddleError | undefined

  constructor() {
    this.error = undefined
  }

  startRun(): void {}
  finishRun(): void {}
  onReady(): void {}
  onStream(): QuicStreamHandler {
    return nobody
  }
  onStreamsAvailable(): void {}
  onClose(error: HeddleError): void {
    this.error = error
  }
  expire(): void {}
}

const nobody: QuicStreamHandler = { onData() {}, onReset() {}, onStopSending() {}, onSent() {}, onClose() {} }

/**
 * One UDP address's QUIC connections (RFC 9000 §5): finds the connection that a datagram is for, begins
 * those of clients, and answers what is for nobody. It keeps nothing for an address that did not show
 * more than one datagram can.
 */
export class Endpoint implements IdIssuer {
  readonly crypto: QuicCrypto
  readonly loose: LooseDatagram[]
  /** Connections that are not gone. */
  readonly connections: Set<QuicConnection>
  /** Of these, what stands or shakes hands: the others say their last words. */
  standing: number
  /** Connections begun by clients. */
  accepted: number
  /** Clients that were not taken: too many connections or handshakes. */
  refused: number
  /** Server: no new connections: they are told CONNECTION_REFUSED. */
  closed: boolean
  /** Those whose handshake goes on, the oldest first, and since when. */
  readonly #shaking: Map<QuicConnection, Instant>
  /** Those that ended before their handshake did and say their last words, the oldest first. */
  readonly #stillborn: Set<QuicConnection>
  readonly #options: EndpointOptions
  readonly #key: Uint8Array
  /** Of this endpoint only. */
  readonly #secret: Uint8Array
  readonly #byId: Map<string, QuicConnection>
  /** By what became of the stateless reset tokens that peers may use (RFC 9000 §10.3.1). */
  readonly #byResetToken: Map<string, QuicConnection>
  readonly #packets: PacketReader
  readonly #tokens: Tokens
  readonly #greeter: Greeter

  constructor(options: EndpointOptions) {
    this.crypto = options.crypto
    this.loose = []
    this.connections = new Set()
    this.standing = 0
    this.#shaking = new Map()
    this.#stillborn = new Set()
    this.accepted = 0
    this.refused = 0
    this.closed = false
    this.#options = options
    this.#key = options.key ?? options.crypto.random(32)
    this.#secret = options.crypto.random(32)
    this.#byId = new Map()
    this.#byResetToken = new Map()
    this.#packets = new PacketReader()
    this.#tokens = new Tokens(options.crypto, this.#key)
    this.#greeter = new Greeter(options.crypto, this.#key)
  }

  /**
   * A datagram came. Returns the connection that took it: it has something to send, perhaps, and another
   * deadline. The octets are changed in place. `ecn`: the two bits of the IP header.
   */
  receive(buffer: Uint8Array, start: number, limit: number, route: Route, ecn: number, now: Instant): QuicConnection | undefined {
    const packets = this.#packets.start(buffer, start, limit, localIdSize)
    const isPacket = packets.next()
    const connection = isPacket
      ? (this.#byId.get(latin1Slice(buffer, packets.destinationStart, packets.destinationLimit)) ?? this.#findReset(buffer, start, limit))
      : this.#findReset(buffer, start, limit)
    if (connection !== undefined) {
      connection.receive(buffer, start, limit, route, ecn, now)
      return connection
    }
    if (!isPacket || this.#options.server === undefined) return undefined
    return this.#receiveStray(buffer, start, limit, route, ecn, now)
  }

  /** Client: begins a connection. The caller sends what it has to send. */
  connect(
    route: Route,
    application: QuicApplication,
    token: Uint8Array | undefined,
    openTls: (transportParameters: Uint8Array, handler: TlsSessionHandler) => TlsSession,
    now: Instant,
  ): QuicConnection {
    const original = this.crypto.random(8)
    const connection = this.#make(
      route,
      false,
      this.crypto.random(localIdSize),
      original,
      original,
      undefined,
      token,
      true,
      openTls,
      application,
      now,
    )
    connection.start(now)
    return connection
  }

  /** Connections whose handshake goes on. */
  get handshakes(): number {
    return this.#shaking.size
  }

  /** Server: handshakes come to nothing. A client has asked for nothing yet, so it may ask another. Returns how many. */
  refuseHandshakes(): number {
    const all = [...this.#shaking.keys()]
    for (const connection of all) connection.close(TransportError.connectionRefused, refusal, false)
    return all.length
  }

  // ── {@link IdIssuer} ────────────────────────────────────────────────────────────────────────────

  issue(): Uint8Array {
    return this.crypto.random(localIdSize)
  }

  resetToken(id: Uint8Array): Uint8Array {
    return this.crypto.statelessResetToken(this.#key, id)
  }

  retire(id: Uint8Array): void {
    this.#byId.delete(keyOf(id))
  }

  /** What the maps hold: ids by which connections are found, and reset tokens. */
  get keys(): number {
    return this.#byId.size + this.#byResetToken.size
  }

  /** A datagram that ends with the reset token of a connection's peer: the ids in front are random. */
  #findReset(buffer: Uint8Array, start: number, limit: number): QuicConnection | undefined {
    if (this.#byResetToken.size === 0 || limit - start < smallestReset || (buffer[start] as number) >= 0x80) return undefined
    return this.#byResetToken.get(this.#resetKey(buffer.subarray(limit - 16, limit)))
  }

  /** RFC 9000 §10.3.1: a token is looked up in a form that no measuring of time leads back from. */
  #resetKey(token: Uint8Array): string {
    return keyOf(this.crypto.statelessResetToken(this.#secret, token))
  }

  // ── datagrams for nobody ────────────────────────────────────────────────────────────────────────

  #receiveStray(buffer: Uint8Array, start: number, limit: number, route: Route, ecn: number, now: Instant): QuicConnection | undefined {
    const packets = this.#packets
    switch (packets.type) {
      case PacketType.initial:
        return this.#receiveInitial(buffer, start, limit, route, ecn, now)
      case PacketType.unknownVersion:
        // RFC 9000 §6.1: an answer to full datagrams only, so that it is no bigger than the question.
        if (limit - start >= smallestDatagram && this.#maySay()) this.#say(route, this.#greeter.versions(packets))
        return undefined
      case PacketType.oneRtt:
        if (this.#maySay()) {
          this.#say(route, this.#greeter.reset(buffer, packets.destinationStart, packets.destinationLimit, limit - start, now))
        }
        return undefined
      default:
        return undefined
    }
  }

  #receiveInitial(buffer: Uint8Array, start: number, limit: number, route: Route, ecn: number, now: Instant): QuicConnection | undefined {
    const server = this.#options.server as EndpointServer
    const packets = this.#packets
    const { destinationStart, destinationLimit, sourceStart, sourceLimit, tokenStart, tokenLimit } = packets
    // RFC 9000 §14.1, §7.2: a full datagram, and an id that cannot be guessed.
    if (limit - start < smallestDatagram || destinationLimit - destinationStart < 8) return undefined
    const destination = new Uint8Array(buffer.subarray(destinationStart, destinationLimit))
    const source = new Uint8Array(buffer.subarray(sourceStart, sourceLimit))
    const { remote } = route
    const token = new Uint8Array(buffer.subarray(tokenStart, tokenLimit))
    const opened = token.length === 0 ? undefined : this.#tokens.open(token, remote, server.wallTime())
    const isRetry = opened?.isRetry === true
    if (isRetry && !(opened.isGood && isEqual(opened.retrySource, destination))) {
      // RFC 9000 §8.1.2: this client takes no second Retry, so it is told.
      this.refused++
      this.#refuse(route, destination, source, TransportError.invalidToken, 'the token is of another time or address')
      return undefined
    }
    if (this.closed || this.standing >= server.maxConnections) {
      this.refused++
      this.#refuse(
        route,
        destination,
        source,
        TransportError.connectionRefused,
        this.closed ? refusal : 'the server has too many connections',
      )
      return undefined
    }
    const isValidated = opened?.isGood === true
    if (!isValidated && this.#unproven >= server.retryAbove) {
      // RFC 9000 §8.1.3: a token of NEW_TOKEN that is no good is as none.
      if (this.#maySay()) this.#say(route, this.#retry(remote, destination, source, server.wallTime()))
      return undefined
    }
    // Whoever forges addresses, or sends rubbish, makes no room by it.
    if (!this.#greeter.opens(packets, destination)) return undefined
    if (this.#unproven >= server.maxHandshakes && !this.#dropStillborn() && !this.#dropOldest(now)) {
      this.refused++
      return undefined
    }
    return this.#accept(buffer, start, limit, route, ecn, now, destination, source, isRetry ? opened : undefined, isValidated)
  }

  /** Connections that were begun and did not show that there is a client: whoever forges addresses makes as many as it likes. */
  get #unproven(): number {
    return this.#shaking.size + this.#stillborn.size
  }

  /** Makes room for another handshake: of those that failed the oldest says no more. False: there is none. */
  #dropStillborn(): boolean {
    for (const connection of this.#stillborn) {
      connection.forget()
      connection.wake()
      return true
    }
    return false
  }

  /** Makes room for another handshake: ends the one that takes longest, if it has had time enough. False: none has. */
  #dropOldest(now: Instant): boolean {
    for (const [connection, since] of this.#shaking) {
      if (now - since < patience) return false
      connection.abandon(new TimeoutError('connect', 'the QUIC handshake made room for others'))
      // Whoever drives it notices that it is gone.
      connection.wake()
      return true
    }
    return false
  }

  #retry(client: Address, destination: Uint8Array, source: Uint8Array, wallTime: number): Uint8Array {
    const retrySource = this.crypto.random(localIdSize)
    const token = this.#tokens.retry(client, destination, retrySource, wallTime)
    return this.#greeter.retry(source, retrySource, destination, token)
  }

  #refuse(route: Route, destination: Uint8Array, source: Uint8Array, code: TransportError, reason: string): void {
    if (this.#maySay()) this.#say(route, this.#greeter.refusal(destination, source, code, reason))
  }

  #accept(
    buffer: Uint8Array,
    start: number,
    limit: number,
    route: Route,
    ecn: number,
    now: Instant,
    destination: Uint8Array,
    source: Uint8Array,
    retried: OpenedToken | undefined,
    isValidated: boolean,
  ): QuicConnection | undefined {
    const server = this.#options.server as EndpointServer
    const original = retried?.originalDestination ?? destination
    const newcomer = new Newcomer()
    const connection = this.#make(
      route,
      true,
      this.crypto.random(localIdSize),
      source,
      original,
      retried?.retrySource,
      undefined,
      isValidated,
      (parameters, handler) => server.openTls(parameters, handler),
      newcomer,
      now,
    )
    // Until the client has the server's own id, it addresses this one.
    this.#byId.set(keyOf(destination), connection)
    connection.alias = destination
    connection.receive(buffer, start, limit, route, ecn, now)
    if (!connection.hasReceived) {
      // Nothing of it could be opened: it is as if it had not come.
      connection.forget()
      return undefined
    }
    this.accepted++
    try {
      if (newcomer.error === undefined) server.onConnection(connection)
      else server.onStillborn?.(newcomer.error)
    } catch (thrown) {
      connection.failOf(thrown)
    }
    return connection
  }

  #make(
    route: Route,
    isServer: boolean,
    localId: Uint8Array,
    remoteId: Uint8Array,
    originalDestination: Uint8Array,
    retrySource: Uint8Array | undefined,
    token: Uint8Array | undefined,
    isValidated: boolean,
    openTls: (transportParameters: Uint8Array, handler: TlsSessionHandler) => TlsSession,
    application: QuicApplication,
    now: Instant,
  ): QuicConnection {
    const issuer: IdIssuer = {
      issue: () => {
        const id = this.issue()
        this.#byId.set(keyOf(id), connection)
        return id
      },
      resetToken: (id) => this.resetToken(id),
      retire: (id) => this.retire(id),
    }
    const server = this.#options.server
    const connection: QuicConnection = new QuicConnection(
      {
        isServer,
        route,
        localId,
        remoteId,
        originalDestination,
        retrySource,
        token,
        isValidated,
        issuer,
        resetTokens: {
          onResetToken: (token, isInUse) => {
            const key = this.#resetKey(token)
            if (isInUse) this.#byResetToken.set(key, connection)
            else if (this.#byResetToken.get(key) === connection) this.#byResetToken.delete(key)
          },
        },
        crypto: this.crypto,
        options: this.#options.connection,
        openTls,
        makeToken: isServer && server !== undefined ? () => this.#tokens.later(route.remote, server.wallTime()) : undefined,
        onHandshakeOver: () => {
          this.#shaking.delete(connection)
          if (!connection.handshake.isComplete) this.#stillborn.add(connection)
        },
        onOver: () => this.standing--,
        onGone: (gone) => {
          this.connections.delete(gone)
          this.#stillborn.delete(gone)
          if (gone.alias !== undefined) this.retire(gone.alias)
        },
      },
      application,
      now,
    )
    this.#shaking.set(connection, now)
    this.standing++
    this.connections.add(connection)
    this.#byId.set(keyOf(localId), connection)
    return connection
  }

  /** Nothing is made that would not be sent. */
  #maySay(): boolean {
    return this.loose.length < mostLoose
  }

  #say(route: Route, bytes: Uint8Array | undefined): void {
    if (bytes !== undefined) this.loose.push({ route, bytes })
  }
}

function keyOf(id: Uint8Array): string {
  return latin1Slice(id, 0, id.length)
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((octet, i) => octet === b[i])
}
