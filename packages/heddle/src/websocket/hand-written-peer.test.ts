/** A WebSocket server without any of ours: the handshake and the frames are written by hand, so a test can break every rule. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { Client } from '../client/index.ts'
import { World } from '../testing/index.ts'
import { encodePeerFrame, FrameLog, frameLine } from '../testing/websocket/peer-frame.ts'
import { Opcode } from '../ws/index.ts'
import type { ConnectOptions } from './connect-options.ts'
import { WebSocket } from './web-socket.ts'

/** A socket of Node's or of the world's. */
export interface PeerSocket {
  on(event: string, listener: (value: any) => void): unknown
  write(chunk: Uint8Array): unknown
  end(): unknown
  destroy(): unknown
  resetAndDestroy?(): unknown
}

export interface PeerScript {
  /** Written as the answer; default: the 101 of a server that accepts. */
  readonly answer?: (peer: HandWrittenPeer) => string | undefined
  /** Lines of the 101 besides: `Sec-WebSocket-Protocol: chat`. */
  readonly fields?: readonly string[]
  /** Leaves with the answer, in the same write. */
  readonly behind?: Uint8Array
  /** Every frame that came, as a line, and what is done about it. */
  readonly onFrame?: (peer: HandWrittenPeer, line: string) => void
}

/** The server's end of one connection. */
export class HandWrittenPeer {
  readonly socket: PeerSocket
  readonly log: FrameLog = new FrameLog()
  /** The request's head, as it came. */
  head = ''
  closed = false
  #told = 0
  readonly #script: PeerScript

  constructor(socket: PeerSocket, script: PeerScript) {
    this.socket = socket
    this.#script = script
    socket.on('data', (chunk: Uint8Array) => this.#receive(chunk))
    socket.on('error', () => {})
    socket.on('end', () => socket.end())
    socket.on('close', () => (this.closed = true))
  }

  get lines(): string[] {
    return this.log.frames.map(frameLine)
  }

  field(name: string): string | undefined {
    return new RegExp(`^${name}: (.*)$`, 'im').exec(this.head.replaceAll('\r', ''))?.[1]
  }

  get accept(): string {
    return createHash('sha1')
      .update(`${this.field('sec-websocket-key')}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
  }

  text(text: string): void {
    this.socket.write(textFrame(text))
  }

  binary(payload: Uint8Array): void {
    this.socket.write(encodePeerFrame({ first: 0x80 | Opcode.Binary, payload }, false))
  }

  close(code: number | undefined, reason = ''): void {
    this.socket.write(closeFrame(code, reason))
  }

  #receive(chunk: Uint8Array): void {
    if (this.head.includes('\r\n\r\n')) return this.#frames(chunk)
    this.head += Buffer.from(chunk).toString('latin1')
    if (!this.head.includes('\r\n\r\n')) return
    const { answer, fields = [], behind = new Uint8Array() } = this.#script
    const usual = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', `Sec-WebSocket-Accept: ${this.accept}`]
    const text = answer === undefined ? `${[...usual, ...fields].join('\r\n')}\r\n\r\n` : answer(this)
    if (text !== undefined) this.socket.write(Buffer.concat([Buffer.from(text), behind]))
  }

  #frames(chunk: Uint8Array): void {
    this.log.add(chunk)
    for (; this.#told < this.log.frames.length; this.#told++) this.#script.onFrame?.(this, this.lines[this.#told] as string)
  }
}

export function textFrame(text: string): Buffer {
  return encodePeerFrame({ first: 0x80 | Opcode.Text, payload: Buffer.from(text) }, false)
}

export function closeFrame(code: number | undefined, reason = ''): Buffer {
  const payload = code === undefined ? Buffer.alloc(0) : Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)])
  return encodePeerFrame({ first: 0x80 | Opcode.Close, payload }, false)
}

/** Sends every message back, and answers a Close with the same code and the end of the connection. */
export function echo(peer: HandWrittenPeer, line: string): void {
  const frame = peer.log.frames.find((each) => frameLine(each) === line) ?? peer.log.frames.at(-1)
  if (frame === undefined) return
  const { opcode, payload } = frame
  peer.socket.write(encodePeerFrame({ first: 0x80 | opcode, payload }, false))
  if (opcode === Opcode.Close) peer.socket.end()
}

/** RFC 6455 §7.1.1: the server ends the connection first. */
export function endAfterClose(peer: HandWrittenPeer, line: string): void {
  if (line.startsWith('close')) peer.socket.end()
}

/** Listens at `host`, port 80, of the world. */
export function peerIn(world: World, host: string, script: PeerScript = {}, port = 80): HandWrittenPeer[] {
  const peers: HandWrittenPeer[] = []
  world.network.listen(host, port, ({ socket }) => void peers.push(new HandWrittenPeer(socket, script)))
  return peers
}

export interface Stage {
  readonly world: World
  readonly client: Client
  readonly peers: HandWrittenPeer[]
  /** What became of the WebSocket, as `watch` writes it down. */
  readonly log: string[]
  open(protocols?: string | readonly string[], options?: ConnectOptions): WebSocket
}

/** A world with a peer at `ws://peer.test/`. */
export function stage(script: PeerScript = {}): Stage {
  const world = new World()
  const client = new Client({ clock: world, connect: world.network.dial })
  const log: string[] = []
  const open: Stage['open'] = (protocols, options = {}) => watch(new WebSocket('ws://peer.test/', { client, protocols, ...options }), log)
  return { world, client, peers: peerIn(world, 'peer.test', script), log, open }
}

/** Writes down every event, with the ready state at that moment. */
export function watch(webSocket: WebSocket, log: string[]): WebSocket {
  const note = (line: string): void => void log.push(`${line} (${webSocket.readyState})`)
  webSocket.onopen = () => note('open')
  webSocket.onmessage = ({ data }) => note(`message ${typeof data === 'string' ? data : String(data)}`)
  webSocket.onerror = (event) => note(`error ${event.message}`)
  webSocket.onclose = ({ code, reason, wasClean }) => note(`close ${code} ${JSON.stringify(reason)} ${wasClean ? 'clean' : 'not clean'}`)
  return webSocket
}

test('the peer takes a handshake apart and accepts it by the example of RFC 6455 §1.3', () => {
  const world = new World()
  const [near, far] = world.link()
  const peer = new HandWrittenPeer(far, { behind: textFrame('hi') })
  let text = ''
  near.on('data', (chunk: Uint8Array) => (text += Buffer.from(chunk).toString('latin1')))
  near.write(Buffer.from('GET /chat HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'))
  world.run()
  assert.deepEqual([peer.field('host'), peer.accept], ['a', 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='])
  assert.ok(text.endsWith('\r\n\r\n\u0081\u0002hi'))
  near.write(encodePeerFrame({ first: 0x80 | Opcode.Text, payload: Buffer.from('yes') }, true))
  world.run()
  assert.deepEqual(peer.lines, ['text "yes"'])
})
