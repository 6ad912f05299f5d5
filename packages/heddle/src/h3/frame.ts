import { varintSize, writeVarint } from '../bytes/index.ts'

/** RFC 9114 §7.2, RFC 9218 §7.2, RFC 9412 §2. */
export const FrameType = {
  Data: 0x0,
  Headers: 0x1,
  CancelPush: 0x3,
  Settings: 0x4,
  PushPromise: 0x5,
  Goaway: 0x7,
  Origin: 0xc,
  MaxPushId: 0xd,
  PriorityUpdate: 0xf0700,
  PushPriorityUpdate: 0xf0701,
} as const

/** RFC 9114 §6.2, RFC 9204 §4.2. */
export const StreamType = { Control: 0x0, Push: 0x1, Encoder: 0x2, Decoder: 0x3 } as const

/** RFC 9114 §8.1, RFC 9204 §6. */
export const ErrorCode = {
  NoError: 0x100,
  GeneralProtocolError: 0x101,
  InternalError: 0x102,
  StreamCreationError: 0x103,
  ClosedCriticalStream: 0x104,
  FrameUnexpected: 0x105,
  FrameError: 0x106,
  ExcessiveLoad: 0x107,
  IdError: 0x108,
  SettingsError: 0x109,
  MissingSettings: 0x10a,
  RequestRejected: 0x10b,
  RequestCancelled: 0x10c,
  RequestIncomplete: 0x10d,
  MessageError: 0x10e,
  ConnectError: 0x10f,
  VersionFallback: 0x110,
  DecompressionFailed: 0x200,
  EncoderStreamError: 0x201,
  DecoderStreamError: 0x202,
} as const
/** Any number the wire may carry; a peer may use codes that are not known here. */
export type ErrorCode = number

/** The RFC's words, from H3_NO_ERROR on. */
export const errorNames: readonly string[] = [
  'H3_NO_ERROR',
  'H3_GENERAL_PROTOCOL_ERROR',
  'H3_INTERNAL_ERROR',
  'H3_STREAM_CREATION_ERROR',
  'H3_CLOSED_CRITICAL_STREAM',
  'H3_FRAME_UNEXPECTED',
  'H3_FRAME_ERROR',
  'H3_EXCESSIVE_LOAD',
  'H3_ID_ERROR',
  'H3_SETTINGS_ERROR',
  'H3_MISSING_SETTINGS',
  'H3_REQUEST_REJECTED',
  'H3_REQUEST_CANCELLED',
  'H3_REQUEST_INCOMPLETE',
  'H3_MESSAGE_ERROR',
  'H3_CONNECT_ERROR',
  'H3_VERSION_FALLBACK',
]
const qpackErrorNames: readonly string[] = ['QPACK_DECOMPRESSION_FAILED', 'QPACK_ENCODER_STREAM_ERROR', 'QPACK_DECODER_STREAM_ERROR']

/** The RFC's word for an error code. */
export function errorName(code: ErrorCode): string {
  return errorNames[code - 0x100] ?? qpackErrorNames[code - 0x200] ?? `error 0x${code.toString(16)}`
}

/**
 * A number of the form 0x1f * n + 0x21, which means nothing: for frames (RFC 9114 §7.2.8), streams (§6.2.3),
 * settings (§7.2.4.1) and errors (§8.1), so that peers do not forget to ignore what they do not know.
 */
export function reservedNumber(n: number): number {
  return 0x1f * n + 0x21
}

/** True: a frame type of HTTP/2 that has no place in HTTP/3 (RFC 9114 §7.2.8). */
export function isHttp2Frame(type: number): boolean {
  return type === 0x2 || type === 0x6 || type === 0x8 || type === 0x9
}

/** The most octets a frame's header takes. */
export const largestFrameHeader = 16

/** Octets of a frame's header. */
export function frameHeaderSize(type: number, length: number): number {
  return varintSize(type) + varintSize(length)
}

/** Writes a frame's header (RFC 9114 §7.1) and returns the position behind it. */
export function writeFrameHeader(buffer: Uint8Array, at: number, type: number, length: number): number {
  return writeVarint(buffer, writeVarint(buffer, at, type), length)
}

/** A variable-length integer that comes in pieces. Above 2^53 it is rounded. */
export class PartialVarint {
  value: number
  /** Octets still to come; -1: it has not begun. */
  left: number

  constructor() {
    this.value = 0
    this.left = -1
  }

  get isComplete(): boolean {
    return this.left === 0
  }

  /** Takes what there is of it and returns the position behind that. */
  read(buffer: Uint8Array, start: number, limit: number): number {
    let at = start
    if (at >= limit) return at
    if (this.left < 0) {
      const first = buffer[at++] as number
      this.left = (1 << (first >>> 6)) - 1
      this.value = first & 0x3f
    }
    while (this.left > 0 && at < limit) {
      this.value = this.value * 256 + (buffer[at++] as number)
      this.left--
    }
    return at
  }

  restart(): void {
    this.left = -1
  }
}

/** Type and length of a frame, at any split. */
export class FrameHeader {
  type: number
  length: number
  isComplete: boolean
  /** Some of it has come, and not all. */
  isOpen: boolean
  readonly #varint: PartialVarint
  #hasType: boolean

  constructor() {
    this.type = 0
    this.length = 0
    this.isComplete = false
    this.isOpen = false
    this.#varint = new PartialVarint()
    this.#hasType = false
  }

  /** Takes what there is of it and returns the position behind that. After a complete header the next one begins. */
  read(buffer: Uint8Array, start: number, limit: number): number {
    const varint = this.#varint
    let at = start
    this.isComplete = false
    this.isOpen = this.isOpen || start < limit
    if (!this.#hasType) {
      at = varint.read(buffer, at, limit)
      if (varint.left !== 0) return at
      this.type = varint.value
      this.#hasType = true
      varint.left = -1
    }
    at = varint.read(buffer, at, limit)
    if (varint.left !== 0) return at
    this.length = varint.value
    this.#hasType = false
    varint.left = -1
    this.isOpen = false
    this.isComplete = true
    return at
  }
}
