import { ByteReader, varintSize, writeVarint } from '../bytes/index.ts'
import { ErrorCode, FrameType, frameHeaderSize, writeFrameHeader } from './frame.ts'

/** RFC 9114 §7.2.4.1, RFC 9204 §5, RFC 9220 §3. */
export const SettingId = {
  QpackMaxTableCapacity: 0x1,
  MaxFieldSectionSize: 0x6,
  QpackBlockedStreams: 0x7,
  EnableConnectProtocol: 0x8,
} as const

/** More settings than this, of which there are a handful, are no settings. */
const mostSettings = 128

/** What one peer said of itself; begins with the RFCs' defaults. */
export class Settings {
  qpackMaxTableCapacity: number
  qpackBlockedStreams: number
  maxFieldSectionSize: number
  enableConnectProtocol: boolean
  /** The SETTINGS frame came. */
  received: boolean

  constructor() {
    this.qpackMaxTableCapacity = 0
    this.qpackBlockedStreams = 0
    this.maxFieldSectionSize = Infinity
    this.enableConnectProtocol = false
    this.received = false
  }

  /** Takes the payload of the SETTINGS frame. Returns an error code for what must not be, else NO_ERROR. */
  read(buffer: Uint8Array, start: number, limit: number): ErrorCode {
    const reader = new ByteReader().start(buffer, start, limit)
    const seen = new Set<number>()
    while (reader.remaining > 0) {
      const id = reader.varint()
      const value = reader.varint()
      // RFC 9114 §7.1: a payload that ends within a field.
      if (reader.failed) return ErrorCode.FrameError
      if (seen.size >= mostSettings) return ErrorCode.ExcessiveLoad
      // RFC 9114 §7.2.4: none twice. RFC 9114 §7.2.4.1: none of HTTP/2's that have no meaning here.
      if (seen.has(id) || id === 0x0 || (id >= 0x2 && id <= 0x5)) return ErrorCode.SettingsError
      seen.add(id)
      switch (id) {
        case SettingId.QpackMaxTableCapacity:
          this.qpackMaxTableCapacity = value
          break
        case SettingId.MaxFieldSectionSize:
          this.maxFieldSectionSize = value
          break
        case SettingId.QpackBlockedStreams:
          this.qpackBlockedStreams = value
          break
        case SettingId.EnableConnectProtocol:
          // RFC 9220 §3, RFC 8441 §3: 0 or 1.
          if (value > 1) return ErrorCode.SettingsError
          this.enableConnectProtocol = value === 1
          break
        default:
        // RFC 9114 §7.2.4: unknown and reserved settings are ignored.
      }
    }
    this.received = true
    return ErrorCode.NoError
  }
}

/** A SETTINGS frame of `[identifier, value, …]`. */
export function settingsFrame(settings: readonly number[]): Uint8Array {
  const length = settings.reduce((sum, number) => sum + varintSize(number), 0)
  const frame = new Uint8Array(frameHeaderSize(FrameType.Settings, length) + length)
  let at = writeFrameHeader(frame, 0, FrameType.Settings, length)
  for (const number of settings) at = writeVarint(frame, at, number)
  return frame
}
