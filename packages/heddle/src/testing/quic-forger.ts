import { Level, type QuicCrypto } from '../native/index.ts'
import {
  ApplicationKeys,
  ForgeryCount,
  LevelKeys,
  PacketType,
  PacketWriter,
  readDebugFrames,
  version1,
  writeDebugFrame,
  type DebugFrame,
} from '../quic/index.ts'
import { plainSecret } from './plain-tls.ts'

/** Whose packets a {@link QuicForger} makes. */
export interface ForgedEnd {
  readonly isServer: boolean
  /** The Destination Connection ID of the client's first Initial packet, or of the Retry packet. */
  readonly original: Uint8Array
  readonly destination: Uint8Array
  readonly source: Uint8Array
}

/** What a {@link QuicForger} may say otherwise than a real end would. */
export interface ForgedPacket {
  readonly token?: Uint8Array
  /** The datagram gets so many octets. Default: as many as it needs, 1,200 with an Initial packet. */
  readonly size?: number
  readonly version?: number
  readonly destination?: Uint8Array
  /** Seals with the keys of the next phase from now on. */
  readonly updates?: boolean
}

/** Makes packets with the right keys and whatever frames, in the place of one end of a {@link PlainTls} connection. */
export class QuicForger {
  readonly #crypto: QuicCrypto
  readonly #end: ForgedEnd
  readonly #levels: readonly (LevelKeys | undefined)[]
  readonly #application: ApplicationKeys
  /** Of packets that were not given one: far behind those of the real end. */
  packetNumber: number

  constructor(crypto: QuicCrypto, end: ForgedEnd) {
    this.#crypto = crypto
    this.#end = end
    this.packetNumber = 5_000
    const initial = new LevelKeys(crypto, new ForgeryCount())
    initial.installInitial(end.original, end.isServer)
    const handshake = new LevelKeys(crypto, new ForgeryCount())
    handshake.install('write', 'TLS_AES_128_GCM_SHA256', plainSecret(Level.handshake, end.isServer))
    handshake.install('read', 'TLS_AES_128_GCM_SHA256', plainSecret(Level.handshake, !end.isServer))
    this.#levels = [initial, undefined, handshake]
    this.#application = this.#makeApplication()
  }

  #makeApplication(): ApplicationKeys {
    const { isServer } = this.#end
    const keys = new ApplicationKeys(this.#crypto, new ForgeryCount())
    keys.install('write', 'TLS_AES_128_GCM_SHA256', plainSecret(Level.application, isServer))
    keys.install('read', 'TLS_AES_128_GCM_SHA256', plainSecret(Level.application, !isServer))
    return keys
  }

  /** A datagram with one packet of `level`. */
  packet(level: Level, frames: readonly DebugFrame[], how: ForgedPacket = {}): Uint8Array {
    const buffer = new Uint8Array(2_048)
    const writer = new PacketWriter()
    const number = this.packetNumber++
    const destination = how.destination ?? this.#end.destination
    writer.startDatagram(buffer, 0, how.size ?? 1_452)
    const keys = this.#levels[level] ?? this.#application
    if (level === Level.application) {
      if (how.updates === true) {
        this.#application.confirmed = true
        this.#application.onAcked(number)
        this.#application.update()
      }
      writer.startShort(destination, number, -1, this.#application.keyPhase, false)
    } else {
      const type = level === Level.initial ? PacketType.initial : PacketType.handshake
      writer.startLong(type, how.version ?? version1, destination, this.#end.source, how.token ?? new Uint8Array(0), number, -1)
    }
    for (const frame of frames) if (!writeDebugFrame(writer, frame)) throw new Error(`no room for ${frame.type}`)
    if (frames.length === 0) writer.at++
    const size = writer.finish(keys, how.size ?? (level === Level.initial ? 1_200 : 0))
    return buffer.slice(0, size)
  }

  /** The frames of a packet of `level` that the other end sealed; undefined: it cannot be opened. The octets are changed. */
  open(level: Level, bytes: Uint8Array, packetNumberStart: number, limit: number): DebugFrame[] | undefined {
    const keys = level === Level.application ? this.#makeApplication() : (this.#levels[level] as LevelKeys)
    if (!keys.open(bytes, 0, packetNumberStart, limit, this.#lastSeen, 0)) return undefined
    return readDebugFrames(bytes.subarray(keys.payloadStart, keys.payloadLimit), level, !this.#end.isServer).frames
  }

  readonly #lastSeen = -1
}
