import type { Instant } from '../http/index.ts'
import type { CipherSuite, HeaderKey, PacketKey, QuicCrypto } from '../native/index.ts'
import { headerKeyOf, nextSecret, packetKeyOf, suiteFacts } from './key-schedule.ts'
import { maskHeader, PacketOpener, type ForgeryCount } from './packet-opener.ts'
import type { PacketSealer } from './packet-writer.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'

const none = new Uint8Array(0)

/**
 * The keys of 1-RTT packets, which either side may update (RFC 9001 §6). Each update begins a new phase;
 * a packet tells the lowest bit of its phase. Phases are counted per direction:
 *
 *     write phase = read phase       at rest
 *     write phase = read phase + 1   we updated, the peer did not answer yet
 *
 * Three read keys stand side by side: of the phase, of the next one (made ahead, so that an update takes
 * no longer to open than any other packet, §6.3) and, for `retention` ms, of the one before, for packets
 * that were overtaken (§6.5).
 */
export class ApplicationKeys extends PacketOpener implements PacketSealer {
  readonly #cryptography: QuicCrypto
  readonly #forgeries: ForgeryCount
  /** How long the keys of the phase before are kept, in ms: three times the probe timeout (RFC 9001 §6.5). */
  retention: number
  /** RFC 9001 §6.1: no update before the handshake is confirmed. Set by the owner. */
  confirmed: boolean
  /** Packets that one write key may seal. */
  confidentialityLimit: number
  /** Packets that may fail to open. */
  integrityLimit: number
  /** When the read key of the phase before goes; Infinity while there is none. */
  deadline: Instant

  #readSuite: CipherSuite
  #readPhase: number
  #readHeader: HeaderKey | undefined
  #readPrevious: PacketKey | undefined
  #readCurrent: PacketKey | undefined
  #readNext: PacketKey | undefined
  /** The secret that `#readNext` was made of. */
  #readNextSecret: Uint8Array
  /** The lowest packet number that came in the read phase; 0 in the first one. */
  #lowestOfPhase: number
  /** The phase of the packet that was opened last. */
  #openedPhase: number

  #writeSuite: CipherSuite
  #writePhase: number
  #writeHeader: HeaderKey | undefined
  #writeKey: PacketKey | undefined
  #writeSecret: Uint8Array
  /** Packets sealed in the write phase. */
  #sealed: number
  /** The first packet number of the write phase; Infinity before. */
  #firstSealed: number
  /** A packet of the write phase was acknowledged. */
  #isPhaseAcked: boolean
  /** A packet was sealed since the peer began its phase: before, it cannot know that we followed. */
  #hasSealedSinceRead: boolean

  constructor(cryptography: QuicCrypto, forgeries: ForgeryCount) {
    super()
    this.#cryptography = cryptography
    this.#forgeries = forgeries
    this.retention = 1_000
    this.confirmed = false
    this.confidentialityLimit = Infinity
    this.integrityLimit = Infinity
    this.deadline = Infinity
    this.#readSuite = 'TLS_AES_128_GCM_SHA256'
    this.#readPhase = 0
    this.#readHeader = undefined
    this.#readPrevious = undefined
    this.#readCurrent = undefined
    this.#readNext = undefined
    this.#readNextSecret = none
    this.#lowestOfPhase = 0
    this.#openedPhase = 0
    this.#writeSuite = 'TLS_AES_128_GCM_SHA256'
    this.#writePhase = 0
    this.#writeHeader = undefined
    this.#writeKey = undefined
    this.#writeSecret = none
    this.#sealed = 0
    this.#firstSealed = Infinity
    this.#isPhaseAcked = false
    this.#hasSealedSinceRead = true
  }

  /** Packets can be opened. */
  get canOpen(): boolean {
    return this.#readCurrent !== undefined
  }

  /** There are keys to seal packets with. */
  get canSeal(): boolean {
    return this.#writeKey !== undefined
  }

  /** RFC 9001 §6.6: nothing more may be sealed; the connection ends with AEAD_LIMIT_REACHED. Never if updates are made when due. */
  get isExhausted(): boolean {
    return this.#sealed >= this.confidentialityLimit
  }

  /** The Key Phase bit of the next packet to be sealed: 0 or 1. */
  get keyPhase(): number {
    return this.#writePhase & 1
  }

  /** How many times the keys to read with were updated. */
  get readPhase(): number {
    return this.#readPhase
  }

  /** How many times the keys to write with were updated. */
  get writePhase(): number {
    return this.#writePhase
  }

  /**
   * An update may begin (RFC 9001 §6.1, §6.5): the handshake is confirmed, the peer has acknowledged this
   * phase and answered it, and no overtaken packet of the phase before is waited for.
   */
  get canUpdate(): boolean {
    // An acknowledgement counts only if it came in a packet of the same phase: so the peer has answered.
    return this.confirmed && this.#isPhaseAcked && this.#readPrevious === undefined
  }

  /** The write key has sealed so many packets that it is time for an update. */
  get isUpdateDue(): boolean {
    return this.#sealed >= this.confidentialityLimit / 2
  }

  /** Takes the secret of one direction. */
  install(direction: 'read' | 'write', suite: CipherSuite, secret: Uint8Array): void {
    const facts = suiteFacts[suite]
    if (direction === 'write') {
      this.#writeSuite = suite
      this.#writeSecret = secret
      this.#writeKey = packetKeyOf(this.#cryptography, suite, secret)
      this.#writeHeader = headerKeyOf(this.#cryptography, suite, secret)
      this.confidentialityLimit = facts.confidentialityLimit
      return
    }
    this.#readSuite = suite
    this.#readCurrent = packetKeyOf(this.#cryptography, suite, secret)
    this.#readHeader = headerKeyOf(this.#cryptography, suite, secret)
    this.integrityLimit = facts.integrityLimit
    this.#makeReadNext(secret)
  }

  /** Begins an update: the next packet is of a new phase. False, and nothing done, unless `canUpdate`. */
  update(): boolean {
    if (!this.canUpdate) return false
    this.#advanceWrite()
    return true
  }

  /** {@link PacketSealer}. Needs `canSeal`, and a header with this `keyPhase`. */
  seal(
    buffer: Uint8Array,
    headerStart: number,
    packetNumberStart: number,
    payloadStart: number,
    payloadLimit: number,
    packetNumber: number,
  ): void {
    if (this.#sealed++ === 0) this.#firstSealed = packetNumber
    this.#hasSealedSinceRead = true
    ;(this.#writeKey as PacketKey).seal(buffer, headerStart, payloadStart, payloadLimit, packetNumber)
    maskHeader(this.#writeHeader as HeaderKey, buffer, headerStart, packetNumberStart, payloadStart - packetNumberStart)
  }

  /**
   * Opens a packet in place, and follows an update of the peer. False: the packet is to be dropped, and
   * if `fault` is set the connection is to be closed. `largestReceived`: −1 for none yet.
   */
  open(buffer: Uint8Array, packetStart: number, packetNumberStart: number, limit: number, largestReceived: number, now: Instant): boolean {
    const current = this.#readCurrent
    if (current === undefined) {
      this.fault = undefined
      return false
    }
    if (!this.unmask(this.#readHeader as HeaderKey, buffer, packetStart, packetNumberStart, limit, largestReceived)) return false

    let key = current
    let phase = this.#readPhase
    if ((((buffer[packetStart] as number) >>> 2) & 1) !== (phase & 1)) {
      // RFC 9001 §6.3: a number below all of this phase is of the phase before, any other of the next.
      const isOvertaken = this.packetNumber < this.#lowestOfPhase && this.#readPrevious !== undefined
      key = (isOvertaken ? this.#readPrevious : this.#readNext) as PacketKey
      phase += isOvertaken ? -1 : 1
    }
    if (!key.open(buffer, packetStart, this.payloadStart, limit, this.packetNumber)) {
      return this.countForgery(this.#forgeries, this.integrityLimit)
    }
    if (!this.accept(buffer, packetStart)) return false
    this.#openedPhase = phase
    if (phase > this.#readPhase) return this.#followUpdate(now)
    if (phase === this.#readPhase && this.packetNumber < this.#lowestOfPhase) this.#lowestOfPhase = this.packetNumber
    return true
  }

  /**
   * The packet opened last acknowledges `packetNumber`, the largest of its ACK. Returns a fault if the
   * peer acknowledges with old keys what was sent with new ones (RFC 9001 §6.2).
   */
  onAcked(packetNumber: number): TransportFault | undefined {
    if (packetNumber < this.#firstSealed) return undefined
    if (this.#openedPhase < this.#writePhase) {
      return transportFault(TransportError.keyUpdateError, 0, 'new keys are acknowledged with old ones')
    }
    this.#isPhaseAcked = true
    return undefined
  }

  /** Lets the read key of the phase before go if its time is over. */
  expire(now: Instant): void {
    if (now >= this.deadline) this.#dropPrevious()
  }

  /** Lets all keys go, for good. */
  discard(): void {
    this.#dropPrevious()
    for (const key of [this.#readCurrent, this.#readNext, this.#readHeader, this.#writeKey, this.#writeHeader]) key?.close()
    this.#readCurrent = undefined
    this.#readNext = undefined
    this.#readHeader = undefined
    this.#writeKey = undefined
    this.#writeHeader = undefined
    this.#readNextSecret = none
    this.#writeSecret = none
  }

  /** The packet at hand was opened with the next key. */
  #followUpdate(now: Instant): boolean {
    // RFC 9001 §6.4: newer keys never go with lower packet numbers.
    if (this.packetNumber < this.#lowestOfPhase) return this.refuse(TransportError.keyUpdateError, 'newer keys with a lower packet number')
    // RFC 9001 §6.2: the peer cannot have seen an acknowledgement of its last update.
    if (!this.#hasSealedSinceRead) return this.refuse(TransportError.keyUpdateError, 'keys were updated twice in a row')
    this.#dropPrevious()
    this.#readPrevious = this.#readCurrent
    this.#readCurrent = this.#readNext
    this.deadline = now + this.retention
    this.#readPhase++
    this.#lowestOfPhase = this.packetNumber
    this.#hasSealedSinceRead = false
    this.#makeReadNext(this.#readNextSecret)
    // RFC 9001 §6.2: an update is answered in kind, before what it came with is acknowledged.
    if (this.#writePhase < this.#readPhase) this.#advanceWrite()
    return true
  }

  #makeReadNext(secret: Uint8Array): void {
    this.#readNextSecret = nextSecret(this.#cryptography, this.#readSuite, secret)
    this.#readNext = packetKeyOf(this.#cryptography, this.#readSuite, this.#readNextSecret)
  }

  #advanceWrite(): void {
    this.#writePhase++
    this.#sealed = 0
    this.#firstSealed = Infinity
    this.#isPhaseAcked = false
    if (this.#writeKey === undefined) return
    this.#writeKey.close()
    this.#writeSecret = nextSecret(this.#cryptography, this.#writeSuite, this.#writeSecret)
    this.#writeKey = packetKeyOf(this.#cryptography, this.#writeSuite, this.#writeSecret)
  }

  #dropPrevious(): void {
    this.#readPrevious?.close()
    this.#readPrevious = undefined
    this.deadline = Infinity
  }
}
