import { UsageError } from '../http/index.ts'
import { serverLimits, type Http1Options } from '../h1/index.ts'
import { listen, systemClock } from '../io/index.ts'
import { Connections, type Acceptor } from './connections.ts'
import { FetchExchange, FetchFace } from './fetch-exchange.ts'
import type { ServeOptions } from './options.ts'
import { Server } from './server.ts'

/**
 * Starts a server; resolves when it listens. Rejects with the system's error (EADDRINUSE, EACCES…),
 * or UsageError for options that contradict each other.
 *
 * ```ts
 * await using server = await serve({ port: 8080, fetch: () => new Response('hello') })
 * ```
 */
export async function serve(options: ServeOptions): Promise<Server> {
  const { clock = systemClock(), tls } = options
  checkLimits(options.limits)
  const face = new FetchFace(options)
  const connections = new Connections(clock, http1Options(options, clock), acceptor(options, face), face.report)
  const listener = await (options.listen ?? listen)({
    clock,
    hostname: options.hostname,
    port: options.port,
    path: options.path,
    backlog: options.backlog,
    maxConnections: options.maxConnections,
    tls,
    handshakeTimeout: options.handshakeTimeout,
    maxHandshakes: options.maxHandshakes,
    reusePort: options.reusePort,
    exclusive: options.exclusive,
    onConnection: (accepted) => connections.accept(accepted),
    onError: face.report,
  })
  return new Server(clock, listener, connections, tls !== undefined)
}

function acceptor(options: ServeOptions, face: FetchFace): Acceptor {
  const { onExchange, fetch } = options
  if ((onExchange === undefined) === (fetch === undefined)) throw new UsageError('serve needs either fetch or onExchange')
  if (onExchange !== undefined) return onExchange
  if (options.upgrades !== undefined && options.upgrades.length > 0) throw new UsageError('upgrades need onExchange')
  return (exchange) => new FetchExchange(face, exchange)
}

function http1Options(options: ServeOptions, clock: { httpDate(): string }): Http1Options {
  return {
    date: clock,
    ...(options.limits === undefined ? undefined : { limits: options.limits }),
    ...(options.upgrades === undefined ? undefined : { upgrades: options.upgrades }),
    ...(options.halfOpen === undefined ? undefined : { halfOpen: options.halfOpen }),
    ...(options.websocketAccept === undefined ? undefined : { websocketAccept: options.websocketAccept }),
  }
}

function checkLimits(limits: ServeOptions['limits']): void {
  for (const [name, value] of Object.entries(limits ?? {})) {
    if (!(name in serverLimits)) throw new UsageError(`there is no limit named ${name}`)
    if (typeof value !== 'number' || !(value >= 0)) throw new UsageError(`the limit ${name} must be a number from 0 on`)
  }
}
