import { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import { CancelReason, reasonPhrase, responseHead, UsageError, type Address, type Fields } from '../http/index.ts'
import { createServer, UpgradeSocket, type IncomingMessage, type NodeServer, type ServerResponse } from '../node/index.ts'
import { fieldsFrom } from '../web/index.ts'
import { agree, type Agreement, type Refusal } from './agreement.ts'
import { NodeWebSocket } from './node-web-socket.ts'
import { refuseUpgrade } from './refuse-upgrade.ts'
import { Socket } from './socket.ts'
import type { SocketLimits } from './socket-options.ts'
import { Verification } from './verification.ts'
import { checkServerOptions, deflateFrom, limitsFrom, type WebSocketServerOptions } from './ws-options.ts'
import type { UpgradeDeflate } from './upgrade-options.ts'

/** Told of the WebSocket that an upgrade led to. */
export type UpgradeDone = (webSocket: NodeWebSocket, request: IncomingMessage) => void

/** The events of a {@link WebSocketServer}. What emits 'connection' may give its listeners more. */
export interface WebSocketServerEvents {
  connection: [webSocket: NodeWebSocket, request: IncomingMessage, ...more: unknown[]]
  headers: [lines: string[], request: IncomingMessage]
  wsClientError: [error: Error, socket: UpgradeSocket, request: IncomingMessage]
  listening: []
  error: [error: unknown]
  close: []
}

/**
 * The server of the package ws, over HTTP/1.1, HTTP/2 and HTTP/3: for programs that are written for it. Events: 'connection'
 * (webSocket, request), 'headers' (lines, request), 'wsClientError' (error, socket, request), 'listening', 'error', 'close'.
 *
 * ```ts
 * const server = createServer(app) // of heddle/node
 * const wss = new WebSocketServer({ noServer: true })
 * server.on('upgrade', (request, socket, head) => {
 *   wss.handleUpgrade(request, socket, head, (webSocket) => wss.emit('connection', webSocket, request))
 * })
 * server.listen(8080)
 * ```
 */
export class WebSocketServer extends EventEmitter<WebSocketServerEvents> {
  readonly options: WebSocketServerOptions
  /** The WebSockets that are not closed. There is no such set with `clientTracking: false`, whatever its type says. */
  readonly clients: Set<NodeWebSocket>
  readonly #limits: Partial<SocketLimits>
  readonly #deflate: boolean | UpgradeDeflate
  readonly #server: NodeServer | undefined
  /** It was made here. */
  readonly #ownsServer: boolean
  #state: 'running' | 'closing' | 'closed'
  #release: () => void
  /** Others' servers that have WebSockets of this one, and tell when they close. */
  readonly #watched: Map<EventEmitter, () => void>
  /** All that are open, and their server. */
  readonly #open: Map<NodeWebSocket, unknown>

  constructor(options: WebSocketServerOptions, callback?: () => void) {
    super()
    checkServerOptions(options)
    this.options = options
    this.clients = (options.clientTracking === false ? undefined : new Set()) as Set<NodeWebSocket>
    this.#limits = limitsFrom(options)
    this.#deflate = deflateFrom(options.perMessageDeflate)
    this.#state = 'running'
    this.#release = () => {}
    this.#watched = new Map()
    this.#open = new Map()
    const { port, host, backlog, server } = options
    this.#ownsServer = typeof port === 'number'
    this.#server = this.#ownsServer ? createServer({ websocket: true }, refuseRequest) : (server ?? undefined)
    if (this.#server !== undefined) this.#attach(this.#server)
    if (!this.#ownsServer) return
    if (callback !== undefined) this.once('listening', callback)
    this.#server?.listen({ port: port as number, host: host ?? undefined, backlog: backlog ?? undefined })
  }

  #attach(server: NodeServer): void {
    const listening = (): boolean => this.emit('listening')
    const failed = (error: unknown): boolean => this.emit('error', error)
    const upgrade = (request: IncomingMessage, socket: UpgradeSocket, head: Buffer): void => {
      this.handleUpgrade(request, socket, head, (webSocket) => this.emit('connection', webSocket, request))
    }
    server.on('listening', listening).on('error', failed).on('upgrade', upgrade)
    this.#release = () => server.off('listening', listening).off('error', failed).off('upgrade', upgrade)
  }

  /** Of the server it listens with. Throws with `noServer`. */
  address(): Address | string | null {
    if (this.#server === undefined) throw new Error('The server is operating in "noServer" mode')
    return this.#server.address()
  }

  /** False: an upgrade is refused with 400. To be overridden: this looks at `path` only. */
  shouldHandle(request: IncomingMessage): boolean {
    const { path } = this.options
    if (path === undefined || path === null) return true
    const url = request.url as string
    const query = url.indexOf('?')
    return (query < 0 ? url : url.slice(0, query)) === path
  }

  /**
   * Accepts an upgrade of a server of `heddle/node`, or refuses it. `done` gets the WebSocket; it has to be
   * told to those who wait for one: `wss.emit('connection', webSocket, request)`.
   */
  handleUpgrade(request: IncomingMessage, socket: Duplex, _head: Buffer, done: UpgradeDone): void {
    if (!(socket instanceof UpgradeSocket)) {
      throw new UsageError('WebSocketServer: the socket must be one of an upgrade of heddle/node')
    }
    if (this.#state !== 'running') return refuseUpgrade(socket, { status: 503, reason: 'The server is closing.', fields: [] })
    if (!this.shouldHandle(request))
      return this.#refuse(request, socket, { status: 400, reason: 'There is no WebSocket here.', fields: [] })
    const { origin = '*', verifyClient } = this.options
    const protocol = (offered: readonly string[]): string | undefined => this.#choose(offered, request)
    const agreed = agree('WebSocketServer', socket.head, { origin, protocol, deflate: this.#deflate, limits: this.#limits }, undefined)
    if ('status' in agreed) return this.#refuse(request, socket, agreed)
    if (verifyClient === undefined || verifyClient === null) return this.#complete(request, socket, agreed, done)
    new Verification(verifyClient, request, socket.head, (refusal) => {
      // The client may have gone, or the server stopped, while it was thought of.
      if (socket.destroyed) return
      if (refusal !== undefined) refuseUpgrade(socket, refusal)
      else if (this.#state !== 'running') refuseUpgrade(socket, { status: 503, reason: 'The server is closing.', fields: [] })
      else this.#complete(request, socket, agreed, done)
    }).start()
  }

  #choose(offered: readonly string[], request: IncomingMessage): string | undefined {
    const { handleProtocols } = this.options
    if (offered.length === 0) return undefined
    if (handleProtocols === undefined || handleProtocols === null) return offered[0]
    return handleProtocols(new Set(offered), request) || undefined
  }

  #refuse(request: IncomingMessage, socket: UpgradeSocket, answer: Refusal): void {
    // Whoever listens answers by himself.
    if (this.listenerCount('wsClientError') > 0) this.emit('wsClientError', new Error(answer.reason), socket, request)
    else refuseUpgrade(socket, answer)
  }

  #complete(request: IncomingMessage, socket: UpgradeSocket, agreed: Agreement, done: UpgradeDone): void {
    const fields = this.#answerFields(request, agreed.fields)
    const exchange = socket.takeOver()
    const below = new Socket(exchange, agreed.options)
    try {
      exchange.sendHead(responseHead(200, fields), false)
    } catch (error) {
      exchange.cancel(CancelReason.InternalError)
      throw error
    }
    below.open()
    const { WebSocket = NodeWebSocket, onError } = this.options
    const webSocket = new WebSocket(below, onError)
    this.#open.set(webSocket, socket.server)
    if (this.options.clientTracking !== false) this.clients.add(webSocket)
    webSocket.once('close', () => this.#closedOne(webSocket, socket))
    if (socket.server instanceof EventEmitter && !this.#ownsServer) this.#watch(socket.server)
    try {
      done(webSocket, request)
    } catch (error) {
      // Nobody may have set it up.
      webSocket.close(1011)
      throw error
    }
  }

  /** The fields of the answer, with what listeners of 'headers' make of them. */
  #answerFields(request: IncomingMessage, fields: Fields): Fields {
    if (this.listenerCount('headers') === 0) return fields
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
    for (let i = 0; i < fields.length; i += 2) lines.push(`${fields[i]}: ${fields[i + 1]}`)
    this.emit('headers', lines, request)
    return fieldsOf(lines)
  }

  /** Closes the WebSockets of a server that closes. */
  #watch(server: EventEmitter): void {
    if (this.#watched.has(server)) return
    const closing = (): void => {
      for (const [webSocket, from] of this.#open) if (from === server) webSocket.close(1001)
    }
    this.#watched.set(server, closing)
    server.on('closing', closing)
  }

  #closedOne(webSocket: NodeWebSocket, socket: UpgradeSocket): void {
    socket.destroy()
    this.#open.delete(webSocket)
    if (this.options.clientTracking !== false) this.clients.delete(webSocket)
    this.#maybeClosed()
  }

  /**
   * Takes no more upgrades, and stops to listen if the server was made here; another's has to be closed by
   * itself. The WebSockets are left alone. 'close' is emitted when all of them are closed (with `clientTracking: false`
   * and another's server: at once), and `callback` called then, or with an error if it is closed already.
   */
  close(callback?: (error?: Error) => void): void {
    if (this.#state === 'closed') {
      if (callback !== undefined) process.nextTick(callback, new Error('The server is not running'))
      return
    }
    if (callback !== undefined) this.once('close', callback)
    if (this.#state === 'closing') return
    this.#state = 'closing'
    this.#release()
    if (this.#ownsServer) this.#server?.close({ deadline: Infinity }, () => this.#finish())
    else process.nextTick(() => this.#maybeClosed())
  }

  #maybeClosed(): void {
    if (this.#state !== 'closing' || this.#ownsServer) return
    if (this.options.clientTracking === false || this.clients.size === 0) this.#finish()
  }

  #finish(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    for (const [server, closing] of this.#watched) server.off('closing', closing)
    this.#watched.clear()
    this.emit('close')
  }
}

/** What a server of its own answers to everything that is no upgrade. */
function refuseRequest(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(426, { 'content-type': 'text/plain;charset=UTF-8', connection: 'upgrade', upgrade: 'websocket' })
  response.end(`${reasonPhrase(426)}\n`)
}

/** The fields in the lines of a head, but for the first and those that the engine writes. */
function fieldsOf(lines: readonly string[]): Fields {
  const pairs = lines.slice(1).map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).trim()]
  })
  return fieldsFrom(pairs.filter(([name]) => !/^(?:upgrade|connection|sec-websocket-accept)$/i.test(name)))
}
