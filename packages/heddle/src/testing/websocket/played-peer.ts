import { codecSettings, Opcode, type CodecSink } from '../../ws/index.ts'
import type { WebSocketCase } from './case.ts'
import { encodePeerFrame, frameLine, FrameLog, type ReceivedFrame } from './peer-frame.ts'
import { TestCodec } from './test-codec.ts'

/** The peer of a case: what it sends, when it ends, and what it makes of the answers. */
export class PlayedPeer {
  readonly isClient: boolean
  /** All it sends. */
  readonly octets: Buffer
  readonly #case: WebSocketCase
  readonly #log: FrameLog

  constructor(played: WebSocketCase, role: 'client' | 'server') {
    this.isClient = role === 'client'
    this.#case = played
    this.#log = new FrameLog()
    this.octets = Buffer.concat(played.frames.map((frame) => encodePeerFrame(frame, this.isClient)))
  }

  receive(bytes: Uint8Array): void {
    this.#log.add(bytes)
  }

  /** RFC 6455 §7.1.1: a server ends once both have closed; a client waits for it. `ended`: the other side has. */
  mayEnd(ended: boolean): boolean {
    return ended || (!this.isClient && this.#log.frames.some(({ opcode }) => opcode === Opcode.Close))
  }

  /** The frames that came, in words. */
  get lines(): string[] {
    const inflate = inflater(this.#case, this.isClient)
    return this.#log.frames.map((frame) => frameLine(frame.reserved === 0 ? frame : inflate(frame)))
  }

  /** What is wrong with what came, whatever the case. */
  get faults(): string[] {
    const { frames, rest } = this.#log
    const faults: string[] = []
    if (rest.length > 0) faults.push(`${rest.length} octets of a frame that is not complete`)
    if (frames.some(({ masked }) => masked === this.isClient)) faults.push('a mask, or none, by the wrong side')
    const closes = frames.findIndex(({ opcode }) => opcode === Opcode.Close)
    if (closes >= 0 && closes < frames.length - 1) faults.push('frames behind the Close')
    const { deflate } = this.#case
    const compresses = deflate !== undefined && codecSettings(this.isClient ? 'server' : 'client', deflate).deflateWindowBits > 0
    for (const { opcode, reserved } of frames) {
      const expected = compresses && (opcode === Opcode.Text || opcode === Opcode.Binary) ? 4 : 0
      if (reserved !== expected) faults.push(`reserved bits ${reserved} with opcode ${opcode}`)
    }
    return faults
  }
}

/** Inflates the payloads of frames, in order. */
function inflater({ deflate }: WebSocketCase, isClient: boolean): (frame: ReceivedFrame) => ReceivedFrame {
  if (deflate === undefined) return (frame) => frame
  const codec = new TestCodec(codecSettings(isClient ? 'client' : 'server', deflate))
  return (frame) => {
    let payload = Buffer.from('not inflated')
    const sink: CodecSink = {
      deflated() {},
      inflated: (buffer, start, limit) => void (payload = Buffer.from(buffer.subarray(start, limit))),
      inflatedTooMuch() {},
      codecFailed() {},
    }
    codec.inflate(sink, frame.payload, 0, frame.payload.length, false, 1 << 26)
    return { ...frame, reserved: 0, payload }
  }
}
