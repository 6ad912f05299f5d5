import { ErrorCode, FrameType, largestWindow, readUint32, smallestMaxFrameSize, writeUint32 } from './frame.ts'
import { firstWindow } from './flow.ts'
import type { Staging } from './staging.ts'

/** RFC 9113 §6.5.2, RFC 8441 §3, RFC 9218 §2.1. */
export const SettingId = {
  HeaderTableSize: 0x1,
  EnablePush: 0x2,
  MaxConcurrentStreams: 0x3,
  InitialWindowSize: 0x4,
  MaxFrameSize: 0x5,
  MaxHeaderListSize: 0x6,
  EnableConnectProtocol: 0x8,
  NoRfc7540Priorities: 0x9,
} as const

/** How many streams are open at once on a peer that sent SETTINGS without a limit: none is not a wish for all. */
const unlimited = 1_000

/** What one peer said of itself; begins with the RFC's defaults. */
export class Settings {
  headerTableSize: number
  enablePush: boolean
  maxConcurrentStreams: number
  initialWindowSize: number
  maxFrameSize: number
  maxHeaderListSize: number
  enableConnectProtocol: boolean
  /** A SETTINGS frame came. */
  received: boolean

  constructor() {
    this.headerTableSize = 4096
    this.enablePush = true
    // RFC 9113 §6.5.2: no limit at first, and at least 100 is recommended; more than that waits for the peer's word.
    this.maxConcurrentStreams = 100
    this.initialWindowSize = firstWindow
    this.maxFrameSize = smallestMaxFrameSize
    this.maxHeaderListSize = Infinity
    this.enableConnectProtocol = false
    this.received = false
  }

  /**
   * Takes the payload of a SETTINGS frame, whose length is a multiple of 6. Returns an error code for
   * a value that must not be, else NO_ERROR. `fromServer`: the sender is a server.
   */
  read(buffer: Uint8Array, start: number, limit: number, fromServer: boolean): ErrorCode {
    if (!this.received) this.maxConcurrentStreams = unlimited
    this.received = true
    for (let at = start; at < limit; at += 6) {
      const id = ((buffer[at] as number) << 8) | (buffer[at + 1] as number)
      const value = readUint32(buffer, at + 2)
      switch (id) {
        case SettingId.HeaderTableSize:
          this.headerTableSize = value
          break
        case SettingId.EnablePush:
          // RFC 9113 §6.5.2: 0 or 1, and a server never sends 1.
          if (value > (fromServer ? 0 : 1)) return ErrorCode.ProtocolError
          this.enablePush = value === 1
          break
        case SettingId.MaxConcurrentStreams:
          this.maxConcurrentStreams = value
          break
        case SettingId.InitialWindowSize:
          if (value > largestWindow) return ErrorCode.FlowControlError
          this.initialWindowSize = value
          break
        case SettingId.MaxFrameSize:
          if (value < smallestMaxFrameSize || value > 0xff_ffff) return ErrorCode.ProtocolError
          this.maxFrameSize = value
          break
        case SettingId.MaxHeaderListSize:
          this.maxHeaderListSize = value
          break
        case SettingId.EnableConnectProtocol:
          // RFC 8441 §3: 0 or 1, and never back to 0.
          if (value > 1 || (value === 0 && this.enableConnectProtocol)) return ErrorCode.ProtocolError
          this.enableConnectProtocol = value === 1
          break
        case SettingId.NoRfc7540Priorities:
          if (value > 1) return ErrorCode.ProtocolError
          break
        default:
        // RFC 9113 §6.5.2: unknown settings are ignored.
      }
    }
    return ErrorCode.NoError
  }
}

/** Stages a SETTINGS frame of `[identifier, value, …]`. */
export function writeSettings(staging: Staging, settings: readonly number[]): void {
  const out = staging.frame(settings.length * 3, FrameType.Settings, 0, 0)
  out.reserve(settings.length * 3)
  for (let i = 0; i < settings.length; i += 2) {
    const id = settings[i] as number
    out.buffer[out.length++] = id >>> 8
    out.buffer[out.length++] = id
    writeUint32(out, settings[i + 1] as number)
  }
}
