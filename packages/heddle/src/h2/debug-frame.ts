import { latin1Slice } from '../bytes/index.ts'
import { errorName, Flag, frameHeaderSize, FrameType, putFrameHeader, readUint31, readUint32 } from './frame.ts'

/** The priority of RFC 7540 in HEADERS and PRIORITY: obsolete, and still to be understood. */
export interface DebugDependency {
  readonly exclusive: boolean
  readonly dependsOn: number
  /** 1–256. */
  readonly weight: number
}

/**
 * One frame as an object, for tests and logs only; engines read and write frames without objects. `RAW`
 * is any frame in octets: of an unknown type, or one whose payload does not fit its type.
 */
export type DebugFrame =
  | { readonly type: 'DATA'; readonly streamId: number; readonly data: Uint8Array; readonly end: boolean; readonly padding?: number }
  | {
      readonly type: 'HEADERS'
      readonly streamId: number
      readonly block: Uint8Array
      readonly end: boolean
      readonly endHeaders: boolean
      readonly padding?: number
      readonly dependency?: DebugDependency
    }
  | { readonly type: 'PRIORITY'; readonly streamId: number; readonly dependency: DebugDependency }
  | { readonly type: 'RST_STREAM'; readonly streamId: number; readonly code: number }
  | { readonly type: 'SETTINGS'; readonly ack: boolean; readonly settings: readonly (readonly [id: number, value: number])[] }
  | { readonly type: 'PING'; readonly ack: boolean; readonly data: Uint8Array }
  | { readonly type: 'GOAWAY'; readonly lastStreamId: number; readonly code: number; readonly debug: string }
  | { readonly type: 'WINDOW_UPDATE'; readonly streamId: number; readonly increment: number }
  | { readonly type: 'CONTINUATION'; readonly streamId: number; readonly block: Uint8Array; readonly endHeaders: boolean }
  | { readonly type: 'ORIGIN'; readonly origins: readonly string[] }
  | { readonly type: 'PRIORITY_UPDATE'; readonly prioritizedId: number; readonly value: string }
  | {
      readonly type: 'RAW'
      readonly typeCode: number
      readonly flags: number
      readonly streamId: number
      readonly payload: Uint8Array
    }

/** The first frame of `bytes` and its length on the wire; undefined while it is not complete. */
export function readDebugFrame(bytes: Uint8Array): { readonly frame: DebugFrame; readonly length: number } | undefined {
  if (bytes.length < frameHeaderSize) return undefined
  const length = ((bytes[0] as number) << 16) | ((bytes[1] as number) << 8) | (bytes[2] as number)
  if (bytes.length < frameHeaderSize + length) return undefined
  const typeCode = bytes[3] as number
  const flags = bytes[4] as number
  const streamId = readUint31(bytes, 5)
  const payload = Uint8Array.prototype.slice.call(bytes, frameHeaderSize, frameHeaderSize + length)
  const frame = parse(typeCode, flags, streamId, payload) ?? { type: 'RAW', typeCode, flags, streamId, payload }
  return { frame, length: frameHeaderSize + length }
}

function parse(typeCode: number, flags: number, streamId: number, payload: Uint8Array): DebugFrame | undefined {
  const { length } = payload
  const ack = (flags & Flag.Ack) !== 0
  switch (typeCode) {
    case FrameType.Data: {
      const content = unpad(payload, flags)
      return content && { type: 'DATA', streamId, data: content.rest, end: (flags & Flag.EndStream) !== 0, ...content.padding }
    }
    case FrameType.Headers:
      return parseHeaders(flags, streamId, payload)
    case FrameType.Priority:
      return length === 5 ? { type: 'PRIORITY', streamId, dependency: dependencyAt(payload, 0) } : undefined
    case FrameType.RstStream:
      return length === 4 ? { type: 'RST_STREAM', streamId, code: readUint32(payload, 0) } : undefined
    case FrameType.Settings:
      if (length % 6 !== 0 || streamId !== 0) return undefined
      return {
        type: 'SETTINGS',
        ack,
        settings: Array.from(
          { length: length / 6 },
          (_, i) => [((payload[i * 6] as number) << 8) | (payload[i * 6 + 1] as number), readUint32(payload, i * 6 + 2)] as const,
        ),
      }
    case FrameType.Ping:
      return length === 8 && streamId === 0 ? { type: 'PING', ack, data: payload } : undefined
    case FrameType.Goaway:
      if (length < 8 || streamId !== 0) return undefined
      return {
        type: 'GOAWAY',
        lastStreamId: readUint31(payload, 0),
        code: readUint32(payload, 4),
        debug: latin1Slice(payload, 8, length),
      }
    case FrameType.WindowUpdate:
      return length === 4 ? { type: 'WINDOW_UPDATE', streamId, increment: readUint31(payload, 0) } : undefined
    case FrameType.Continuation:
      return { type: 'CONTINUATION', streamId, block: payload, endHeaders: (flags & Flag.EndHeaders) !== 0 }
    case FrameType.Origin:
      return streamId === 0 ? parseOrigin(payload) : undefined
    case FrameType.PriorityUpdate:
      if (length < 4 || streamId !== 0) return undefined
      return { type: 'PRIORITY_UPDATE', prioritizedId: readUint31(payload, 0), value: latin1Slice(payload, 4, length) }
    default:
      return undefined
  }
}

function parseHeaders(flags: number, streamId: number, payload: Uint8Array): DebugFrame | undefined {
  const content = unpad(payload, flags)
  if (content === undefined) return undefined
  const prioritized = (flags & Flag.Priority) !== 0
  if (prioritized && content.rest.length < 5) return undefined
  return {
    type: 'HEADERS',
    streamId,
    block: prioritized ? content.rest.subarray(5) : content.rest,
    end: (flags & Flag.EndStream) !== 0,
    endHeaders: (flags & Flag.EndHeaders) !== 0,
    ...content.padding,
    ...(prioritized ? { dependency: dependencyAt(content.rest, 0) } : {}),
  }
}

function parseOrigin(payload: Uint8Array): DebugFrame | undefined {
  const origins: string[] = []
  for (let at = 0; at < payload.length;) {
    const limit = at + 2 + (((payload[at] as number) << 8) | (payload[at + 1] ?? 0))
    if (limit > payload.length) return undefined
    origins.push(latin1Slice(payload, at + 2, limit))
    at = limit
  }
  return { type: 'ORIGIN', origins }
}

function unpad(payload: Uint8Array, flags: number): { rest: Uint8Array; padding: { padding?: number } } | undefined {
  if ((flags & Flag.Padded) === 0) return { rest: payload, padding: {} }
  const padding = payload[0]
  if (padding === undefined || padding >= payload.length) return undefined
  return { rest: payload.subarray(1, payload.length - padding), padding: { padding } }
}

function dependencyAt(payload: Uint8Array, at: number): DebugDependency {
  return {
    exclusive: (payload[at] as number) >= 0x80,
    dependsOn: readUint31(payload, at),
    weight: (payload[at + 4] as number) + 1,
  }
}

/** The octets of a frame. */
export function writeDebugFrame(frame: DebugFrame): Uint8Array {
  switch (frame.type) {
    case 'DATA':
      return encode(FrameType.Data, endFlag(frame.end) | padFlag(frame), frame.streamId, padded(frame.data, frame.padding))
    case 'HEADERS': {
      const { dependency } = frame
      const flags = endFlag(frame.end) | headersFlag(frame.endHeaders) | padFlag(frame) | (dependency === undefined ? 0 : Flag.Priority)
      const content = dependency === undefined ? frame.block : join(dependencyBytes(dependency), frame.block)
      return encode(FrameType.Headers, flags, frame.streamId, padded(content, frame.padding))
    }
    case 'PRIORITY':
      return encode(FrameType.Priority, 0, frame.streamId, dependencyBytes(frame.dependency))
    case 'RST_STREAM':
      return encode(FrameType.RstStream, 0, frame.streamId, uint32(frame.code))
    case 'SETTINGS': {
      const settings = frame.settings.map(([id, value]) => join(Uint8Array.of(id >>> 8, id), uint32(value)))
      return encode(FrameType.Settings, frame.ack ? Flag.Ack : 0, 0, join(...settings))
    }
    case 'PING':
      return encode(FrameType.Ping, frame.ack ? Flag.Ack : 0, 0, frame.data)
    case 'GOAWAY':
      return encode(FrameType.Goaway, 0, 0, join(uint32(frame.lastStreamId), uint32(frame.code), latin1(frame.debug)))
    case 'WINDOW_UPDATE':
      return encode(FrameType.WindowUpdate, 0, frame.streamId, uint32(frame.increment))
    case 'CONTINUATION':
      return encode(FrameType.Continuation, headersFlag(frame.endHeaders), frame.streamId, frame.block)
    case 'ORIGIN': {
      const entries = frame.origins.map((origin) => join(Uint8Array.of(origin.length >>> 8, origin.length), latin1(origin)))
      return encode(FrameType.Origin, 0, 0, join(...entries))
    }
    case 'PRIORITY_UPDATE':
      return encode(FrameType.PriorityUpdate, 0, 0, join(uint32(frame.prioritizedId), latin1(frame.value)))
    case 'RAW':
      return encode(frame.typeCode, frame.flags, frame.streamId, frame.payload)
  }
}

function encode(type: number, flags: number, streamId: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(frameHeaderSize + payload.length)
  putFrameHeader(bytes, 0, payload.length, type, flags, streamId)
  bytes.set(payload, frameHeaderSize)
  return bytes
}

function endFlag(end: boolean): number {
  return end ? Flag.EndStream : 0
}

function headersFlag(endHeaders: boolean): number {
  return endHeaders ? Flag.EndHeaders : 0
}

function padFlag(frame: { readonly padding?: number }): number {
  return frame.padding === undefined ? 0 : Flag.Padded
}

function padded(content: Uint8Array, padding: number | undefined): Uint8Array {
  return padding === undefined ? content : join(Uint8Array.of(padding), content, new Uint8Array(padding))
}

function dependencyBytes({ exclusive, dependsOn, weight }: DebugDependency): Uint8Array {
  return join(uint32(exclusive ? dependsOn + 0x8000_0000 : dependsOn), Uint8Array.of(weight - 1))
}

function uint32(value: number): Uint8Array {
  return Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value)
}

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0))
}

function join(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** One line about a frame: `HEADERS 1 end 17 octets`. */
export function describeDebugFrame(frame: DebugFrame): string {
  switch (frame.type) {
    case 'DATA':
      return `DATA ${frame.streamId}${frame.end ? ' end' : ''} ${octets(frame.data)}${frame.padding === undefined ? '' : ` padding ${frame.padding}`}`
    case 'HEADERS':
      return `HEADERS ${frame.streamId}${frame.end ? ' end' : ''}${frame.endHeaders ? '' : ' to be continued'} ${octets(frame.block)}`
    case 'PRIORITY':
      return `PRIORITY ${frame.streamId} on ${frame.dependency.dependsOn}`
    case 'RST_STREAM':
      return `RST_STREAM ${frame.streamId} ${errorName(frame.code)}`
    case 'SETTINGS':
      return `SETTINGS${frame.ack ? ' ack' : ''}${frame.settings.map(([id, value]) => ` ${id}=${value}`).join('')}`
    case 'PING':
      return `PING${frame.ack ? ' ack' : ''} ${[...frame.data].map((octet) => octet.toString(16).padStart(2, '0')).join('')}`
    case 'GOAWAY':
      return `GOAWAY ${frame.lastStreamId} ${errorName(frame.code)}${frame.debug === '' ? '' : ` (${frame.debug})`}`
    case 'WINDOW_UPDATE':
      return `WINDOW_UPDATE ${frame.streamId} ${frame.increment}`
    case 'CONTINUATION':
      return `CONTINUATION ${frame.streamId}${frame.endHeaders ? '' : ' to be continued'} ${octets(frame.block)}`
    case 'ORIGIN':
      return `ORIGIN ${frame.origins.join(' ')}`
    case 'PRIORITY_UPDATE':
      return `PRIORITY_UPDATE ${frame.prioritizedId} ${frame.value}`
    case 'RAW':
      return `frame of type ${frame.typeCode}, flags ${frame.flags}, stream ${frame.streamId}, ${octets(frame.payload)}`
  }
}

function octets(bytes: Uint8Array): string {
  return `${bytes.length} octets`
}
