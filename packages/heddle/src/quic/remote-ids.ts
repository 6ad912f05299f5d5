import { RangeSet } from '../bytes/index.ts'
import { Carried, carry, type CarriedBy } from './carried.ts'
import { FrameType } from './frame-type.ts'
import { writeRetireConnectionId } from './frame-writer.ts'
import { isSame, mostConnectionIds } from './local-ids.ts'
import type { PacketWriter } from './packet-writer.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'

/** Who is told of the reset tokens of the ids in use: packets that nobody can read may end with them (RFC 9000 §10.3.1). */
export interface ResetTokens {
  onResetToken(token: Uint8Array, isInUse: boolean): void
}

/** RETIRE_CONNECTION_ID frames that may wait: a peer that makes us retire faster than it acknowledges is stopped (CVE-2024-22189). */
export const mostPendingRetirements = 100

interface RemoteId {
  readonly sequence: number
  readonly id: Uint8Array
  /** Absent of the id of the handshake, until the server's transport parameters bring it. */
  resetToken: Uint8Array | undefined
}

/** Runs of sequence numbers given up that are remembered: only a peer that leaves gaps on purpose makes more. */
const mostGaps = 64

/**
 * The connection ids that the peer chose and this endpoint addresses its packets with (RFC 9000 §5.1.2).
 * One is for the current path, and one for the path beside it, if there is one. Those with a sequence
 * number below `#retirePriorTo`, or which were given up here, are retired: of each a RETIRE_CONNECTION_ID is
 * sent until it is acknowledged.
 */
export class RemoteIds {
  readonly #tokens: ResetTokens | undefined
  #ids: RemoteId[]
  #current: RemoteId
  /** Of the path beside the current one; undefined: nothing was sent there, or all ids are used. */
  #beside: RemoteId | undefined
  #retirePriorTo: number
  /** Sequence numbers that were given up although they are not below `#retirePriorTo`. */
  readonly #givenUp: RangeSet
  /** Sequence numbers whose RETIRE_CONNECTION_ID waits to be sent (again). */
  #toRetire: number[]
  /** Of those sent and not acknowledged. */
  readonly #unacknowledged: Set<number>
  /** The reset tokens that were told of as in use. */
  #told: Uint8Array[]

  constructor(first: Uint8Array, tokens?: ResetTokens) {
    this.#tokens = tokens
    this.#current = { sequence: 0, id: first, resetToken: undefined }
    this.#ids = [this.#current]
    this.#beside = undefined
    this.#retirePriorTo = 0
    this.#givenUp = new RangeSet()
    this.#toRetire = []
    this.#unacknowledged = new Set()
    this.#told = []
  }

  /** What packets are addressed with. */
  get current(): Uint8Array {
    return this.#current.id
  }

  /** What packets to the path beside the current one are addressed with: an id of its own, if there is one left (RFC 9000 §9.5). */
  takeBeside(): Uint8Array {
    if (this.#beside === undefined) {
      this.#beside = this.#spare()
      this.#tell()
    }
    return (this.#beside ?? this.#current).id
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
    this.#tell()
  }

  /** NEW_CONNECTION_ID. The arrays are kept. */
  receiveNew(sequence: number, retirePriorTo: number, id: Uint8Array, resetToken: Uint8Array): TransportFault | undefined {
    const failed = this.#add(sequence, retirePriorTo, id, resetToken)
    this.#tell()
    return failed
  }

  #add(sequence: number, retirePriorTo: number, id: Uint8Array, resetToken: Uint8Array): TransportFault | undefined {
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
    if (this.#givenUp.contains(sequence)) return this.#retireBelow(retirePriorTo)
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
    const next = this.#spare()
    if (next === undefined) return false
    const old = this.#current
    this.#current = next
    this.#giveUp(old)
    this.#tell()
    return true
  }

  /** The path beside is the current one now, and the reverse; each keeps its id. */
  swap(): void {
    const next = this.#beside ?? this.#spare()
    // With one id for all there is nothing to exchange.
    if (next === undefined) return
    this.#beside = this.#current
    this.#current = next
    this.#tell()
  }

  /** There is no path beside the current one any more: its id is retired. */
  dropBeside(): void {
    const beside = this.#beside
    if (beside === undefined) return
    this.#beside = undefined
    this.#giveUp(beside)
    this.#tell()
  }

  /** The last 16 octets of a datagram, `[start, start + 16)`, are the reset token of an id in use (RFC 9000 §10.3.1). */
  isReset(buffer: Uint8Array, start: number): boolean {
    let found = false
    for (const each of [this.#current, this.#beside]) {
      const token = each?.resetToken
      if (token === undefined) continue
      // RFC 9000 §10.3.1: in a time that tells nothing of the token.
      let difference = 0
      for (let i = 0; i < 16; i++) difference |= (token[i] as number) ^ (buffer[start + i] as number)
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

  /** The connection is gone: nobody waits for a reset any more. */
  close(): void {
    for (const token of this.#told) this.#tokens?.onResetToken(token, false)
    this.#told = []
  }

  /** An id that was never used. */
  #spare(): RemoteId | undefined {
    return this.#ids.find((each) => each !== this.#current && each !== this.#beside)
  }

  #giveUp(old: RemoteId): void {
    this.#ids = this.#ids.filter((each) => each !== old)
    this.#givenUp.add(old.sequence, old.sequence + 1)
    this.#toRetire.push(old.sequence)
  }

  #retireBelow(retirePriorTo: number): TransportFault | undefined {
    if (retirePriorTo <= this.#retirePriorTo) return this.#checkPending()
    this.#retirePriorTo = retirePriorTo
    for (const each of this.#ids) if (each.sequence < retirePriorTo) this.#toRetire.push(each.sequence)
    this.#ids = this.#ids.filter((each) => each.sequence >= retirePriorTo)
    this.#givenUp.remove(0, retirePriorTo)
    if (this.#ids.length === 0) return fault(TransportError.protocolViolation, 'no connection id is left')
    // RFC 9000 §5.1.2: packets go to other ones from now on.
    if (this.#beside !== undefined && this.#beside.sequence < retirePriorTo) this.#beside = undefined
    if (this.#current.sequence < retirePriorTo) {
      const next = this.#spare() ?? (this.#beside as RemoteId)
      if (next === this.#beside) this.#beside = undefined
      this.#current = next
    }
    return this.#checkPending()
  }

  #checkPending(): TransportFault | undefined {
    return this.pendingRetirements > mostPendingRetirements || this.#givenUp.count > mostGaps
      ? fault(TransportError.connectionIdLimitError, `more than ${mostPendingRetirements} connection ids wait to be retired`)
      : undefined
  }

  /** Tells of what has changed in the reset tokens in use. */
  #tell(): void {
    if (this.#tokens === undefined) return
    const inUse: Uint8Array[] = []
    for (const each of [this.#current, this.#beside]) if (each?.resetToken !== undefined) inUse.push(each.resetToken)
    const before = this.#told
    this.#told = inUse
    for (const token of before) if (!inUse.includes(token)) this.#tokens.onResetToken(token, false)
    for (const token of inUse) if (!before.includes(token)) this.#tokens.onResetToken(token, true)
  }
}

function fault(code: TransportError, reason: string): TransportFault {
  return transportFault(code, FrameType.newConnectionId, reason)
}
