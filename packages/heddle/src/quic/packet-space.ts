import type { Level } from '../native/index.ts'
import type { ReceivedPackets } from './ack.ts'
import type { ApplicationKeys } from './application-keys.ts'
import type { CryptoStream } from './crypto-stream.ts'
import type { LevelKeys } from './protection.ts'
import type { Space } from './space.ts'

/** Everything that a connection has once for each packet number space (RFC 9000 §12.3). */
export class PacketSpace {
  readonly space: Space
  readonly level: Level
  readonly keys: LevelKeys | ApplicationKeys
  readonly received: ReceivedPackets
  readonly crypto: CryptoStream
  /** The number of the next packet. */
  nextNumber: number
  /** A number that is going to be left out, or was; nobody can acknowledge it (RFC 9000 §21.4). */
  skipped: number
  /** Packets that ask for an acknowledgement and must leave whatever the window says (RFC 9002 §6.2.4). */
  probes: number
  /** Nothing is received or sent here any more (RFC 9001 §4.9). */
  isDiscarded: boolean

  constructor(space: Space, level: Level, keys: LevelKeys | ApplicationKeys, received: ReceivedPackets, crypto: CryptoStream) {
    this.space = space
    this.level = level
    this.keys = keys
    this.received = received
    this.crypto = crypto
    this.nextNumber = 0
    this.skipped = -1
    this.probes = 0
    this.isDiscarded = false
  }
}
