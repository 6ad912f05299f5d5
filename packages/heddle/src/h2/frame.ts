import type { Outbox } from '../bytes/index.ts'

/** RFC 9113 §6, RFC 8336, RFC 9218 §7.1. */
export const FrameType = {
  Data: 0x0,
  Headers: 0x1,
  Priority: 0x2,
  RstStream: 0x3,
  Settings: 0x4,
  PushPromise: 0x5,
  Ping: 0x6,
  Goaway: 0x7,
  WindowUpdate: 0x8,
  Continuation: 0x9,
  Origin: 0xc,
  PriorityUpdate: 0x10,
} as const

export const Flag = { EndStream: 0x1, Ack: 0x1, EndHeaders: 0x4, Padded: 0x8, Priority: 0x20 } as const

/** RFC 9113 §7. */
export const ErrorCode = {
  NoError: 0x0,
  ProtocolError: 0x1,
  InternalError: 0x2,
  FlowControlError: 0x3,
  SettingsTimeout: 0x4,
  StreamClosed: 0x5,
  FrameSizeError: 0x6,
  RefusedStream: 0x7,
  Cancel: 0x8,
  CompressionError: 0x9,
  ConnectError: 0xa,
  EnhanceYourCalm: 0xb,
  InadequateSecurity: 0xc,
  Http11Required: 0xd,
} as const
/** Any number the wire may carry; a peer may use codes that are not known here. */
export type ErrorCode = number

/** The RFC's words, by code. */
export const errorNames: readonly string[] = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
]

/** The RFC's word for an error code. */
export function errorName(code: ErrorCode): string {
  return errorNames[code] ?? `error 0x${code.toString(16)}`
}

/** Octets of a frame's header. */
export const frameHeaderSize = 9
/** RFC 9113 §4.2: what every peer takes. */
export const smallestMaxFrameSize = 16_384
/** RFC 9113 §6.9.1. */
export const largestWindow = 0x7fff_ffff
/** RFC 9113 §3.4: what a client's connection begins with. */
export const preface: Uint8Array = new TextEncoder().encode('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Appends a frame's header; the caller appends `length` octets of payload. */
export function writeFrameHeader(out: Outbox, length: number, type: number, flags: number, streamId: number): void {
  out.reserve(frameHeaderSize)
  putFrameHeader(out.buffer, out.length, length, type, flags, streamId)
  out.length += frameHeaderSize
}

/** Writes a frame's header to `target` at `at`. */
export function putFrameHeader(target: Uint8Array, at: number, length: number, type: number, flags: number, streamId: number): void {
  target[at] = length >>> 16
  target[at + 1] = length >>> 8
  target[at + 2] = length
  target[at + 3] = type
  target[at + 4] = flags
  target[at + 5] = streamId >>> 24
  target[at + 6] = streamId >>> 16
  target[at + 7] = streamId >>> 8
  target[at + 8] = streamId
}

/** The 32 bits at `at`, big endian. */
export function readUint32(buffer: Uint8Array, at: number): number {
  return (
    (((buffer[at] as number) << 24) |
      ((buffer[at + 1] as number) << 16) |
      ((buffer[at + 2] as number) << 8) |
      (buffer[at + 3] as number)) >>>
    0
  )
}

/** The 31 bits at `at`; the reserved bit is ignored (RFC 9113 §4.1). */
export function readUint31(buffer: Uint8Array, at: number): number {
  return readUint32(buffer, at) & 0x7fff_ffff
}

/** Appends 32 bits, big endian. */
export function writeUint32(out: Outbox, value: number): void {
  out.reserve(4)
  const { buffer, length } = out
  buffer[length] = value >>> 24
  buffer[length + 1] = value >>> 16
  buffer[length + 2] = value >>> 8
  buffer[length + 3] = value
  out.length = length + 4
}
