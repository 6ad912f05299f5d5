import { Carried, carriedWidth } from './carried.ts'
import type { QuicConnection } from './connection.ts'
import type { PacketFate } from './recovery.ts'
import type { SentPacket } from './sent-packet.ts'
import { Space } from './space.ts'
import { onStreamAcked, onStreamLost } from './stream-frames.ts'

/** Tells everybody what became of the packets that carried something of theirs. */
export class Fate implements PacketFate {
  readonly #connection: QuicConnection

  constructor(connection: QuicConnection) {
    this.#connection = connection
  }

  onAcked(space: Space, packet: SentPacket): void {
    const connection = this.#connection
    const { carried, packetNumber } = packet
    if (packet.isMtuProbe) {
      // What took the path before says nothing of this one.
      if (packet.size > 0) connection.mtu.onProbeAcked(carried[1] as number)
    } else if (packet.ackEliciting) connection.mtu.onAcked(packet.size)
    for (let i = 0; i < carried.length; i += carriedWidth) {
      const a = carried[i + 1] as number
      const b = carried[i + 2] as number
      const kind = carried[i] as Carried
      switch (kind) {
        case Carried.ack:
          connection.spaces[space].received.onAckOfAck(a)
          break
        case Carried.crypto:
          connection.spaces[space].crypto.onAcked(a, b)
          break
        case Carried.retireConnectionId:
          connection.remoteIds.onAcked(a)
          break
        case Carried.handshakeDone:
          connection.handshakeDone.onAcked()
          break
        case Carried.newToken:
          connection.newToken.onAcked()
          break
        default:
          onStreamAcked(connection.streams, packetNumber, kind, a, b, carried[i + 3] as number)
      }
    }
  }

  onLost(space: Space, packet: SentPacket): void {
    const { mtu, now } = this.#connection
    if (packet.isMtuProbe) {
      if (packet.size > 0) mtu.onProbeLost(packet.carried[1] as number)
    } else if (packet.ackEliciting) mtu.onLost(packet.size, packet.timeSent, now)
    this.resend(space, packet)
  }

  /** RFC 9002 §6.2.4: a probe repeats what is longest under way. */
  prepareProbes(): void {
    const { recovery, spaces } = this.#connection
    for (const { space, crypto, keys, isDiscarded } of spaces) {
      // Packets of one space that stay without an answer may fill the window that another one needs to get on.
      if (!isDiscarded && space !== Space.application && crypto.hasToSend && keys.canSeal) recovery.addProbe(space)
      let packet = recovery.oldestEliciting(space)
      for (let count = recovery.probesDue(space); packet !== undefined && count > 0; count--) {
        this.resend(space, packet)
        packet = recovery.oldestEliciting(space, packet)
      }
    }
  }

  /** What the packet carried is to be sent again, whether it arrives or not. */
  resend(space: Space, packet: SentPacket): void {
    const connection = this.#connection
    const { carried, packetNumber } = packet
    for (let i = 0; i < carried.length; i += carriedWidth) {
      const a = carried[i + 1] as number
      const b = carried[i + 2] as number
      const kind = carried[i] as Carried
      switch (kind) {
        case Carried.crypto:
          connection.spaces[space].crypto.onLost(a, b)
          break
        case Carried.newConnectionId:
          connection.localIds.onLost(a)
          break
        case Carried.retireConnectionId:
          connection.remoteIds.onLost(a)
          break
        case Carried.handshakeDone:
          connection.handshakeDone.onLost(packetNumber)
          break
        case Carried.newToken:
          connection.newToken.onLost(packetNumber)
          break
        default:
          onStreamLost(connection.streams, packetNumber, kind, a, b, carried[i + 3] as number)
      }
    }
  }
}
