import type { IncomingMessage, NodeServer } from '../node/index.ts'
import { checkOptionNames, UsageError, type OptionNames } from '../http/index.ts'
import type { NodeWebSocket } from './node-web-socket.ts'
import type { SocketLimits } from './socket-options.ts'
import type { UpgradeDeflate, UpgradeOptions } from './upgrade-options.ts'

/** What `verifyClient` is told. */
export interface VerifyInfo {
  /** The Origin field, '' if there is none. */
  readonly origin: string
  readonly req: IncomingMessage
  /** The connection is one of TLS. */
  readonly secure: boolean
}

/** Decides at once, or by its callback. A refusal's status is 401 if nothing else is said. */
export type VerifyClient =
  | ((info: VerifyInfo) => boolean)
  | ((
      info: VerifyInfo,
      done: (verified: boolean, code?: number, message?: string, headers?: Readonly<Record<string, string>>) => void,
    ) => void)

/** How a {@link WebSocketServer} compresses: `perMessageDeflate` of the package ws. */
export interface PerMessageDeflate {
  readonly serverNoContextTakeover?: boolean | undefined
  readonly clientNoContextTakeover?: boolean | undefined
  /** 9–15. */
  readonly serverMaxWindowBits?: number | undefined
  /** 9–15; true: as the client likes. */
  readonly clientMaxWindowBits?: number | boolean | undefined
  /** Messages under this many bytes are sent uncompressed. */
  readonly threshold?: number | undefined
  /** `level` and `memLevel` count. */
  readonly zlibDeflateOptions?: { readonly level?: number; readonly memLevel?: number; readonly [name: string]: unknown } | undefined
  /** Of no effect: memory for inflating is not held between messages. */
  readonly zlibInflateOptions?: object | undefined
  /** Of no effect: Node's thread pool bounds it. */
  readonly concurrencyLimit?: number | undefined
}

/** Options of a {@link WebSocketServer}: those of the package ws, and `origin` and `limits`. One of `port`, `server` and `noServer` must be given. */
export interface WebSocketServerOptions {
  /** Listens on this port with a server of its own, which answers everything else with 426. */
  readonly port?: number | null | undefined
  readonly host?: string | null | undefined
  readonly backlog?: number | null | undefined
  /** A server of `heddle/node`, whose upgrades it takes. */
  readonly server?: NodeServer | null | undefined
  /** Upgrades are given to it by `handleUpgrade`. */
  readonly noServer?: boolean | undefined
  /** Upgrades to other paths are refused with 400. */
  readonly path?: string | null | undefined
  /** False: no `clients`. Default true. */
  readonly clientTracking?: boolean | undefined
  /** Chooses one of the subprotocols that the client offers; false: none. Default: the first. */
  readonly handleProtocols?: ((protocols: Set<string>, request: IncomingMessage) => string | false) | null | undefined
  readonly verifyClient?: VerifyClient | null | undefined
  /** Default false. */
  readonly perMessageDeflate?: boolean | PerMessageDeflate | undefined
  /** Bytes of one message; 0: no limit. Default 16 MiB. */
  readonly maxPayload?: number | undefined
  /** Frames of one message; 0: no limit. Default 16,384. */
  readonly maxFragments?: number | undefined
  /** ms from `close` to the end. Default 5,000. */
  readonly closeTimeout?: number | undefined
  /** A class that extends {@link NodeWebSocket}, to be given to 'connection'. */
  readonly WebSocket?: typeof NodeWebSocket | undefined
  /** Not of ws: which web pages may connect, as for `upgrade`. Default: all, as with ws. */
  readonly origin?: UpgradeOptions['origin']
  /** Not of ws: other limits of a connection. */
  readonly limits?: Partial<SocketLimits> | undefined
  /** Not of ws: told what listeners of a WebSocket's events throw. Its connection is closed with 1011. Default: `console.error`. */
  readonly onError?: ((error: unknown, webSocket: NodeWebSocket) => void) | undefined
  /** Of no effect: every message is emitted as it comes. */
  readonly allowSynchronousEvents?: boolean | undefined
  /** Must not be false: Pings are always answered. */
  readonly autoPong?: boolean | undefined
  /** Of no effect: text is always checked, which costs little. */
  readonly skipUTF8Validation?: boolean | undefined
  /** Of no effect: nothing is buffered by the chunk. */
  readonly maxBufferedChunks?: number | undefined
  /** Pongs that wait to be sent. Default 64. */
  readonly maxPendingAutoPongs?: number | undefined
}

const optionNames: OptionNames<WebSocketServerOptions> = {
  port: true,
  host: true,
  backlog: true,
  server: true,
  noServer: true,
  path: true,
  clientTracking: true,
  handleProtocols: true,
  verifyClient: true,
  perMessageDeflate: true,
  maxPayload: true,
  maxFragments: true,
  closeTimeout: true,
  WebSocket: true,
  origin: true,
  limits: true,
  onError: true,
  allowSynchronousEvents: true,
  autoPong: true,
  skipUTF8Validation: true,
  maxBufferedChunks: true,
  maxPendingAutoPongs: true,
}

const deflateNames: OptionNames<PerMessageDeflate> = {
  serverNoContextTakeover: true,
  clientNoContextTakeover: true,
  serverMaxWindowBits: true,
  clientMaxWindowBits: true,
  threshold: true,
  zlibDeflateOptions: true,
  zlibInflateOptions: true,
  concurrencyLimit: true,
}

/** Throws UsageError for options that are unknown, and TypeError, as ws does, unless there is one place that upgrades come from. */
export function checkServerOptions(options: WebSocketServerOptions): void {
  checkOptionNames('WebSocketServer', '', options, optionNames)
  const { port, server, noServer, autoPong, perMessageDeflate } = options
  const places = (typeof port === 'number' ? 1 : 0) + (server === undefined || server === null ? 0 : 1) + (noServer === true ? 1 : 0)
  if (places !== 1) throw new TypeError('One and only one of the "port", "server", or "noServer" options must be specified')
  if (autoPong === false) throw new UsageError('WebSocketServer: autoPong cannot be false, Pings are always answered')
  if (typeof perMessageDeflate === 'object') checkOptionNames('WebSocketServer', 'perMessageDeflate', perMessageDeflate, deflateNames)
}

/** The limits that the options come to. */
export function limitsFrom(options: WebSocketServerOptions): Partial<SocketLimits> {
  const { maxPayload, maxFragments, closeTimeout, maxPendingAutoPongs, limits } = options
  return {
    ...(maxPayload === undefined ? undefined : { maxMessageSize: maxPayload === 0 ? Infinity : maxPayload }),
    ...(maxFragments === undefined ? undefined : { maxFragments: maxFragments === 0 ? Infinity : maxFragments }),
    ...(closeTimeout === undefined ? undefined : { closeTimeout }),
    ...(maxPendingAutoPongs === undefined ? undefined : { maxQueuedPongs: maxPendingAutoPongs }),
    ...limits,
  }
}

/** `perMessageDeflate` as `upgrade` takes it. */
export function deflateFrom(given: WebSocketServerOptions['perMessageDeflate']): boolean | UpgradeDeflate {
  if (given === undefined || typeof given === 'boolean') return given ?? false
  const { clientMaxWindowBits, zlibDeflateOptions = {}, ...rest } = given
  const { serverNoContextTakeover, clientNoContextTakeover, serverMaxWindowBits, threshold } = rest
  return {
    serverNoContextTakeover,
    clientNoContextTakeover,
    serverMaxWindowBits,
    clientMaxWindowBits: typeof clientMaxWindowBits === 'number' ? clientMaxWindowBits : undefined,
    threshold,
    level: zlibDeflateOptions.level,
    memoryLevel: zlibDeflateOptions.memLevel,
  }
}
