import { Carried, carry, type CarriedBy } from './carried.ts'
import { FrameType } from './frame-type.ts'
import type { PacketWriter } from './packet-writer.ts'
import { Reassembly } from './reassembly.ts'
import { SendBuffer } from './send-buffer.ts'
import { startCrypto } from './stream-writer.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'

/** Octets of CRYPTO data that are kept before their turn (RFC 9000 §7.5: at least 4,096). */
export const mostCryptoAhead = 65_536

/** The handshake's octets of one packet number space, both ways (RFC 9000 §19.6). They know no flow control. */
export class CryptoStream {
  readonly #sending: SendBuffer
  readonly #receiving: Reassembly
  /** The octets that come next, for `read`. */
  #ready: Uint8Array[]

  constructor() {
    this.#sending = new SendBuffer()
    this.#receiving = new Reassembly()
    this.#ready = []
  }

  /** Something waits to be sent (again). */
  get hasToSend(): boolean {
    return this.#sending.unsent > 0 || !this.#sending.lost.isEmpty
  }

  /** Octets that did not arrive yet, as far as is known. */
  get outstanding(): number {
    return this.#sending.held
  }

  /** TLS wants this sent; it is kept. */
  write(bytes: Uint8Array): void {
    this.#sending.writeOwned(bytes)
  }

  /** Everything sent so far counts as lost: a Retry came (RFC 9000 §17.2.5.2), or nothing arrives. */
  resend(): void {
    const { base, next } = this.#sending
    if (next > base) this.#sending.onLost(base, next)
  }

  /** Writes CRYPTO frames; false if there was no room for all. */
  maybeWriteFrames(writer: PacketWriter, packet: CarriedBy): boolean {
    const sending = this.#sending
    while (this.hasToSend) {
      const isLost = !sending.lost.isEmpty
      const offset = isLost ? sending.lost.min : sending.next
      const taken = startCrypto(writer, offset, (isLost ? sending.lost.limit(0) : sending.end) - offset)
      if (taken < 0) return false
      sending.copy(offset, taken, writer.buffer, writer.at - taken)
      if (isLost) sending.lost.remove(offset, offset + taken)
      else sending.next += taken
      carry(packet.carried, Carried.crypto, offset, offset + taken)
    }
    return true
  }

  onAcked(start: number, limit: number): void {
    this.#sending.onAcked(start, limit)
  }

  onLost(start: number, limit: number): void {
    this.#sending.onLost(start, limit)
  }

  /** A CRYPTO frame: its octets are `buffer[start, limit)`. */
  receive(offset: number, buffer: Uint8Array, start: number, limit: number): TransportFault | undefined {
    const receiving = this.#receiving
    const end = offset + limit - start
    if (end <= receiving.base) return undefined
    // RFC 9000 §7.5.
    if (end - receiving.base > mostCryptoAhead) return fault(`CRYPTO data more than ${mostCryptoAhead} octets ahead`)
    if (!receiving.insert(offset, buffer, start, limit)) return fault('CRYPTO data with too many gaps')
    for (let bytes = receiving.take(); bytes !== undefined; bytes = receiving.take()) this.#ready.push(new Uint8Array(bytes))
    return undefined
  }

  /** The octets that come next; undefined: none is there. */
  read(): Uint8Array | undefined {
    return this.#ready.shift()
  }

  /** Octets came that wait for others. */
  get hasGap(): boolean {
    return !this.#receiving.isEmpty
  }

  /** The space is gone, and all that it held. */
  discard(): void {
    this.#sending.clear()
    this.#sending.base = this.#sending.end
    this.#sending.next = this.#sending.end
    this.#receiving.clear()
    this.#ready = []
  }
}

function fault(reason: string): TransportFault {
  return transportFault(TransportError.cryptoBufferExceeded, FrameType.crypto, reason)
}
