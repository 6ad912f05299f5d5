import { Http2Peer, http2Preface, literalBlock, type DebugFrame, type ScriptedPeer } from 'heddle/testing'

export type Http2Settings = readonly (readonly [id: number, value: number])[]

/** RFC 9113 §7. */
export const Code = {
  NoError: 0x0,
  ProtocolError: 0x1,
  InternalError: 0x2,
  FlowControlError: 0x3,
  RefusedStream: 0x7,
  Cancel: 0x8,
  ConnectError: 0xa,
  EnhanceYourCalm: 0xb,
  Http11Required: 0xd,
} as const

/** RFC 9113 §6.5.2, RFC 8441 §3. */
export const Setting = { MaxConcurrentStreams: 0x3, InitialWindowSize: 0x4, EnableConnectProtocol: 0x8 } as const

/**
 * A scripted peer of the gateway that sees to housekeeping itself: SETTINGS and PING are answered, and
 * window updates are added up, so that a test is about requests and responses.
 */
export class QuietPeer extends Http2Peer {
  /** Credit that came, by stream; 0 is the connection. */
  readonly credit: Map<number, number>
  /** What the gateway's SETTINGS said. */
  readonly settings: Map<number, number>

  constructor(peer: ScriptedPeer, role: 'client' | 'server', settings: Http2Settings) {
    super(peer, role)
    this.credit = new Map()
    this.settings = new Map()
    if (role === 'client') peer.send(http2Preface)
    else peer.want('the preface', http2Preface)
    this.send({ type: 'SETTINGS', ack: false, settings })
    peer.world.run()
    this.attend()
  }

  override want(why: string, matches: (frame: DebugFrame) => boolean): DebugFrame {
    this.attend()
    return super.want(why, matches)
  }

  override wantIdle(why: string): void {
    this.attend()
    super.wantIdle(why)
  }

  /** Sends frames in one piece. */
  batch(frames: readonly DebugFrame[]): void {
    this.peer.send(Buffer.concat(frames.map((frame) => this.codec.write(frame))))
  }

  /** Lets the world run, and takes what is housekeeping off the front of what came. */
  attend(): void {
    this.peer.world.run()
    for (;;) {
      const next = this.codec.read(this.peer.received)
      if (next === undefined || !this.#keep(next.frame)) return
      this.peer.want('housekeeping', () => next.length)
    }
  }

  /** True: nothing but housekeeping came. */
  get isQuiet(): boolean {
    this.attend()
    return this.peer.received.length === 0
  }

  #keep(frame: DebugFrame): boolean {
    switch (frame.type) {
      case 'SETTINGS':
        for (const [id, value] of frame.settings) this.settings.set(id, value)
        if (!frame.ack) this.send({ type: 'SETTINGS', ack: true, settings: [] })
        return true
      case 'PING':
        if (!frame.ack) this.send({ type: 'PING', ack: true, data: frame.data })
        return true
      case 'WINDOW_UPDATE':
        this.credit.set(frame.streamId, (this.credit.get(frame.streamId) ?? 0) + frame.increment)
        return true
      default:
        return false
    }
  }
}

/** A head in one frame. */
export function headers(streamId: number, fields: readonly string[], end: boolean): DebugFrame {
  return { type: 'HEADERS', streamId, block: literalBlock(fields), end, endHeaders: true }
}

/** A request's lines, pseudo-header fields first. */
export function request(method: string, path = '/', ...fields: string[]): string[] {
  return [':method', method, ':scheme', 'http', ':authority', 'example.org', ':path', path, ...fields]
}

/** What `names` are in the lines of a head. */
export function pick(lines: readonly string[], ...names: string[]): Record<string, string> {
  const picked: Record<string, string> = {}
  for (let i = 0; i < lines.length; i += 2) if (names.includes(lines[i] as string)) picked[lines[i] as string] = lines[i + 1] as string
  return picked
}
