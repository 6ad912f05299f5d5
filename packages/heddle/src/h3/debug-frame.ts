import { ByteReader, latin1Slice, varintSize, writeVarint, writeVarintOfSize } from '../bytes/index.ts'
import { frameHeaderSize, FrameType, writeFrameHeader } from './frame.ts'

/** A frame as an object, for tests and logs only. */
export type DebugFrame =
  | { readonly type: 'DATA'; readonly data: Uint8Array }
  | { readonly type: 'HEADERS'; readonly block: Uint8Array }
  | { readonly type: 'CANCEL_PUSH'; readonly id: number }
  | { readonly type: 'SETTINGS'; readonly settings: readonly (readonly [id: number, value: number])[] }
  | { readonly type: 'PUSH_PROMISE'; readonly id: number; readonly block: Uint8Array }
  | { readonly type: 'GOAWAY'; readonly id: number }
  | { readonly type: 'MAX_PUSH_ID'; readonly id: number }
  | { readonly type: 'PRIORITY_UPDATE'; readonly id: number; readonly value: string }
  | { readonly type: 'PUSH_PRIORITY_UPDATE'; readonly id: number; readonly value: string }
  | { readonly type: 'UNKNOWN'; readonly frameType: number; readonly payload: Uint8Array }

const numbers = { CANCEL_PUSH: FrameType.CancelPush, GOAWAY: FrameType.Goaway, MAX_PUSH_ID: FrameType.MaxPushId } as const
const priorities = { PRIORITY_UPDATE: FrameType.PriorityUpdate, PUSH_PRIORITY_UPDATE: FrameType.PushPriorityUpdate } as const

/** The first frame of `bytes` and its length on the wire; undefined while it is not complete. One that is malformed is UNKNOWN. */
export function readDebugFrame(bytes: Uint8Array): { readonly frame: DebugFrame; readonly length: number } | undefined {
  const reader = new ByteReader().start(bytes, 0, bytes.length)
  const type = reader.varint()
  const size = reader.varint()
  const start = reader.skip(size)
  if (reader.failed) return undefined
  const payload = Uint8Array.prototype.slice.call(bytes, start, start + size)
  return { frame: readPayload(type, payload), length: start + size }
}

function readPayload(type: number, payload: Uint8Array): DebugFrame {
  const reader = new ByteReader().start(payload, 0, payload.length)
  const rest = (): Uint8Array => payload.subarray(reader.at)
  switch (type) {
    case FrameType.Data:
      return { type: 'DATA', data: payload }
    case FrameType.Headers:
      return { type: 'HEADERS', block: payload }
    case FrameType.Settings: {
      const settings: [number, number][] = []
      while (reader.remaining > 0) settings.push([reader.varint(), reader.varint()])
      if (!reader.failed) return { type: 'SETTINGS', settings }
      break
    }
    case FrameType.PushPromise: {
      const id = reader.varint()
      if (!reader.failed) return { type: 'PUSH_PROMISE', id, block: rest() }
      break
    }
    case FrameType.PriorityUpdate:
    case FrameType.PushPriorityUpdate: {
      const id = reader.varint()
      const name = type === FrameType.PriorityUpdate ? 'PRIORITY_UPDATE' : 'PUSH_PRIORITY_UPDATE'
      if (!reader.failed) return { type: name, id, value: latin1Slice(payload, reader.at, payload.length) }
      break
    }
    default: {
      const name = (Object.keys(numbers) as (keyof typeof numbers)[]).find((key) => numbers[key] === type)
      const id = reader.varint()
      if (name !== undefined && !reader.failed && reader.remaining === 0) return { type: name, id }
    }
  }
  return { type: 'UNKNOWN', frameType: type, payload }
}

/** A frame as it is on the wire, whether it may be sent or not. */
export function writeDebugFrame(frame: DebugFrame): Uint8Array {
  switch (frame.type) {
    case 'DATA':
      return wire(FrameType.Data, frame.data)
    case 'HEADERS':
      return wire(FrameType.Headers, frame.block)
    case 'SETTINGS':
      return wire(FrameType.Settings, ...frame.settings.flatMap(([id, value]) => [varint(id), varint(value)]))
    case 'PUSH_PROMISE':
      return wire(FrameType.PushPromise, varint(frame.id), frame.block)
    case 'PRIORITY_UPDATE':
    case 'PUSH_PRIORITY_UPDATE':
      return wire(priorities[frame.type], varint(frame.id), Buffer.from(frame.value, 'latin1'))
    case 'UNKNOWN':
      return wire(frame.frameType, frame.payload)
    default:
      return wire(numbers[frame.type], varint(frame.id))
  }
}

function wire(type: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const bytes = new Uint8Array(frameHeaderSize(type, length) + length)
  let at = writeFrameHeader(bytes, 0, type, length)
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

function varint(value: number): Uint8Array {
  const bytes = new Uint8Array(varintSize(value))
  writeVarint(bytes, 0, value)
  return bytes
}

/** The header of a frame whose payload does not come, or is longer than any buffer. Its numbers take 8 octets each. */
export function longFrameHeader(type: number, length: number): Uint8Array {
  const bytes = new Uint8Array(16)
  writeVarintOfSize(bytes, writeVarintOfSize(bytes, 0, type, 8), length, 8)
  return bytes
}

/** One line about a frame. */
export function describeDebugFrame(frame: DebugFrame): string {
  switch (frame.type) {
    case 'DATA':
      return `DATA ${frame.data.length} octets`
    case 'HEADERS':
      return `HEADERS ${frame.block.length} octets`
    case 'SETTINGS':
      return `SETTINGS ${frame.settings.map(([id, value]) => `${id}=${value}`).join(' ')}`
    case 'PUSH_PROMISE':
      return `PUSH_PROMISE ${frame.id}, ${frame.block.length} octets`
    case 'PRIORITY_UPDATE':
    case 'PUSH_PRIORITY_UPDATE':
      return `${frame.type} ${frame.id} ${frame.value}`
    case 'UNKNOWN':
      return `frame 0x${frame.frameType.toString(16)}, ${frame.payload.length} octets`
    default:
      return `${frame.type} ${frame.id}`
  }
}
