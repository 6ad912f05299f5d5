import { isIP } from 'node:net'
import { checkOptionNames, UsageError } from '../http/index.ts'
import { serverLimits } from '../h1/index.ts'
import { listen, listenQuic, systemClock, type Clock, type Listener, type QuicListener } from '../io/index.ts'
import { Advertiser } from './advertiser.ts'
import { Connections, type Acceptor } from './connections.ts'
import { expectTunnels } from '../web/index.ts'
import { FetchExchange, FetchFace } from './fetch-exchange.ts'
import { serveOptionNames } from './option-names.ts'
import type { ServeOptions } from './options.ts'
import type { Http3Options } from '../h3/index.ts'
import {
  extendedProtocols,
  http1Options,
  http2Options,
  http3Options,
  quicOptions,
  servedProtocols,
  tunnelledProtocols,
  type ProtocolName,
} from './protocol-options.ts'
import { Server } from './server.ts'

/**
 * Starts a server of HTTP/1.1 and HTTP/2, and of HTTP/3 if it is among the `protocols`; resolves when it listens. Rejects with the system's error
 * (EADDRINUSE, EACCES…), or UsageError for options that contradict each other or are none.
 *
 * ```ts
 * await using server = await serve({ port: 8080, fetch: () => new Response('hello') })
 * ```
 */
export async function serve(options: ServeOptions): Promise<Server> {
  checkOptionNames('serve', '', options, serveOptionNames)
  const { clock = systemClock(), tls } = options
  const face = new FetchFace(options)
  const protocols = servedProtocols(options)
  const http1 = http1Options(options, clock)
  const http2 = http2Options(options, clock)
  const http3 = http3Options(options, clock)
  const connections = new Connections({
    clock,
    acceptor: acceptor(options, face),
    http1: protocols.includes('http/1.1') ? http1 : undefined,
    http2: protocols.includes('h2') ? http2 : undefined,
    http3: protocols.includes('h3') ? http3 : undefined,
    headTimeout: options.limits?.headTimeout ?? serverLimits.headTimeout,
    tunnels: extendedProtocols(options),
    onBug: face.report,
  })
  const places = await openPlaces(options, protocols, connections, http3, face, clock)
  const { listener, quic } = places
  if (quic !== undefined && listener !== undefined && options.altSvc !== false) face.advertiser = new Advertiser(quic.address.port)
  return new Server(clock, listener, quic, connections, tls !== undefined, face.tunnels)
}

interface Places {
  readonly listener: Listener | undefined
  readonly quic: QuicListener | undefined
}

/** Tries with a free port of TCP, until the one of UDP with its number is free, too. */
const mostTries = 10

/** Listens by TCP, by UDP, or by both at one port number. */
async function openPlaces(
  options: ServeOptions,
  protocols: readonly ProtocolName[],
  connections: Connections,
  http3: Http3Options,
  face: FetchFace,
  clock: Clock,
): Promise<Places> {
  const byTcp = protocols.filter((name) => name !== 'h3')
  let quic: QuicListener | undefined
  const heldByUdp = (): number => quic?.connections ?? 0
  for (let attempt = 1; ; attempt++) {
    const listener = byTcp.length === 0 ? undefined : await openTcp(options, byTcp, connections, heldByUdp, face, clock)
    if (byTcp.length === protocols.length) return { listener, quic: undefined }
    try {
      quic = await openQuic(options, listener, connections, http3, face, clock)
      return { listener, quic }
    } catch (error) {
      const freed = listener?.stop()
      listener?.destroyConnections()
      await freed
      const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      if (!isTaken || (options.port ?? 0) !== 0 || attempt === mostTries) throw error
    }
  }
}

function openTcp(
  options: ServeOptions,
  protocols: readonly ProtocolName[],
  connections: Connections,
  heldByUdp: () => number,
  face: FetchFace,
  clock: Clock,
): Promise<Listener> {
  const { tls } = options
  return (options.listen ?? listen)({
    clock,
    hostname: options.hostname,
    port: options.port,
    path: options.path,
    backlog: options.backlog,
    maxConnections: options.maxConnections,
    heldElsewhere: protocols.length === servedProtocols(options).length ? undefined : heldByUdp,
    tls: tls === undefined || tls === null || Array.isArray(tls) ? tls : { ...tls, alpn: tls.alpn ?? protocols },
    handshakeTimeout: options.handshakeTimeout,
    maxHandshakes: options.maxHandshakes,
    reusePort: options.reusePort,
    exclusive: options.exclusive,
    onConnection: (accepted) => connections.accept(accepted),
    onError: face.report,
  })
}

function openQuic(
  options: ServeOptions,
  listener: Listener | undefined,
  connections: Connections,
  http3: Http3Options,
  face: FetchFace,
  clock: Clock,
): Promise<QuicListener> {
  const { tls = {}, hostname, maxConnections, maxHandshakes, reusePort, quicKey } = options
  return listenQuic({
    clock,
    // A name has one address or more: the one that TCP has.
    hostname:
      listener === undefined || hostname === undefined || hostname === '' || isIP(hostname) !== 0 ? hostname : listener.address.address,
    port: listener?.address.port ?? options.port ?? 0,
    tls,
    alpn: ['h3'],
    maxConnections,
    heldElsewhere: listener && (() => listener.connections),
    maxHandshakes,
    reusePort,
    key: quicKey,
    quic: quicOptions(http3, options),
    onConnection: (accepted) => connections.acceptQuic(accepted),
    onError: face.report,
  })
}

function acceptor(options: ServeOptions, face: FetchFace): Acceptor {
  const { onExchange, fetch, websocket } = options
  if (onExchange === undefined && fetch === undefined) throw new UsageError('serve needs fetch or onExchange')
  if (onExchange !== undefined && fetch !== undefined) throw new UsageError('serve takes fetch or onExchange, not both')
  if (websocket !== undefined && typeof websocket !== 'boolean') throw new UsageError('serve: websocket must be true or false')
  if (onExchange !== undefined) {
    if (typeof onExchange !== 'function') throw new UsageError('serve: onExchange must be a function')
    return (exchange) => {
      try {
        return onExchange(exchange)
      } catch (error) {
        // The exchange is cancelled, and there is no handler that could be told why.
        face.report(error)
        throw error
      }
    }
  }
  if (typeof face.handler !== 'function') throw new UsageError('serve: fetch must be a function, or an object with a method fetch')
  if (tunnelledProtocols(options).some((name) => name !== 'websocket' || options.websocket !== true)) {
    throw new UsageError('upgrades need onExchange; a fetch handler takes WebSockets, with `websocket: true`')
  }
  if (face.tunnels !== undefined) expectTunnels()
  return (exchange) => new FetchExchange(face, exchange)
}
