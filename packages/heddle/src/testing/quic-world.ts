import type { Address, Instant } from '../http/index.ts'
import {
  Endpoint,
  localIdSize,
  PacketReader,
  type EndpointServer,
  type QuicConnection,
  type QuicOptions,
  type QuicStreamHandler,
  type Route,
} from '../quic/index.ts'
import { PlainCrypto } from './plain-crypto.ts'
import { PlainTls, type PlainTlsOptions } from './plain-tls.ts'
import { RecordingApplication } from './quic-pair.ts'
import { Random } from './random.ts'

/** A datagram under way. */
export interface Flight {
  readonly at: Instant
  readonly bytes: Uint8Array
  readonly ecn: number
  readonly from: Address
  readonly to: Address
  readonly toServer: boolean
}

/** How a {@link QuicWorld} is. */
export interface QuicWorldOptions {
  readonly seed?: number
  readonly client?: Partial<QuicOptions>
  readonly server?: Partial<QuicOptions>
  readonly limits?: Partial<Pick<EndpointServer, 'maxConnections' | 'retryAbove' | 'maxHandshakes'>>
  readonly tls?: PlainTlsOptions
  /** ms, one way. Default 10. */
  readonly delay?: number
  readonly jitter?: number
  readonly loss?: number
  readonly duplicates?: number
  /** Octets; what is longer is lost. Default 1,500. */
  readonly mtu?: number
  /** Called before the server's TLS session is made. */
  readonly openTls?: () => void
  /** What a server's stream does. Default: it takes all and sends it back. */
  readonly accept?: (application: RecordingApplication) => RecordingApplication
}

const room = 2_048
const serverAddress: Address = { address: '192.0.2.2', port: 443, family: 'IPv4' }

/** The client's address number `index`; each has an IP address of its own. */
export function clientAddress(index: number, port = 5_000): Address {
  return { address: `198.51.100.${index}`, port, family: 'IPv4' }
}

/** An application that sends back on each stream what comes on it. */
export function echoing(): RecordingApplication {
  return new RecordingApplication((stream) => {
    const handler: QuicStreamHandler = {
      onData(buffer, start, limit, fin) {
        stream.send(buffer, start, limit, fin)
        stream.consume(limit - start)
      },
      onReset() {},
      onStopSending() {},
      onSent() {},
      onClose() {},
    }
    return handler
  })
}

/**
 * A client's and a server's endpoint, with {@link PlainTls} and {@link PlainCrypto}, and the network
 * between them. All is as the seed says. Whatever goes to an address that is not validated is counted, and
 * more than three times what came from there is an error at once (RFC 9000 §8).
 */
export class QuicWorld {
  readonly random: Random
  readonly crypto: PlainCrypto
  readonly server: Endpoint
  readonly client: Endpoint
  options: QuicWorldOptions
  now: Instant
  /** ms since 1970. */
  wallTime: number
  /** Where the client's datagrams come from. The server's find it there, and at no other address. */
  address: Address
  flights: Flight[]
  /** Every datagram that was sent, in order. */
  readonly log: Flight[]
  /** True loses a datagram, in place of chance. `index`: of the datagrams of its direction. */
  drop: ((flight: Flight, index: number) => boolean) | undefined
  /** The server's connections, as they began, and what runs on them. */
  readonly accepted: QuicConnection[]
  readonly applications: RecordingApplication[]
  sessions: PlainTls[]
  /** Octets that the server received from an address, and sent there. */
  readonly received: Map<string, number>
  readonly sent: Map<string, number>
  readonly #routes: Map<string, Route>
  readonly #buffer: Uint8Array
  #toServer: number
  #toClient: number

  constructor(options: QuicWorldOptions = {}) {
    this.options = options
    this.random = new Random(options.seed ?? 1)
    this.now = 1_000
    this.wallTime = 1_700_000_000_000
    this.address = clientAddress(1)
    this.flights = []
    this.log = []
    this.drop = undefined
    this.accepted = []
    this.applications = []
    this.sessions = []
    this.received = new Map()
    this.sent = new Map()
    this.#routes = new Map()
    this.#buffer = new Uint8Array(room)
    this.#toServer = 0
    this.#toClient = 0
    this.crypto = new PlainCrypto((byteCount) => new Uint8Array(this.random.bytes(byteCount)))
    this.client = new Endpoint({ crypto: this.crypto, connection: options.client })
    this.server = new Endpoint({
      crypto: this.crypto,
      connection: options.server,
      server: {
        openTls: (parameters, handler) => {
          options.openTls?.()
          return this.#session(new PlainTls(true, parameters, handler, options.tls))
        },
        onConnection: (connection) => {
          const application = options.accept?.(echoing()) ?? echoing()
          this.accepted.push(connection)
          this.applications.push(application)
          connection.application = application
        },
        maxConnections: 1_000,
        retryAbove: 1_000,
        maxHandshakes: 1_000,
        wallTime: () => this.wallTime,
        ...options.limits,
      },
    })
  }

  /** Begins a connection. */
  connect(application: RecordingApplication = silent(), token?: Uint8Array): QuicConnection {
    const route = this.#route(serverAddress, this.address)
    return this.client.connect(
      route,
      application,
      token,
      (parameters, handler) => this.#session(new PlainTls(false, parameters, handler, this.options.tls)),
      this.now,
    )
  }

  /** The connection, with the handshake confirmed at both ends. */
  connected(application: RecordingApplication = silent()): QuicConnection {
    const connection = this.connect(application)
    if (!this.run(() => connection.handshake.isConfirmed, 20_000)) throw new Error('the handshake does not come to its end')
    return connection
  }

  /** The datagram arrives at once. */
  inject(toServer: boolean, bytes: Uint8Array, from: Address = toServer ? this.address : serverAddress): void {
    this.#arrive({ at: this.now, bytes: new Uint8Array(bytes), ecn: 0, from, to: toServer ? serverAddress : this.address, toServer })
    this.flush()
  }

  /** Goes on until `done`, or `ms` have passed, or nothing is left to wait for. True: `done`. */
  run(done: () => boolean, ms = 60_000): boolean {
    const end = this.now + ms
    for (let turns = 0; ; turns++) {
      this.flush()
      if (done()) return true
      let next = this.flights[0]?.at ?? Infinity
      for (const { connections } of [this.client, this.server]) for (const each of connections) next = Math.min(next, each.deadline)
      if (next > end) {
        this.now = end
        return false
      }
      // A deadline that stays where it is would be a loop without end in a real program.
      if (next > this.now) turns = 0
      if (turns > 2_000) throw new Error('time stands still')
      this.wallTime += Math.max(0, next - this.now)
      this.now = Math.max(this.now, next)
      this.#step()
    }
  }

  /** `ms` pass. */
  pass(ms: number): void {
    this.run(() => false, ms)
  }

  #step(): void {
    const { now } = this
    while (this.flights[0] !== undefined && this.flights[0].at <= now) this.#arrive(this.flights.shift() as Flight)
    for (const { connections } of [this.client, this.server]) for (const each of connections) if (each.deadline <= now) each.expire(now)
  }

  /** Everybody sends what they have. */
  flush(): void {
    const buffer = this.#buffer
    for (const endpoint of [this.client, this.server]) {
      const isServer = endpoint === this.server
      for (const connection of endpoint.connections) {
        for (let size = connection.transmit(buffer, 0, room, this.now); size > 0; size = connection.transmit(buffer, 0, room, this.now)) {
          const { path } = connection.sender
          if (isServer) this.#countSent(connection.route, size, path.validated)
          this.#send(isServer, connection.route.remote, buffer.subarray(0, size), connection.ecn)
        }
      }
      for (const { route, bytes } of endpoint.loose.splice(0)) {
        this.#countSent(route, bytes.length, false)
        this.#send(isServer, route.remote, bytes, 0)
      }
    }
  }

  #session(session: PlainTls): PlainTls {
    this.sessions.push(session)
    return session
  }

  /** RFC 9000 §8: never more than three times what came, to an address that may not be the client's. */
  #countSent({ key }: Route, size: number, isValidated: boolean): void {
    const sent = (this.sent.get(key) ?? 0) + size
    this.sent.set(key, sent)
    const received = this.received.get(key) ?? 0
    if (!isValidated && sent > 3 * received) throw new Error(`${sent} octets went to an address that ${received} came from`)
  }

  #send(fromServer: boolean, to: Address, bytes: Uint8Array, ecn: number): void {
    const { delay = 10, jitter = 0, loss = 0, duplicates = 0, mtu = 1_500 } = this.options
    const { random } = this
    const from = fromServer ? serverAddress : this.address
    const flight = { at: this.now + delay + jitter * random.fraction(), bytes: new Uint8Array(bytes), ecn, from, to, toServer: !fromServer }
    this.log.push({ ...flight, bytes: new Uint8Array(bytes) })
    const index = fromServer ? this.#toClient++ : this.#toServer++
    if (bytes.length > mtu || (this.drop?.(flight, index) ?? random.chance(loss))) return
    this.#add(flight)
    if (random.chance(duplicates)) this.#add({ ...flight, bytes: new Uint8Array(bytes), at: flight.at + random.fraction() * 30 })
  }

  #add(flight: Flight): void {
    let index = this.flights.length
    while (index > 0 && (this.flights[index - 1] as Flight).at > flight.at) index--
    this.flights.splice(index, 0, flight)
  }

  #arrive({ bytes, ecn, from, to, toServer }: Flight): void {
    if (toServer) {
      const route = this.#route(from, serverAddress)
      this.received.set(route.key, (this.received.get(route.key) ?? 0) + bytes.length)
      this.server.receive(bytes, 0, bytes.length, route, ecn, this.now)
    } else if (to.address === this.address.address && to.port === this.address.port) {
      this.client.receive(bytes, 0, bytes.length, this.#route(from, to), ecn, this.now)
    }
  }

  #route(remote: Address, local: Address): Route {
    // A client's socket stays the same, whatever its packets look like behind a NAT.
    const key = remote.port === 443 ? 'server' : `${remote.address} ${remote.port}`
    let route = this.#routes.get(key)
    if (route === undefined) {
      route = { key, remote, local }
      this.#routes.set(key, route)
    }
    return route
  }
}

/** An application that opens streams itself. */
export function silent(): RecordingApplication {
  return new RecordingApplication(() => ({ onData() {}, onReset() {}, onStopSending() {}, onSent() {}, onClose() {} }))
}

/** Sends `size` octets and the end on a stream of its own, and hears the echo. */
export class Echo implements QuicStreamHandler {
  came = 0
  isRight = true
  hasEnded = false
  isClosed = false
  readonly #stream: { consume(byteCount: number): void } | undefined

  constructor(connection: QuicConnection, size: number) {
    const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 7 + (i >> 8)) & 0xff)
    const stream = connection.open(true, this)
    this.#stream = stream
    stream?.sendOwned(bytes, true)
  }

  onData(buffer: Uint8Array, start: number, limit: number, fin: boolean): void {
    for (let i = start; i < limit; i++, this.came++) if (buffer[i] !== ((this.came * 7 + (this.came >> 8)) & 0xff)) this.isRight = false
    this.#stream?.consume(limit - start)
    this.hasEnded = fin
  }
  onReset(): void {
    this.isRight = false
  }
  onStopSending(): void {}
  onSent(): void {}
  onClose(): void {
    this.isClosed = true
  }
}

/** The types of the packets of a datagram, in order. */
export function packetTypes(bytes: Uint8Array): number[] {
  const reader = new PacketReader().start(bytes, 0, bytes.length, localIdSize)
  const types: number[] = []
  while (reader.next()) types.push(reader.type)
  return types
}
