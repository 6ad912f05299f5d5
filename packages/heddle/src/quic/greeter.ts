import type { Instant } from '../http/index.ts'
import type { QuicCrypto } from '../native/index.ts'
import { writeConnectionClose } from './frame-writer.ts'
import { initialSecrets, initialSuite } from './key-schedule.ts'
import { smallestDatagram } from './mtu.ts'
import { ForgeryCount } from './packet-opener.ts'
import { PacketWriter } from './packet-writer.ts'
import { PacketType, version1, type PacketReader } from './packet.ts'
import { LevelKeys } from './protection.ts'
import { retryPacket, versionNegotiationPacket } from './retry-packet.ts'
import type { TransportError } from './transport-error.ts'

/** Stateless resets in a second at most, and as many at once (RFC 9000 §10.3.3). */
const resetsPerSecond = 100
/** RFC 9000 §10.3: a reset has 21 octets at least, and looks like a packet only if it has more. */
export const smallestReset = 21
const largestReset = 43

const none = new Uint8Array(0)

/** Makes the datagrams with which a server answers what is for no connection. */
export class Greeter {
  readonly #crypto: QuicCrypto
  readonly #key: Uint8Array
  #resetsLeft: number
  #resetsAt: Instant

  /** `key`: of stateless resets. */
  constructor(crypto: QuicCrypto, key: Uint8Array) {
    this.#crypto = crypto
    this.#key = key
    this.#resetsLeft = resetsPerSecond
    this.#resetsAt = -Infinity
  }

  /** The Initial packet at hand is a client's, sealed with the keys that follow from `destination`. Nothing else is worth a connection. */
  opens({ buffer, packetStart, packetLimit, payloadStart }: PacketReader, destination: Uint8Array): boolean {
    const keys = new LevelKeys(this.#crypto, new ForgeryCount())
    keys.install('read', initialSuite, initialSecrets(this.#crypto, destination).client)
    // It is opened in place, and is to be opened once more.
    const copy = new Uint8Array(buffer.subarray(packetStart, packetLimit))
    const isOpened = keys.open(copy, 0, payloadStart - packetStart, copy.length, -1)
    keys.discard()
    return isOpened
  }

  /** Version Negotiation for the packet at hand. */
  versions({ buffer, destinationStart, destinationLimit, sourceStart, sourceLimit }: PacketReader): Uint8Array {
    const [unused = 0] = this.#crypto.random(1)
    return versionNegotiationPacket(
      buffer.subarray(sourceStart, sourceLimit),
      buffer.subarray(destinationStart, destinationLimit),
      [version1],
      unused,
    )
  }

  retry(clientSource: Uint8Array, retrySource: Uint8Array, originalDestination: Uint8Array, token: Uint8Array): Uint8Array {
    const [unused = 0] = this.#crypto.random(1)
    return retryPacket(this.#crypto, clientSource, retrySource, originalDestination, token, unused)
  }

  /** CONNECTION_CLOSE in an Initial packet, the answer to a client that is not taken (RFC 9000 §5.2.2, §8.1.2). */
  refusal(destination: Uint8Array, clientSource: Uint8Array, code: TransportError, reason: string): Uint8Array {
    const keys = new LevelKeys(this.#crypto, new ForgeryCount())
    keys.installInitial(destination, true)
    const writer = new PacketWriter()
    const buffer = new Uint8Array(smallestDatagram)
    writer.startDatagram(buffer, 0, smallestDatagram)
    writer.startLong(PacketType.initial, version1, clientSource, destination, none, 0, -1)
    writeConnectionClose(writer, code, 0, reason)
    const size = writer.finish(keys)
    keys.discard()
    return buffer.subarray(0, size)
  }

  /** A stateless reset for a short packet of `size` octets to an id that nobody has; undefined: better none. */
  reset(buffer: Uint8Array, idStart: number, idLimit: number, size: number, now: Instant): Uint8Array | undefined {
    // RFC 9000 §10.3.3: smaller than what it answers, so that two endpoints do not go on for ever.
    const length = Math.min(size - 1, largestReset)
    if (length < smallestReset || !this.#mayReset(now)) return undefined
    const datagram = this.#crypto.random(length)
    datagram[0] = 0x40 | ((datagram[0] as number) & 0x3f)
    datagram.set(this.#crypto.statelessResetToken(this.#key, buffer.subarray(idStart, idLimit)), length - 16)
    return datagram
  }

  #mayReset(now: Instant): boolean {
    const more = this.#resetsAt === -Infinity ? resetsPerSecond : ((now - this.#resetsAt) * resetsPerSecond) / 1000
    this.#resetsLeft = Math.min(resetsPerSecond, this.#resetsLeft + more)
    this.#resetsAt = now
    if (this.#resetsLeft < 1) return false
    this.#resetsLeft--
    return true
  }
}
