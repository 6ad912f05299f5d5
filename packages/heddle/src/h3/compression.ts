import type { FieldSection, SectionRole } from '../fieldcode/index.ts'
import { Decoder, Encoder, type QpackFault } from '../qpack/index.ts'
import type { Connection } from './connection.ts'
import type { Settings } from './settings.ts'
import type { Stream } from './stream.ts'

/** Instructions of our encoder that may wait to leave: what is not sure to leave soon must not be referred to (RFC 9204 §2.1.3). */
const mostInstructions = 4_096

/** The field compression of one connection (RFC 9204): both directions, and what they say to each other. */
export class Compression {
  readonly encoder: Encoder
  readonly #decoder: Decoder
  readonly #owner: Connection
  /** Sections that have become readable, and their streams, in turns. */
  readonly #unblocked: (Stream | FieldSection)[]

  constructor(owner: Connection) {
    const { limits } = owner
    const sizes = { maxTableCapacity: limits.headerTableSize, maxBlockedStreams: limits.blockedStreams }
    this.encoder = new Encoder(sizes)
    this.encoder.instructionCredit = 0
    this.#decoder = new Decoder({ ...limits, ...sizes })
    this.#owner = owner
    this.#unblocked = []
  }

  /** Octets kept for sections that wait, and for instructions. */
  get pinned(): number {
    return this.#decoder.pinned
  }

  /** The peer's SETTINGS are here. */
  settingsCame(peer: Settings): void {
    this.allowInstructions()
    this.#judge(this.encoder.allow(peer.qpackMaxTableCapacity, peer.qpackBlockedStreams))
    this.flush()
  }

  /** The encoder stream is open, or has moved on. */
  allowInstructions(): void {
    const { encoderQueued } = this.#owner.streams
    this.encoder.instructionCredit = encoderQueued < mostInstructions ? mostInstructions - encoderQueued : 0
  }

  /** Decodes a whole section. Undefined: it waits, and is told to the receiver when it can be read; or the connection is over. */
  decode(stream: Stream, buffer: Uint8Array, start: number, limit: number, role: SectionRole): FieldSection | undefined {
    const section = this.#decoder.decode(stream.id, buffer, start, limit, role, stream)
    // RFC 9204 §6: what cannot be decoded is an error of the connection.
    if (section === undefined) this.#judge(this.#decoder.fault)
    return section
  }

  /** The section of `stream` can be read. Its decoder is at work, so it is read a moment later. */
  unblock(stream: Stream, section: FieldSection): void {
    this.#unblocked.push(stream, section)
  }

  /** Nothing more of the stream is read (RFC 9204 §2.2.2.2). */
  cancelStream(streamId: number): void {
    this.#decoder.cancelStream(streamId)
  }

  /** Instructions of the peer's encoder. */
  receiveEncoder(buffer: Uint8Array, start: number, limit: number): void {
    this.#judge(this.#decoder.receive(buffer, start, limit))
    const unblocked = this.#unblocked
    for (let i = 0; i < unblocked.length; i += 2) this.#owner.receiver.unblocked(unblocked[i] as Stream, unblocked[i + 1] as FieldSection)
    unblocked.length = 0
  }

  /** Instructions of the peer's decoder. */
  receiveDecoder(buffer: Uint8Array, start: number, limit: number): void {
    this.#judge(this.encoder.receive(buffer, start, limit))
  }

  #judge(fault: QpackFault | undefined): void {
    if (fault !== undefined) this.#owner.lifetime.fail(fault.code, fault.reason)
  }

  /** Sends what our encoder has to say, which goes before the section that refers to it. */
  flush(): void {
    const { instructions } = this.encoder
    if (instructions.length === 0) return
    const { length } = instructions
    instructions.length = 0
    this.#owner.streams.sendEncoder(instructions.buffer, 0, length)
    this.allowInstructions()
  }

  /** Sends what our decoder has to say: once for all that came in a run. */
  flushDecoder(): void {
    this.#decoder.finishInstructions()
    const { instructions } = this.#decoder
    if (instructions.length === 0) return
    const { length } = instructions
    instructions.length = 0
    this.#owner.streams.sendDecoder(instructions.buffer, 0, length)
  }
}
