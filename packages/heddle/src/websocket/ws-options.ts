import { UsageError } from '../http/index.ts'
import { NodeServer, type IncomingMessage } from '../node/index.ts'
import { compressionChecks } from './deflate-checks.ts'
import { NodeWebSocket } from './node-web-socket.ts'
import {
  aBoolean,
  aFunction,
  anInteger,
  anObject,
  aSize,
  aString,
  aSwitch,
  aWait,
  check,
  checkOptions,
  origins,
  orNull,
  windowBits,
  type OptionChecks,
} from './option-checks.ts'
import { limitsOf } from './socket-settings.ts'
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

const checks: OptionChecks<WebSocketServerOptions> = {
  port: orNull(anInteger(0, 65_535)),
  host: orNull(aString),
  backlog: orNull(anInteger(0, Number.MAX_SAFE_INTEGER)),
  // Upgrades of others are not to be told by: their sockets have no exchange.
  server: orNull(check('a server of heddle/node', (value) => value instanceof NodeServer)),
  noServer: aBoolean,
  path: orNull(aString),
  clientTracking: aBoolean,
  handleProtocols: orNull(aFunction),
  verifyClient: orNull(aFunction),
  perMessageDeflate: aSwitch,
  maxPayload: aSize,
  maxFragments: aSize,
  closeTimeout: aWait,
  WebSocket: check('a class that extends NodeWebSocket', (value) => value === NodeWebSocket || isNodeWebSocket(value)),
  origin: origins,
  limits: anObject,
  onError: aFunction,
  allowSynchronousEvents: aBoolean,
  autoPong: aBoolean,
  skipUTF8Validation: aBoolean,
  maxBufferedChunks: aSize,
  maxPendingAutoPongs: aSize,
}

const deflateOptions: OptionChecks<PerMessageDeflate> = {
  serverNoContextTakeover: aBoolean,
  clientNoContextTakeover: aBoolean,
  serverMaxWindowBits: windowBits,
  clientMaxWindowBits: check('an integer, 9 to 15, true or false', (value) => typeof value === 'boolean' || windowBits.accepts(value)),
  threshold: compressionChecks.threshold,
  zlibDeflateOptions: anObject,
  zlibInflateOptions: anObject,
  concurrencyLimit: aSize,
}

function isNodeWebSocket(value: unknown): boolean {
  return typeof value === 'function' && value.prototype instanceof NodeWebSocket
}

/** Throws UsageError for options that are unknown or wrong, and TypeError, as ws does, unless there is one place that upgrades come from. */
export function checkServerOptions(options: WebSocketServerOptions): void {
  checkOptions('WebSocketServer', '', options, checks)
  const { port, server, noServer, autoPong, perMessageDeflate } = options
  const places = (typeof port === 'number' ? 1 : 0) + (server === undefined || server === null ? 0 : 1) + (noServer === true ? 1 : 0)
  if (places !== 1) throw new TypeError('One and only one of the "port", "server", or "noServer" options must be specified')
  if (autoPong === false) throw new UsageError('WebSocketServer: autoPong cannot be false, Pings are always answered')
  limitsOf(limitsFrom(options), 'server', 'WebSocketServer')
  if (typeof perMessageDeflate !== 'object') return
  checkOptions('WebSocketServer', 'perMessageDeflate', perMessageDeflate, deflateOptions)
  const { level, memLevel } = perMessageDeflate.zlibDeflateOptions ?? {}
  const given = { level, memLevel }
  checkOptions('WebSocketServer', 'perMessageDeflate.zlibDeflateOptions', given, zlibOptions)
}

/** Those that count. */
const zlibOptions = { level: compressionChecks.level, memLevel: compressionChecks.memoryLevel }

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
