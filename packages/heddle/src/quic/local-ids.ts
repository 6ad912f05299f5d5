import { Carried, carry, type CarriedBy } from './carried.ts'
import { FrameType } from './frame-type.ts'
import { writeNewConnectionId } from './frame-writer.ts'
import type { PacketWriter } from './packet-writer.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'

/** Connection ids that one connection has in use at once, each way. */
export const mostConnectionIds = 8
/** RFC 9000 §18.2: what active_connection_id_limit is without the parameter, and at least. */
export const fewestConnectionIds = 2

/** Who makes ids and finds connections by them: the endpoint. */
export interface IdIssuer {
  /** A new id, by which datagrams find this connection from now on. */
  issue(): Uint8Array
  /** The stateless reset token of an id (RFC 9000 §10.3). */
  resetToken(id: Uint8Array): Uint8Array
  /** Datagrams with this id are no longer this connection's. */
  retire(id: Uint8Array): void
}

interface LocalId {
  readonly sequence: number
  readonly id: Uint8Array
  /** NEW_CONNECTION_ID waits to be sent (again). */
  waits: boolean
}

/**
 * The connection ids that this endpoint chose and the peer addresses its packets with (RFC 9000 §5.1.1).
 * As many are issued as the peer stores, and one anew for each that it retires.
 */
export class LocalIds {
  readonly #issuer: IdIssuer
  #ids: LocalId[]
  #nextSequence: number
  /** Ids the peer may have at once. */
  #limit: number
  #waiting: number

  /** `first`: the id of the handshake, sequence number 0, which datagrams find the connection by already. */
  constructor(first: Uint8Array, issuer: IdIssuer) {
    this.#issuer = issuer
    this.#ids = [{ sequence: 0, id: first, waits: false }]
    this.#nextSequence = 1
    this.#limit = 1
    this.#waiting = 0
  }

  /** Something waits to be sent. */
  get hasToSend(): boolean {
    return this.#waiting > 0
  }

  /** How many ids the peer has. */
  get count(): number {
    return this.#ids.length
  }

  /** The peer stores so many ids: its transport parameter. Issues what is missing. */
  allow(limit: number): void {
    this.#limit = Math.min(limit, mostConnectionIds)
    this.#fill()
  }

  /**
   * RETIRE_CONNECTION_ID. `[start, limit)` of `buffer` is the id that the packet itself was sent to.
   */
  receiveRetire(sequence: number, buffer: Uint8Array, start: number, limit: number): TransportFault | undefined {
    // RFC 9000 §19.16.
    if (sequence >= this.#nextSequence) return fault('a connection id is retired that was never issued')
    const index = this.#ids.findIndex((each) => each.sequence === sequence)
    // Retired before: the frame was sent twice.
    if (index < 0) return undefined
    const retired = this.#ids[index] as LocalId
    if (isSame(retired.id, buffer, start, limit)) return fault('a connection id is retired by a packet sent to it')
    this.#ids.splice(index, 1)
    if (retired.waits) this.#waiting--
    this.#issuer.retire(retired.id)
    this.#fill()
    return undefined
  }

  /** Writes NEW_CONNECTION_ID frames; false if there was no room for all. */
  maybeWriteFrames(writer: PacketWriter, packet: CarriedBy): boolean {
    if (this.#waiting === 0) return true
    for (const each of this.#ids) {
      if (!each.waits) continue
      if (!writeNewConnectionId(writer, each.sequence, 0, each.id, this.#issuer.resetToken(each.id))) return false
      carry(packet.carried, Carried.newConnectionId, each.sequence)
      each.waits = false
      this.#waiting--
    }
    return true
  }

  /** The packet with this NEW_CONNECTION_ID is lost. */
  onLost(sequence: number): void {
    const lost = this.#ids.find((each) => each.sequence === sequence)
    if (lost === undefined || lost.waits) return
    lost.waits = true
    this.#waiting++
  }

  /** The connection is gone: no datagram finds it any more. */
  close(): void {
    for (const { id } of this.#ids) this.#issuer.retire(id)
    this.#ids = []
    this.#waiting = 0
    this.#limit = 0
  }

  #fill(): void {
    // RFC 9000 §5.1.1: never more than the peer stores.
    while (this.#ids.length < this.#limit) {
      this.#ids.push({ sequence: this.#nextSequence++, id: this.#issuer.issue(), waits: true })
      this.#waiting++
    }
  }
}

/** `id` is what stands in `buffer[start, limit)`. */
export function isSame(id: Uint8Array, buffer: Uint8Array, start: number, limit: number): boolean {
  if (id.length !== limit - start) return false
  for (let i = 0; i < id.length; i++) if (id[i] !== buffer[start + i]) return false
  return true
}

function fault(reason: string): TransportFault {
  return transportFault(TransportError.protocolViolation, FrameType.retireConnectionId, reason)
}
