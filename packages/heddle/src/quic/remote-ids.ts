import { Carried, carry, type CarriedBy } from './carried.ts'
import { FrameType } from './frame-type.ts'
import { writeRetireConnectionId } from './frame-writer.ts'
import { isSame, mostConnectionIds } from './local-ids.ts'
import type { PacketWriter } from './packet-writer.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'

/** RETIRE_CONNECTION_ID frames that may wait: a peer that makes us retire faster than it acknowledges is stopped (CVE-2024-22189). */
export const mostPendingRetirements = 100

interface RemoteId {
  readonly sequence: number
  readonly id: Uint8Array
  /** Absent of the id of the handshake, until the server's transport parameters bring it. */
  resetToken: Uint8Array | undefined
}

/**
 * The connection ids that the peer chose and this endpoint addresses its packets with (RFC 9000 §5.1.2).
 * Those with a sequence number below `#retirePriorTo`, or which were given up here, are retired: of each
 * a RETIRE_CONNECTION_ID is sent until it is acknowledged.
 */
export class RemoteIds {
  #ids: RemoteId[]
  #current: RemoteId
  #retirePriorTo: number
  /** Sequence numbers that were given up although they are not below `#retirePriorTo`. */
  #givenUp: number[]
  /** Sequence numbers whose RETIRE_CONNECTION_ID waits to be sent (again). */
  #toRetire: number[]
  /** Of those sent and not acknowledged. */
  readonly #unacknowledged: Set<number>

  constructor(first: Uint8Array) {
    this.#current = { sequence: 0, id: first, resetToken: undefined }
    this.#ids = [this.#current]
    this.#retirePriorTo = 0
    this.#givenUp = []
    this.#toRetire = []
    this.#unacknowledged = new Set()
  }

  /** What packets are addressed with. */
  get current(): Uint8Array {
    return this.#current.id
  }

  /** An id that was never used: `change` would make it the current one. */
  get spare(): Uint8Array | undefined {
    return this.#ids.find((each) => each !== this.#current)?.id
  }

  /** Something waits to be sent. */
  get hasToSend(): boolean {
    return this.#toRetire.length > 0
  }

  /** RETIRE_CONNECTION_ID frames that are not acknowledged. */
  get pendingRetirements(): number {
    return this.#toRetire.length + this.#unacknowledged.size
  }

  /** How many ids the peer has given and are not retired. */
  get count(): number {
    return this.#ids.length
  }

  /** Client: the server's own choice is known now (RFC 9000 §7.2); or Retry told another. */
  replaceFirst(id: Uint8Array): void {
    this.#current = { sequence: 0, id, resetToken: undefined }
    this.#ids = [this.#current]
  }

  /** Client: the server's transport parameter stateless_reset_token, of the id of the handshake. */
  setFirstResetToken(token: Uint8Array): void {
    const first = this.#ids.find((each) => each.sequence === 0)
    if (first !== undefined) first.resetToken = token
  }

  /** NEW_CONNECTION_ID. The arrays are kept. */
  receiveNew(sequence: number, retirePriorTo: number, id: Uint8Array, resetToken: Uint8Array): TransportFault | undefined {
    // RFC 9000 §19.15.
    if (this.#current.id.length === 0) return fault(TransportError.protocolViolation, 'a connection id for a peer that uses none')
    for (const each of this.#ids) {
      const isId = isSame(each.id, id, 0, id.length)
      // RFC 9000 §19.15: the same frame may come again, but nothing that differs in one of them.
      if (isId !== (each.sequence === sequence)) {
        return fault(TransportError.protocolViolation, 'a connection id is issued with two sequence numbers, or the reverse')
      }
      if (!isId) continue
      if (each.resetToken !== undefined && !isSame(each.resetToken, resetToken, 0, resetToken.length)) {
        return fault(TransportError.protocolViolation, 'a connection id is issued with two reset tokens')
      }
      each.resetToken = resetToken
      return this.#retireBelow(retirePriorTo)
    }
    if (this.#givenUp.includes(sequence)) return this.#retireBelow(retirePriorTo)
    if (sequence < this.#retirePriorTo) {
      // RFC 9000 §19.15: it is retired at once, unless that was done when it came before.
      if (!this.#toRetire.includes(sequence) && !this.#unacknowledged.has(sequence)) this.#toRetire.push(sequence)
      return this.#checkPending()
    }
    this.#ids.push({ sequence, id, resetToken })
    const failed = this.#retireBelow(retirePriorTo)
    if (failed !== undefined) return failed
    // RFC 9000 §5.1.1: what is retired by the same frame does not count.
    return this.#ids.length > mostConnectionIds
      ? fault(TransportError.connectionIdLimitError, `more than ${mostConnectionIds} connection ids`)
      : undefined
  }

  /**
   * Another id for another path, so that nobody can link the two (RFC 9000 §9.5); the one so far is
   * retired. False if the peer has given no other.
   */
  change(): boolean {
    const next = this.#ids.find((each) => each !== this.#current)
    if (next === undefined) return false
    const old = this.#current
    this.#current = next
    this.#ids = this.#ids.filter((each) => each !== old)
    this.#givenUp.push(old.sequence)
    this.#toRetire.push(old.sequence)
    return true
  }

  /** The last 16 octets of a datagram, `[start, start + 16)`, are the reset token of an id in use (RFC 9000 §10.3.1). */
  isReset(buffer: Uint8Array, start: number): boolean {
    let found = false
    for (const { resetToken } of this.#ids) {
      if (resetToken === undefined) continue
      // RFC 9000 §10.3.1: in a time that tells nothing of the token.
      let difference = 0
      for (let i = 0; i < 16; i++) difference |= (resetToken[i] as number) ^ (buffer[start + i] as number)
      if (difference === 0) found = true
    }
    return found
  }

  /** Writes RETIRE_CONNECTION_ID frames; false if there was no room for all. */
  maybeWriteFrames(writer: PacketWriter, packet: CarriedBy): boolean {
    while (this.#toRetire.length > 0) {
      const sequence = this.#toRetire.at(-1) as number
      if (!writeRetireConnectionId(writer, sequence)) return false
      carry(packet.carried, Carried.retireConnectionId, sequence)
      this.#toRetire.pop()
      this.#unacknowledged.add(sequence)
    }
    return true
  }

  /** A packet with this RETIRE_CONNECTION_ID is acknowledged. */
  onAcked(sequence: number): void {
    this.#unacknowledged.delete(sequence)
    const waiting = this.#toRetire.indexOf(sequence)
    if (waiting >= 0) this.#toRetire.splice(waiting, 1)
  }

  /** A packet with this RETIRE_CONNECTION_ID is lost. */
  onLost(sequence: number): void {
    if (this.#unacknowledged.delete(sequence)) this.#toRetire.push(sequence)
  }

  #retireBelow(retirePriorTo: number): TransportFault | undefined {
    if (retirePriorTo <= this.#retirePriorTo) return undefined
    this.#retirePriorTo = retirePriorTo
    for (const each of this.#ids) if (each.sequence < retirePriorTo) this.#toRetire.push(each.sequence)
    this.#ids = this.#ids.filter((each) => each.sequence >= retirePriorTo)
    this.#givenUp = this.#givenUp.filter((sequence) => sequence >= retirePriorTo)
    const [first] = this.#ids
    if (first === undefined) return fault(TransportError.protocolViolation, 'no connection id is left')
    // RFC 9000 §5.1.2: packets go to another one from now on.
    if (this.#current.sequence < retirePriorTo) this.#current = first
    return this.#checkPending()
  }

  #checkPending(): TransportFault | undefined {
    return this.pendingRetirements > mostPendingRetirements
      ? fault(TransportError.connectionIdLimitError, `more than ${mostPendingRetirements} connection ids wait to be retired`)
      : undefined
  }
}

function fault(code: TransportError, reason: string): TransportFault {
  return transportFault(code, FrameType.newConnectionId, reason)
}
