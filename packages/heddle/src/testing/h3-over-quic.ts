import { ClientConnection, ServerConnection, type Http3Options } from '../h3/index.ts'
import { NetworkError, type Instant } from '../http/index.ts'
import { Alarm } from '../io/index.ts'
import { loadNative, type QuicCrypto, type TlsSession, type TlsSessionHandler } from '../native/index.ts'
import { QuicConnection, type QuicOptions, type Route } from '../quic/index.ts'
import { makeAuthority, makeCertificate } from './certificate.ts'
import type { ConformanceProtocol } from './conformance/stage.ts'
import type { WorldEvent } from './events.ts'
import { connectionInfo } from './network.ts'
import { RecordingApplication } from './quic-pair.ts'
import type { World } from './world.ts'

const native = loadNative()
/** Why HTTP/3 over our own QUIC cannot be run here; false: it can. */
export const unavailable: string | false = 'unavailable' in native ? native.unavailable : false

/** QUIC's own deadlines that are nearer than this are part of what goes on, as acknowledgements and pacing are; those beyond are time limits. */
const nearest = 400
const room = 2_048
/** What the windows of streams, and of the connection, grow to. */
const receiveWindow = 131_072

/** One end: a QUIC connection that a world runs, over a path that delays, loses and doubles its datagrams. */
class End {
  readonly world: World
  readonly connection: QuicConnection
  readonly faults: string[]
  peer: End | undefined
  isSilent: boolean
  readonly #alarm: Alarm
  readonly #buffer: Uint8Array
  readonly #path: PathOptions
  #event: WorldEvent | undefined
  #flushPlanned: boolean
  #running: boolean

  constructor(world: World, connection: QuicConnection, path: PathOptions, faults: string[]) {
    this.world = world
    this.connection = connection
    this.faults = faults
    this.peer = undefined
    this.isSilent = false
    this.#alarm = new Alarm(() => this.enter((now) => connection.expire(now)))
    this.#buffer = new Uint8Array(room)
    this.#path = path
    this.#event = undefined
    this.#flushPlanned = false
    this.#running = false
    connection.onDirty = () => this.#flushSoon()
  }

  #flushSoon(): void {
    if (this.#flushPlanned || this.#running) return
    this.#flushPlanned = true
    this.world.soon(() => {
      this.#flushPlanned = false
      this.enter(undefined)
    })
  }

  /** Mutate once, transmit until nothing is left, read the deadline. */
  enter(mutate: ((now: Instant) => void) | undefined): void {
    const { world, connection } = this
    const now = world.now()
    this.#running = true
    mutate?.(now)
    for (;;) {
      const size = connection.transmit(this.#buffer, 0, room, now)
      if (size === 0) break
      this.#send(Buffer.from(this.#buffer.subarray(0, size)), connection.ecn)
    }
    this.#running = false
    this.#arm(now)
  }

  #arm(now: Instant): void {
    const { world, connection } = this
    const { deadline, application } = connection
    if (Number.isNaN(deadline)) this.faults.push('the deadline is not a number')
    this.#event?.cancel()
    this.#event = undefined
    const isNear = deadline < now + nearest && deadline < application.deadline
    if (isNear) this.#event = world.at(Math.max(now, deadline), () => this.enter((at) => connection.expire(at)))
    world.set(this.#alarm, isNear ? Infinity : deadline)
  }

  #send(bytes: Buffer, ecn: number): void {
    const { world } = this
    const { delay, jitter, loss } = this.#path
    if (this.isSilent || (loss > 0 && world.random.chance(loss))) return
    world.after(delay + world.random.fraction() * jitter, () => {
      const peer = this.peer as End
      if (peer.isSilent) return
      peer.enter((now) => peer.connection.receive(bytes, 0, bytes.length, routeOf(peer.connection.isServer), ecn, now))
    })
  }
}

interface PathOptions {
  readonly delay: number
  readonly jitter: number
  readonly loss: number
}

function routeOf(isServer: boolean): Route {
  const client = { address: '192.0.2.1', port: 5_000, family: 'IPv4' } as const
  const server = { address: '192.0.2.2', port: 443, family: 'IPv4' } as const
  return isServer ? { key: 'client', remote: client, local: server } : { key: 'server', remote: server, local: client }
}

type OpenTls = (transportParameters: Uint8Array, handler: TlsSessionHandler) => TlsSession

/** A client and a server of QUIC with real TLS, in a world, from their first datagram on. */
function quicEnds(world: World, path: PathOptions, options: Partial<QuicOptions>): { client: End; server: End; faults: string[] } {
  if ('unavailable' in native) throw new Error(native.unavailable)
  const { clientTls, serverTls } = tlsContexts()
  const crypto = seeded(native.crypto, world)
  const original = crypto.random(8)
  const clientId = crypto.random(8)
  const issuer = {
    issue: (): Uint8Array => crypto.random(8),
    resetToken: (id: Uint8Array): Uint8Array => crypto.statelessResetToken(new Uint8Array(32).fill(1), id),
    retire: (): void => {},
  }
  const faults: string[] = []
  const make = (isServer: boolean, openTls: OpenTls): End => {
    const connection = new QuicConnection(
      {
        isServer,
        route: routeOf(isServer),
        localId: isServer ? crypto.random(8) : clientId,
        remoteId: isServer ? clientId : original,
        originalDestination: original,
        isValidated: true,
        issuer,
        crypto,
        options,
        openTls,
        onGone: () => {},
      },
      new RecordingApplication(() => {
        throw new Error('the application is HTTP/3')
      }),
      world.now(),
    )
    return new End(world, connection, path, faults)
  }
  const client = make(false, (transportParameters, handler) => clientTls.client({ host: 'localhost', transportParameters }, handler))
  const server = make(true, (transportParameters, handler) => serverTls.server({ transportParameters }, handler))
  client.peer = server
  server.peer = client
  return { client, server, faults }
}

let contexts: { clientTls: ReturnType<Tls>; serverTls: ReturnType<Tls> } | undefined
type Tls = Extract<typeof native, { tls: unknown }>['tls']

function tlsContexts(): NonNullable<typeof contexts> {
  if ('unavailable' in native) throw new Error(native.unavailable)
  if (contexts === undefined) {
    const authority = makeAuthority()
    const { cert, key } = makeCertificate({ names: ['localhost'], ca: authority })
    contexts = { clientTls: native.tls({ side: 'client', ca: authority.cert }), serverTls: native.tls({ side: 'server', cert, key }) }
  }
  return contexts
}

/** The cryptography, with the world's randomness. */
function seeded(crypto: QuicCrypto, world: World): QuicCrypto {
  return new Proxy(crypto, {
    get(target, name) {
      if (name === 'random') return (byteCount: number): Uint8Array => world.random.bytes(byteCount)
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** HTTP/3 over our own QUIC, with packets, TLS and loss recovery; windows are small enough to fill up. */
export const http3OverQuic: ConformanceProtocol = {
  protocol: 'h3',
  receiveWindow,
  connect(world, { clientHandler, serverHandler, clientLimits, serverLimits }) {
    const { random } = world
    const path = { delay: random.pick([0, 1, 20]), jitter: random.pick([0, 5]), loss: random.pick([0, 0, 0.02]) }
    const windows = { streamWindow: 65_536, connectionWindow: receiveWindow }
    const quic = { initialMaxStreamData: windows.streamWindow, initialMaxData: receiveWindow, largestWindow: receiveWindow }
    const ends = quicEnds(world, path, { ...quic, keepAlive: 15_000 })
    const http: Http3Options = { extendedConnect: true }
    const { client: clientEnd, server: serverEnd, faults } = ends
    const client = new ClientConnection(
      connectionInfo('client'),
      clientHandler,
      clientEnd.connection,
      { ...http, limits: { ...windows, ...clientLimits } },
      world.now(),
    )
    const server = new ServerConnection(
      connectionInfo('server'),
      serverHandler,
      serverEnd.connection,
      { ...http, limits: { ...windows, ...serverLimits } },
      world.now(),
    )
    clientEnd.connection.application = client
    serverEnd.connection.application = server
    clientEnd.enter((now) => clientEnd.connection.start(now))
    return {
      client,
      server,
      lose(loss) {
        for (const end of [clientEnd, serverEnd]) {
          end.isSilent = true
          if (loss === 'reset')
            world.after(0, () => end.enter(() => end.connection.abandon(new NetworkError('NETWORK_ERROR', 'the connection was lost'))))
        }
      },
      faults,
    }
  },
}
