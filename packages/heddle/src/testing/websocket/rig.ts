import { codecSettings, WebSocketConnection, type DeflateParameters, type WebSocketOptions } from '../../ws/index.ts'
import { EchoProgram } from './echo-program.ts'
import { encodePeerFrame, frameLine, FrameLog, type PeerFrame, type ReceivedFrame } from './peer-frame.ts'
import { TestCodec } from './test-codec.ts'
import { TunnelDouble } from './tunnel-double.ts'

/** What a {@link Rig} is to be. */
export interface RigOptions extends Partial<Omit<WebSocketOptions, 'deflate'>> {
  readonly deflate?: DeflateParameters
  /** Of the codec. Default 0: everything is compressed that may be. */
  readonly threshold?: number | 'default'
  /** When the codec answers; see `TestCodec`. */
  readonly schedule?: (run: () => void) => void
  /** Octets that wait, at which the tunnel asks to wait. */
  readonly mark?: number
}

/** The parameters of permessage-deflate when nothing is asked for. */
export const allOfDeflate: DeflateParameters = {
  serverNoContextTakeover: false,
  clientNoContextTakeover: false,
  serverMaxWindowBits: 15,
  clientMaxWindowBits: 15,
}

/** One WebSocket on a tunnel whose other end is the test. */
export class Rig {
  readonly tunnel: TunnelDouble
  readonly connection: WebSocketConnection
  readonly program: EchoProgram
  readonly codec: TestCodec | undefined
  readonly #log: FrameLog
  readonly #isServer: boolean

  constructor(options: RigOptions = {}) {
    const { role = 'server', deflate, schedule, threshold = 0, mark, ...others } = options
    this.codec = deflate === undefined ? undefined : new TestCodec(codecSettings(role, deflate), schedule === undefined ? {} : { schedule })
    this.tunnel = new TunnelDouble(mark)
    this.program = new EchoProgram(false)
    this.#log = new FrameLog()
    this.#isServer = role === 'server'
    this.connection = new WebSocketConnection(this.tunnel, this.program, {
      maskKey: role === 'server' ? undefined : () => 0x1234_5678,
      ...others,
      role,
      deflate:
        deflate === undefined || this.codec === undefined
          ? undefined
          : { parameters: deflate, codec: this.codec, threshold: threshold === 'default' ? undefined : threshold },
    })
    this.program.connection = this.connection
  }

  /** Frames of the peer arrive, in one piece. */
  receive(...frames: readonly PeerFrame[]): void {
    this.tunnel.receive(Buffer.concat(frames.map((frame) => encodePeerFrame(frame, this.#isServer))))
  }

  /** What was sent and not seen yet, whether or not it has left. */
  get frames(): ReceivedFrame[] {
    this.#log.add(this.tunnel.take())
    return this.#log.frames.splice(0)
  }

  /** The same, in words. */
  get sent(): string[] {
    return this.frames.map(frameLine)
  }

  /** What the program was told since it was last asked. */
  get told(): string[] {
    return this.program.lines.splice(0)
  }

  /** Breaches of any contract. */
  get faults(): string[] {
    return [...this.program.faults, ...this.tunnel.faults, ...(this.codec?.faults ?? [])]
  }
}
