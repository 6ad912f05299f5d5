import type { CipherSuite, HeaderKey, PacketKey, QuicCrypto } from '../native/index.ts'
import { headerKeyOf, initialSecrets, initialSuite, packetKeyOf, suiteFacts } from './key-schedule.ts'
import { maskHeader, PacketOpener, type ForgeryCount } from './packet-opener.ts'
import type { PacketSealer } from './packet-writer.ts'

/**
 * The keys of a level that never updates them: Initial, 0-RTT (one direction) and Handshake. Keys come
 * as TLS gives the secrets, and go with `discard` (RFC 9001 §4.9).
 */
export class LevelKeys extends PacketOpener implements PacketSealer {
  readonly #cryptography: QuicCrypto
  readonly #forgeries: ForgeryCount
  #readKey: PacketKey | undefined
  #readHeader: HeaderKey | undefined
  #integrityLimit: number
  #writeKey: PacketKey | undefined
  #writeHeader: HeaderKey | undefined
  #sealed: number
  /** Packets that the write key may seal (RFC 9001 §6.6); `install` sets what the suite allows. */
  confidentialityLimit: number
  /** The keys were there and are gone for good: no packet of the level counts any more. */
  isDiscarded: boolean

  constructor(cryptography: QuicCrypto, forgeries: ForgeryCount) {
    super()
    this.#cryptography = cryptography
    this.#forgeries = forgeries
    this.#readKey = undefined
    this.#readHeader = undefined
    this.#integrityLimit = 0
    this.#writeKey = undefined
    this.#writeHeader = undefined
    this.#sealed = 0
    this.confidentialityLimit = 0
    this.isDiscarded = false
  }

  /** Packets of the level can be opened. */
  get canOpen(): boolean {
    return this.#readKey !== undefined
  }

  /** Packets of the level can be sealed: there are keys, and they did not yet seal all they may (RFC 9001 §6.6). */
  get canSeal(): boolean {
    return this.#writeKey !== undefined && this.#sealed < this.confidentialityLimit
  }

  /**
   * Takes the keys of Initial packets, which follow from the Destination Connection ID of the client's
   * first one; after a Retry packet, from the id that it gave (RFC 9001 §5.2). Keys from before are let go.
   */
  installInitial(destinationId: Uint8Array, isServer: boolean): void {
    const { client, server } = initialSecrets(this.#cryptography, destinationId)
    this.install('read', initialSuite, isServer ? client : server)
    this.install('write', initialSuite, isServer ? server : client)
  }

  /** Takes the secret of one direction. A discarded level takes none. */
  install(direction: 'read' | 'write', suite: CipherSuite, secret: Uint8Array): void {
    if (this.isDiscarded) return
    const packetKey = packetKeyOf(this.#cryptography, suite, secret)
    const headerKey = headerKeyOf(this.#cryptography, suite, secret)
    if (direction === 'read') {
      this.#closeRead()
      this.#readKey = packetKey
      this.#readHeader = headerKey
      this.#integrityLimit = suiteFacts[suite].integrityLimit
    } else {
      this.#closeWrite()
      this.#writeKey = packetKey
      this.#writeHeader = headerKey
      this.#sealed = 0
      this.confidentialityLimit = suiteFacts[suite].confidentialityLimit
    }
  }

  /** {@link PacketSealer}. Needs `canSeal`. */
  seal(
    buffer: Uint8Array,
    headerStart: number,
    packetNumberStart: number,
    payloadStart: number,
    payloadLimit: number,
    packetNumber: number,
  ): void {
    this.#sealed++
    ;(this.#writeKey as PacketKey).seal(buffer, headerStart, payloadStart, payloadLimit, packetNumber)
    maskHeader(this.#writeHeader as HeaderKey, buffer, headerStart, packetNumberStart, payloadStart - packetNumberStart)
  }

  /**
   * Opens a packet in place. False: the packet is to be dropped, and if `fault` is set the connection is
   * to be closed. `largestReceived`: the largest packet number of the space so far, −1 for none.
   */
  open(buffer: Uint8Array, packetStart: number, packetNumberStart: number, limit: number, largestReceived: number): boolean {
    const key = this.#readKey
    if (key === undefined) {
      this.fault = undefined
      return false
    }
    if (!this.unmask(this.#readHeader as HeaderKey, buffer, packetStart, packetNumberStart, limit, largestReceived)) return false
    if (!key.open(buffer, packetStart, this.payloadStart, limit, this.packetNumber)) {
      return this.countForgery(this.#forgeries, this.#integrityLimit)
    }
    return this.accept(buffer, packetStart)
  }

  /** Lets all keys go, for good. */
  discard(): void {
    this.isDiscarded = true
    this.#closeRead()
    this.#closeWrite()
  }

  #closeRead(): void {
    this.#readKey?.close()
    this.#readHeader?.close()
    this.#readKey = undefined
    this.#readHeader = undefined
  }

  #closeWrite(): void {
    this.#writeKey?.close()
    this.#writeHeader?.close()
    this.#writeKey = undefined
    this.#writeHeader = undefined
  }
}
