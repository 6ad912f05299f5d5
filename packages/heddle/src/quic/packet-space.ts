import { Level, type QuicCrypto } from '../native/index.ts'
import { ReceivedPackets } from './ack.ts'
import { ApplicationKeys } from './application-keys.ts'
import { CryptoStream } from './crypto-stream.ts'
import { ForgeryCount } from './packet-opener.ts'
import { LevelKeys } from './protection.ts'
import { Space } from './space.ts'

/** Everything that a connection has once for each packet number space (RFC 9000 §12.3). */
export class PacketSpace {
  readonly space: Space
  readonly level: Level
  readonly keys: LevelKeys | ApplicationKeys
  readonly received: ReceivedPackets
  readonly crypto: CryptoStream
  /** Nothing is received or sent here any more (RFC 9001 §4.9). */
  isDiscarded: boolean

  constructor(space: Space, level: Level, keys: LevelKeys | ApplicationKeys) {
    this.space = space
    this.level = level
    this.keys = keys
    this.received = new ReceivedPackets(space)
    this.crypto = new CryptoStream()
    this.isDiscarded = false
  }
}

/** The three spaces of a connection. */
export function makeSpaces(crypto: QuicCrypto): readonly [PacketSpace, PacketSpace, PacketSpace] {
  const forgeries = new ForgeryCount()
  return [
    new PacketSpace(Space.initial, Level.initial, new LevelKeys(crypto, forgeries)),
    new PacketSpace(Space.handshake, Level.handshake, new LevelKeys(crypto, forgeries)),
    new PacketSpace(Space.application, Level.application, new ApplicationKeys(crypto, forgeries)),
  ]
}
