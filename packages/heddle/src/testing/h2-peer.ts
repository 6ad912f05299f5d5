import { requestHead, type Head } from '../http/index.ts'
import {
  ClientConnection,
  DebugFields,
  describeDebugFrame,
  literalBlock,
  preface,
  readDebugFrame,
  ServerConnection,
  writeDebugFrame,
  type DebugFrame,
  type Http2Options,
} from '../h2/index.ts'
import type { EngineLoop, EngineLoopOptions } from './engine-loop.ts'
import { FramePeer, script, type FrameCodec, type ScriptOptions } from './script.ts'
import type { RecordingConnection } from './recording.ts'
import type { World } from './world.ts'

/** HTTP/2 frames for {@link FramePeer}. */
export const http2Frames: FrameCodec<DebugFrame> = {
  read: readDebugFrame,
  write: writeDebugFrame,
  describe: describeDebugFrame,
}

/** What a frame must be: its type, and each of the members given here. */
export type WantedFrame = {
  [T in DebugFrame['type']]: { readonly type: T } & Partial<Extract<DebugFrame, { type: T }>>
}[DebugFrame['type']]

/** A scripted peer that speaks HTTP/2: frames, and the field blocks in them. */
export class Http2Peer extends FramePeer<DebugFrame> {
  readonly #fields: DebugFields
  readonly #role: 'client' | 'server'

  constructor(peer: FramePeer<DebugFrame>['peer'], role: 'client' | 'server') {
    super(peer, http2Frames)
    this.#fields = new DebugFields()
    this.#role = role
  }

  /** Takes the next frame, which must have the members of `wanted`. */
  wantFrame<T extends DebugFrame['type']>(why: string, wanted: Extract<WantedFrame, { type: T }>): Extract<DebugFrame, { type: T }> {
    const frame = this.want(why, (seen) =>
      Object.entries(wanted).every(([name, value]) => isSame((seen as unknown as Record<string, unknown>)[name], value)),
    )
    return frame as Extract<DebugFrame, { type: T }>
  }

  /** Takes a whole field block: HEADERS and what continues it. `lines`: its field lines, pseudo-header fields first. */
  wantHead(why: string, streamId: number, end: boolean, lines?: readonly string[]): string[] {
    return this.#wantBlock(why, streamId, end, this.#role === 'client' ? 'response' : 'request', lines)
  }

  wantTrailers(why: string, streamId: number, lines?: readonly string[]): string[] {
    return this.#wantBlock(why, streamId, true, 'trailers', lines)
  }

  /** Takes DATA until `byteCount` octets of `streamId` came, other frames not; returns them. */
  wantContent(why: string, streamId: number, byteCount: number, end: boolean): Buffer {
    const parts: Uint8Array[] = []
    let length = 0
    for (let ended = false; length < byteCount || ended !== end;) {
      const frame = this.wantFrame(why, { type: 'DATA', streamId })
      parts.push(frame.data)
      length += frame.data.length
      ended = frame.end
      if (ended) break
    }
    const content = Buffer.concat(parts)
    if (content.length !== byteCount) throw new Error(`${why}: wanted ${byteCount} octets of content, ${content.length} came`)
    return content
  }

  #wantBlock(why: string, streamId: number, end: boolean, of: 'request' | 'response' | 'trailers', lines?: readonly string[]): string[] {
    let frame: Extract<DebugFrame, { type: 'HEADERS' | 'CONTINUATION' }> = this.wantFrame(why, { type: 'HEADERS', streamId, end })
    const parts = [frame.block]
    while (!frame.endHeaders) {
      frame = this.wantFrame(why, { type: 'CONTINUATION', streamId })
      parts.push(frame.block)
    }
    const read = this.#fields.read(Buffer.concat(parts), of)
    if (read === undefined) throw new Error(`${why}: the field block cannot be decoded`)
    if (lines !== undefined && !isSame(read, lines)) throw new Error(`${why}: wanted ${lines.join(' ')}, received ${read.join(' ')}`)
    return read
  }

  /** Nothing more came, and the connection stands. */
  wantIdle(why: string): void {
    this.peer.wantIdle(why)
  }

  /** GOAWAY with `code`, and then the other side closed. */
  wantGoaway(why: string, code: number): Extract<DebugFrame, { type: 'GOAWAY' }> {
    const frame = this.wantFrame(why, { type: 'GOAWAY', code })
    this.peer.wantClose(why, 'end')
    return frame
  }

  wantReset(why: string, streamId: number, code: number): void {
    this.wantFrame(why, { type: 'RST_STREAM', streamId, code })
  }

  /** Sends a field block of plain literals. */
  sendHead(streamId: number, fields: readonly string[], end: boolean): this {
    return this.send({ type: 'HEADERS', streamId, block: literalBlock(fields), end, endHeaders: true })
  }

  sendContent(streamId: number, content: string | Uint8Array, end: boolean): this {
    return this.send({ type: 'DATA', streamId, data: Buffer.from(content as string, 'latin1'), end })
  }
}

function isSame(a: unknown, b: unknown): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.from(a).equals(b)
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => isSame(one, b[i]))
  return Object.is(a, b)
}

export interface Http2Script<E> {
  readonly engine: E
  readonly peer: Http2Peer
  readonly connection: RecordingConnection
  readonly loop: EngineLoop
}

type PeerOptions = Pick<ScriptOptions, 'handler'> &
  EngineLoopOptions & {
    readonly options?: Http2Options
    /** What the peer's first SETTINGS say. */
    readonly settings?: readonly (readonly [id: number, value: number])[]
    /** False: preface and SETTINGS are the test's. Default true: they are exchanged. */
    readonly handshake?: boolean
  }

/** A server's engine with a scripted client, by default with SETTINGS exchanged. */
export function serverScript(world: World, options: PeerOptions = {}): Http2Script<ServerConnection> {
  const { settings = [], handshake = true } = options
  const { engine, peer, connection, loop } = script(
    world,
    (info, handler, now) => new ServerConnection(info, handler, options.options ?? {}, now),
    { ...options, role: 'server' },
  )
  const http2 = new Http2Peer(peer, 'client')
  if (handshake) {
    peer.send(preface)
    http2.send({ type: 'SETTINGS', ack: false, settings }, { type: 'SETTINGS', ack: true, settings: [] })
    http2.wantFrame("the server's SETTINGS", { type: 'SETTINGS', ack: false })
    http2.wantFrame('the connection window raised', { type: 'WINDOW_UPDATE', streamId: 0 })
    http2.wantFrame('an acknowledgement', { type: 'SETTINGS', ack: true })
  }
  return { engine, peer: http2, connection, loop }
}

/** A client's engine with a scripted server, by default with SETTINGS exchanged. */
export function clientScript(world: World, options: PeerOptions = {}): Http2Script<ClientConnection> {
  const { settings = [], handshake = true } = options
  const { engine, peer, connection, loop } = script(
    world,
    (info, handler, now) => new ClientConnection(info, handler, options.options ?? {}, now),
    { ...options, role: 'client' },
  )
  const http2 = new Http2Peer(peer, 'server')
  if (handshake) {
    peer.want('the preface', preface)
    http2.send({ type: 'SETTINGS', ack: false, settings }, { type: 'SETTINGS', ack: true, settings: [] })
    http2.wantFrame("the client's SETTINGS", { type: 'SETTINGS', ack: false })
    http2.wantFrame('the connection window raised', { type: 'WINDOW_UPDATE', streamId: 0 })
    http2.wantFrame('an acknowledgement', { type: 'SETTINGS', ack: true })
  }
  return { engine, peer: http2, connection, loop }
}

/** The lines of a plain request. */
export const getFields: readonly string[] = [':method', 'GET', ':scheme', 'http', ':authority', 'origin.test', ':path', '/']
export const postFields: readonly string[] = [':method', 'POST', ':scheme', 'http', ':authority', 'origin.test', ':path', '/']

export function getHead(path = '/', fields: readonly string[] = []): Head {
  return requestHead('GET', 'http', 'origin.test', path, fields)
}
