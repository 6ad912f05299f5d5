import { makeAuthority, makeCertificate, type Certificate } from '../testing/certificate.ts'
import { loadOpenSsl, makeTls } from './load.ts'
import type { OpenSsl } from './openssl.ts'
import type { TlsContextOptions } from './tls-options.ts'
import type {
  CipherSuite,
  Level,
  TlsClientOptions,
  TlsContext,
  TlsFault,
  TlsServerOptions,
  TlsSession,
  TlsSessionHandler,
} from './types.ts'

const found = loadOpenSsl()

/** Why tests of TLS are skipped, for `{ skip }`. Never where it has to be there. */
export const skip: string | false = 'unavailable' in found && !mustRun() ? found.unavailable : false

function mustRun(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return process.platform === 'linux' && process.arch === 'x64' && (major > 26 || (major === 26 && minor >= 9))
}

/** OpenSSL; a test that is skipped does not ask. */
export function openssl(): OpenSsl {
  if ('unavailable' in found) throw new Error(found.unavailable)
  return found
}

export const authority: Certificate = makeAuthority()
export const localhost: Certificate = makeCertificate({
  names: ['localhost', '*.example.org'],
  ca: authority,
  ipAddresses: ['127.0.0.1', '::1'],
})

/** A context of the tests' authority. */
export function clientContext(options: Partial<TlsContextOptions> = {}): TlsContext {
  return makeTls(openssl(), { side: 'client', ca: authority.cert, groups: 'X25519', ...options })
}

/** A context with the certificate of localhost. */
export function serverContext(options: Partial<TlsContextOptions> = {}): TlsContext {
  return makeTls(openssl(), { side: 'server', cert: localhost.cert, key: localhost.key, ...options })
}

export const parameters: Uint8Array = new Uint8Array([1, 2, 0x44, 0x55])

/** CRYPTO octets on their way. */
export interface Flight {
  readonly level: Level
  readonly bytes: Uint8Array
}

/** One end: what it was told, and what it has to send. */
export class End implements TlsSessionHandler {
  session: TlsSession | undefined
  readonly flights: Flight[] = []
  /** `2w` and so on, as they came. */
  readonly secretOrder: string[] = []
  readonly secrets: Map<string, { suite: CipherSuite; secret: Uint8Array }> = new Map()
  readonly tickets: Uint8Array[] = []
  parameters: Uint8Array | undefined
  fault: TlsFault | undefined
  /** Called first of all in each of the handler's methods. */
  during: (what: string) => void = () => {}

  onCrypto(level: Level, bytes: Uint8Array): void {
    this.during('onCrypto')
    this.flights.push({ level, bytes })
  }

  onSecret(level: Level, direction: 'read' | 'write', suite: CipherSuite, secret: Uint8Array): void {
    this.during('onSecret')
    const name = `${level}${direction[0]}`
    this.secretOrder.push(name)
    this.secrets.set(name, { suite, secret })
  }

  onTransportParameters(bytes: Uint8Array): void {
    this.during('onTransportParameters')
    this.parameters = bytes
  }

  onTicket(ticket: Uint8Array): void {
    this.during('onTicket')
    this.tickets.push(ticket)
  }

  onWake(): void {
    this.during('onWake')
    this.fault ??= this.open.resume()
  }

  get open(): TlsSession {
    if (this.session === undefined) throw new Error('no session yet')
    return this.session
  }

  receive(level: Level, bytes: Uint8Array): void {
    this.fault ??= this.open.receive(level, bytes)
  }
}

/** What {@link Pair} is made with. */
export interface PairOptions {
  readonly client?: Partial<TlsContextOptions>
  readonly server?: Partial<TlsContextOptions>
  readonly session?: Partial<TlsClientOptions>
  readonly serverSession?: Partial<TlsServerOptions>
  readonly clientContext?: TlsContext
  readonly serverContext?: TlsContext
}

/** A client and a server whose CRYPTO octets reach each other by {@link Pair.run}. */
export class Pair {
  readonly client: End = new End()
  readonly server: End = new End()
  readonly #own: TlsContext[] = []
  /** Octets that are delivered at once. */
  pieceSize: number = Infinity

  constructor(options: PairOptions = {}) {
    const clients = options.clientContext ?? this.#keep(clientContext(options.client))
    const servers = options.serverContext ?? this.#keep(serverContext(options.server))
    this.client.session = clients.client({ host: 'localhost', transportParameters: parameters, ...options.session }, this.client)
    this.server.session = servers.server({ transportParameters: parameters, ...options.serverSession }, this.server)
  }

  #keep(context: TlsContext): TlsContext {
    this.#own.push(context)
    return context
  }

  /** Shakes hands until nothing moves any more. A side with a fault sends nothing. */
  run(): this {
    this.client.fault ??= this.client.open.start()
    while (this.#deliver(this.client, this.server) || this.#deliver(this.server, this.client));
    return this
  }

  #deliver(from: End, to: End): boolean {
    const flights = from.flights.splice(0)
    for (const { level, bytes } of flights) {
      for (let at = 0; at < bytes.length; at += this.pieceSize) to.receive(level, bytes.subarray(at, at + this.pieceSize))
    }
    return flights.length > 0
  }

  get faults(): (TlsFault | undefined)[] {
    return [this.client.fault, this.server.fault]
  }

  get complete(): boolean {
    return this.client.open.complete && this.server.open.complete
  }

  close(): void {
    this.client.session?.close()
    this.server.session?.close()
    for (const context of this.#own) context.close()
  }
}

/** Runs a handshake, looks at it, and closes it. */
export function withPair<T>(options: PairOptions, look: (pair: Pair) => T): T {
  const pair = new Pair(options)
  try {
    return look(pair.run())
  } finally {
    pair.close()
  }
}
