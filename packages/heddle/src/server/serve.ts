import { checkOptionNames, UsageError } from '../http/index.ts'
import { serverLimits } from '../h1/index.ts'
import { listen, systemClock } from '../io/index.ts'
import { Connections, type Acceptor } from './connections.ts'
import { expectTunnels } from '../web/index.ts'
import { FetchExchange, FetchFace } from './fetch-exchange.ts'
import { serveOptionNames } from './option-names.ts'
import type { ServeOptions } from './options.ts'
import { extendedProtocols, http1Options, http2Options, servedProtocols, tunnelledProtocols } from './protocol-options.ts'
import { Server } from './server.ts'

/**
 * Starts a server of HTTP/1.1 and HTTP/2; resolves when it listens. Rejects with the system's error
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
  const connections = new Connections({
    clock,
    acceptor: acceptor(options, face),
    http1: protocols.includes('http/1.1') ? http1 : undefined,
    http2: protocols.includes('h2') ? http2 : undefined,
    headTimeout: options.limits?.headTimeout ?? serverLimits.headTimeout,
    tunnels: extendedProtocols(options),
    onBug: face.report,
  })
  const listener = await (options.listen ?? listen)({
    clock,
    hostname: options.hostname,
    port: options.port,
    path: options.path,
    backlog: options.backlog,
    maxConnections: options.maxConnections,
    tls: tls === undefined || tls === null || Array.isArray(tls) ? tls : { ...tls, alpn: tls.alpn ?? protocols },
    handshakeTimeout: options.handshakeTimeout,
    maxHandshakes: options.maxHandshakes,
    reusePort: options.reusePort,
    exclusive: options.exclusive,
    onConnection: (accepted) => connections.accept(accepted),
    onError: face.report,
  })
  return new Server(clock, listener, connections, tls !== undefined, face.tunnels)
}

function acceptor(options: ServeOptions, face: FetchFace): Acceptor {
  const { onExchange, fetch, websocket } = options
  if (onExchange === undefined && fetch === undefined) throw new UsageError('serve needs fetch or onExchange')
  if (onExchange !== undefined && fetch !== undefined) throw new UsageError('serve takes fetch or onExchange, not both')
  if (websocket !== undefined && typeof websocket !== 'boolean') throw new UsageError('serve: websocket must be true or false')
  if (onExchange !== undefined) {
    if (typeof onExchange !== 'function') throw new UsageError('serve: onExchange must be a function')
    return onExchange
  }
  if (typeof face.handler !== 'function') throw new UsageError('serve: fetch must be a function, or an object with a method fetch')
  if (tunnelledProtocols(options).some((name) => name !== 'websocket' || options.websocket !== true)) {
    throw new UsageError('upgrades need onExchange; a fetch handler takes WebSockets, with `websocket: true`')
  }
  if (face.tunnels !== undefined) expectTunnels()
  return (exchange) => new FetchExchange(face, exchange)
}
