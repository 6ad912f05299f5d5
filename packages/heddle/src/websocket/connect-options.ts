import { Client, defaultClient, userAgent } from '../client/index.ts'
import { isToken, UsageError, type Fields } from '../http/index.ts'
import { fieldsFrom, type HeadersInit } from '../web/index.ts'
import { offerFields, type Agreement, type DeflateOffer, type DeflateParameters, type HandshakeOffer } from '../ws/index.ts'
import type { CompressionOptions } from './codec.ts'
import { deflateChecks } from './deflate-checks.ts'
import { aDuration, aFragmentSize, anObject, aString, aSwitch, check, checkOptions, headers, type OptionChecks } from './option-checks.ts'
import type { SocketLimits, SocketOptions } from './socket-options.ts'
import { checkSocketOptions, limitsOf } from './socket-settings.ts'
import { syntaxError, webSocketTarget, type WebSocketTarget } from './url.ts'

/** How a client compresses: what it asks for (RFC 7692), and how hard it tries. */
export interface ConnectDeflate extends DeflateOffer, CompressionOptions {
  /** Messages under this many bytes are sent uncompressed. Default 128 with context takeover, else 1,024. */
  readonly threshold?: number | undefined
}

/** How a client opens a WebSocket. Times are in ms, sizes in bytes. */
export interface ConnectOptions {
  /** The client over whose connections it goes. Default: the one `fetch` uses. */
  readonly client?: Client | undefined
  /** Subprotocols, the preferred one first. The server has to choose one of them. Default: none. */
  readonly protocols?: string | readonly string[] | undefined
  /** Fields of the handshake, such as `authorization` and `cookie`. Those of the handshake itself, and `host`, cannot be given. */
  readonly headers?: HeadersInit | undefined
  /** The Origin field, which browsers send and programs do not. Default: none. */
  readonly origin?: string | undefined
  /** Its abort ends the attempt to open, with its reason. Once open it means nothing. */
  readonly signal?: AbortSignal | null | undefined
  /** Offers permessage-deflate; the server decides. Default true, as browsers do. */
  readonly deflate?: boolean | ConnectDeflate | undefined
  /** What the connection may cost, where it shall differ from the defaults. */
  readonly limits?: Partial<SocketLimits> | undefined
  /** Messages leave in frames of at most this many bytes. Default Infinity: one message, one frame. */
  readonly fragmentSize?: number | undefined
  /** From the call to the open WebSocket, waiting for a connection included. Default 30 s. On excess it fails with a TimeoutError. */
  readonly handshakeTimeout?: number | undefined
}

/** Every option, and what it can be. */
const checks: OptionChecks<ConnectOptions> = {
  client: check('a Client of heddle', (value) => value instanceof Client),
  protocols: check('a subprotocol or a list of them', (value) => typeof value === 'string' || isIterable(value)),
  headers,
  origin: aString,
  signal: check('an AbortSignal or null', (value) => value === null || value instanceof AbortSignal),
  deflate: aSwitch,
  limits: anObject,
  fragmentSize: aFragmentSize,
  handshakeTimeout: aDuration,
}

/** Stands for what will be agreed on, so that the rest can be checked before. */
const anyDeflate: DeflateParameters = {
  serverNoContextTakeover: false,
  clientNoContextTakeover: false,
  serverMaxWindowBits: 15,
  clientMaxWindowBits: 15,
}

/** What belongs to the connection, to the message's framing or to the handshake is not the program's to say. */
const reserved = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** What a client is going to ask, and what the socket will be like that comes of it. */
export class Handshake {
  readonly target: WebSocketTarget
  readonly client: Client
  readonly offer: HandshakeOffer
  /** Of the request. */
  readonly fields: Fields
  readonly signal: AbortSignal | undefined
  readonly timeout: number
  readonly #options: ConnectOptions
  readonly #deflate: ConnectDeflate | undefined

  /** Throws SyntaxError (DOMException) for a bad URL or subprotocol, UsageError or TypeError for bad options. `face` is who was asked. */
  constructor(face: string, url: string | URL, options: ConnectOptions) {
    checkOptions(face, '', options, checks)
    const { client, handshakeTimeout = 30_000, signal } = options
    this.#options = options
    this.target = webSocketTarget(url)
    this.#deflate = deflateOf(face, options.deflate)
    this.offer = { protocols: protocolsOf(options.protocols), deflate: this.#deflate }
    this.fields = requestFields(face, this.target, this.offer, options)
    this.signal = signal ?? undefined
    this.timeout = handshakeTimeout
    this.client = client ?? defaultClient()
    limitsOf(options.limits, 'client', face)
    checkSocketOptions(this.socketOptions({ protocol: '', extensions: '', deflate: this.#deflate && anyDeflate }))
  }

  /** The options of the socket that `agreement` leads to. */
  socketOptions({ protocol, extensions, deflate: parameters }: Agreement): SocketOptions {
    const { limits, fragmentSize } = this.#options
    const { level, memoryLevel, contextSize, threshold } = this.#deflate ?? {}
    return {
      role: 'client',
      protocol,
      extensions,
      deflate: parameters === undefined ? undefined : { parameters, level, memoryLevel, contextSize, threshold },
      limits,
      fragmentSize,
      clock: this.client.clock,
    }
  }
}

/** WHATWG WebSockets, constructor: tokens, none of them twice, whatever their case. */
function protocolsOf(given: ConnectOptions['protocols'] = []): readonly string[] {
  const protocols = typeof given === 'string' ? [given] : [...given].map(String)
  const seen = new Set<string>()
  for (const protocol of protocols) {
    if (!isToken(protocol)) throw syntaxError(`the subprotocol ${JSON.stringify(protocol)} is no token`)
    const lower = protocol.toLowerCase()
    if (seen.has(lower)) throw syntaxError(`the subprotocol ${JSON.stringify(protocol)} is given twice`)
    seen.add(lower)
  }
  return protocols
}

function deflateOf(face: string, deflate: ConnectOptions['deflate'] = true): ConnectDeflate | undefined {
  if (deflate === false) return undefined
  if (deflate === true) return {}
  checkOptions(face, 'deflate', deflate, deflateChecks)
  return deflate
}

function requestFields(
  face: string,
  { authorization }: WebSocketTarget,
  offer: HandshakeOffer,
  { headers: given, origin }: ConnectOptions,
): Fields {
  const own = given === undefined ? [] : fieldsFrom(given)
  const names = new Set<string>()
  for (let i = 0; i < own.length; i += 2) {
    const name = own[i] as string
    if (reserved.has(name) || name.startsWith('sec-websocket-'))
      throw new UsageError(`${face}: the header ${name} is not the program's to give`)
    names.add(name)
  }
  if (origin !== undefined && names.has('origin')) throw new UsageError(`${face}: origin is given twice, as an option and as a header`)
  const added: Record<string, string> = {}
  if (origin !== undefined) added['origin'] = origin
  if (authorization !== undefined && !names.has('authorization')) added['authorization'] = authorization
  if (!names.has('user-agent')) added['user-agent'] = userAgent
  return [...fieldsFrom(added), ...own, ...offerFields(offer)]
}

function isIterable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Iterable<unknown>>)[Symbol.iterator] === 'function'
}
