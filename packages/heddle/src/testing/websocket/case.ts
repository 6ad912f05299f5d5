import { constants, deflateRawSync } from 'node:zlib'
import { Opcode, type DeflateParameters, type WebSocketLimits } from '../../ws/index.ts'
import { payloadText, type PeerFrame } from './peer-frame.ts'

/**
 * What a peer sends to a WebSocket, and what has to come of it. The program behind the WebSocket answers every
 * message with itself. The headings are those of the Autobahn test suite; the cases are our own.
 */
export interface WebSocketCase {
  /** Chapter and what it is about: `2 pings and pongs`. */
  readonly heading: string
  readonly name: string
  /** Whose peer is played: the WebSocket under test has the other role. Default both. */
  readonly peer?: 'client' | 'server'
  /** permessage-deflate was agreed on. Default: it was not. */
  readonly deflate?: DeflateParameters
  readonly limits?: Partial<WebSocketLimits>
  /** Messages leave in frames of this size. */
  readonly fragmentSize?: number
  readonly frames: readonly PeerFrame[]
  /** What the program is told: `text "Hello"`, `ping 0`, `peer closes 1000 "bye"`, `over 1000 clean`, `over 1006 1002`. */
  readonly told: readonly string[]
  /** The frames the peer gets; of compressed ones, what they carry. */
  readonly answered: readonly string[]
  /** The fault must be seen when this many octets of `frames`, as a peer without a mask sends them, have come, and not before. */
  readonly failsAt?: number
}

/** What a case may have besides. */
export type CaseSettings = Pick<WebSocketCase, 'peer' | 'deflate' | 'limits' | 'fragmentSize' | 'failsAt'>

const fin = 0x80
export const rsv1 = 0x40

/** Text as it is sent. */
export function utf8(text: string): Buffer {
  return Buffer.from(text, 'utf8')
}

/** Octets in hex, blanks between them at will. */
export function hex(octets: string): Buffer {
  return Buffer.from(octets.replaceAll(' ', ''), 'hex')
}

/** `length` octets that are text, and compress a little. */
export function sample(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let i = 0, state = 1; i < length; i++) {
    state = (state * 48_271) % 2_147_483_647
    bytes[i] = 0x61 + (state % 26)
  }
  return bytes
}

function bytesOf(payload: string | Uint8Array): Uint8Array {
  return typeof payload === 'string' ? utf8(payload) : payload
}

export function frame(first: number, payload: string | Uint8Array = '', extra: Partial<PeerFrame> = {}): PeerFrame {
  return { first, payload: bytesOf(payload), ...extra }
}

export function text(payload: string | Uint8Array): PeerFrame {
  return frame(fin | Opcode.Text, payload)
}

export function binary(payload: Uint8Array): PeerFrame {
  return frame(fin | Opcode.Binary, payload)
}

export function ping(payload: string | Uint8Array = ''): PeerFrame {
  return frame(fin | Opcode.Ping, payload)
}

export function pong(payload: string | Uint8Array = ''): PeerFrame {
  return frame(fin | Opcode.Pong, payload)
}

/** A message in several frames. */
export function fragments(opcode: number, ...payloads: readonly (string | Uint8Array)[]): PeerFrame[] {
  return payloads.map((payload, i) => frame((i === 0 ? opcode : 0) | (i === payloads.length - 1 ? fin : 0), payload))
}

/** A Close with what a peer may put into it. */
export function close(code?: number, reason: string | Uint8Array = ''): PeerFrame {
  if (code === undefined) return frame(fin | Opcode.Close)
  return frame(fin | Opcode.Close, Buffer.concat([Buffer.from([code >> 8, code & 0xff]), bytesOf(reason)]))
}

/** What a message carries, compressed by itself. */
export function deflated(payload: string | Uint8Array, windowBits = 15): Buffer {
  return Buffer.from(deflateRawSync(bytesOf(payload), { finishFlush: constants.Z_SYNC_FLUSH, windowBits }).subarray(0, -4))
}

/** `payload` in pieces of `size`. */
export function pieces(payload: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.max(1, Math.ceil(payload.length / size)) }, (_, i) => payload.subarray(i * size, (i + 1) * size))
}

/** A message as the program is told it. */
export function messageLine(message: string | Uint8Array, isText: boolean = typeof message === 'string'): string {
  return `${isText ? 'text' : 'binary'} ${payloadText(bytesOf(message), isText)}`
}

/** The peer's frames, then its Close: the lines come back as they are told, and it ends well. */
export function echoes(
  heading: string,
  name: string,
  frames: readonly PeerFrame[],
  messages: readonly (string | Uint8Array)[],
  options: CaseSettings = {},
): WebSocketCase {
  const lines = messages.map((message) => messageLine(message))
  return {
    ...options,
    heading,
    name,
    frames: [...frames, close(1000)],
    told: [...lines, 'peer closes 1000 ""', 'over 1000 clean'],
    answered: [...lines, 'close 1000'],
  }
}

/** The peer's frames, the last of which breaks a rule; what came before it is answered. */
export function refused(
  heading: string,
  name: string,
  code: number,
  frames: readonly PeerFrame[],
  before: readonly string[] = [],
  options: CaseSettings = {},
): WebSocketCase {
  return {
    ...options,
    heading,
    name,
    // What is behind the fault is not looked at.
    frames: [...frames, text('ignored'), ping('ignored')],
    told: [...before, 'failing', `over 1006 ${code}`],
    answered: [...before.map((line) => line.replace(/^ping/, 'pong')), `close ${code}`],
  }
}
