import { CloseCode } from './close-code.ts'
import { Flag, largestControl, largestHeader, maskBit, Opcode } from './frame.ts'
import type { WebSocketLimits } from './limits.ts'

const reservedBits = 0x70

/**
 * Reads the headers of frames at any split and judges them as soon as two octets are there (RFC 6455 §5.2);
 * the payload is for the caller, who counts `left` down and then calls `finish`. What concerns the
 * message, over all its frames, outlives the frames: control frames may stand between them.
 */
export class FrameReader {
  /** What is wrong with the frame, and the close code that says so; '' : nothing is. */
  fault: string
  faultCode: number

  /** A header was read, and its payload is not complete. */
  open: boolean
  /** Octets of its payload still to come. */
  left: number
  /** Its mask, turned so that it fits the next octet; 0 where there is none. */
  key: number
  /** Opcode of the frame if it is a control frame, else 0. */
  control: number

  /** Opcode of the message: Text or Binary. */
  opcode: number
  /** The frame is the message's last. */
  fin: boolean
  /** RSV1 of its first frame (RFC 7692 §6). */
  compressed: boolean
  /** Octets of payload the message's frames announced so far. */
  messageSize: number
  /** Frames of the message so far; 0: the next one begins a message. */
  fragments: number

  readonly #isServer: boolean
  readonly #allowed: number
  readonly #maxMessageSize: number
  readonly #maxCompressedSize: number
  readonly #maxFragments: number
  /** A header that did not arrive in one piece. */
  #header: Uint8Array | undefined
  #headerLength: number
  #headerSize: number

  constructor(isServer: boolean, deflate: boolean, limits: WebSocketLimits) {
    const { maxMessageSize } = limits
    this.fault = ''
    this.faultCode = 0
    this.open = false
    this.left = 0
    this.key = 0
    this.control = 0
    this.opcode = 0
    this.fin = false
    this.compressed = false
    this.messageSize = 0
    this.fragments = 0
    this.#isServer = isServer
    this.#allowed = deflate ? Flag.Rsv1 : 0
    this.#maxMessageSize = Math.min(maxMessageSize, Number.MAX_SAFE_INTEGER)
    // What cannot be compressed grows a little by being compressed.
    this.#maxCompressedSize = Math.min(maxMessageSize + Math.floor(maxMessageSize / 256) + 64, Number.MAX_SAFE_INTEGER)
    this.#maxFragments = limits.maxFragments
    this.#header = undefined
    this.#headerLength = 0
    this.#headerSize = 0
  }

  /** Reads a header from `at` on, or a part of one. Returns where it stopped; see `open` and `fault`. */
  read(buffer: Uint8Array, at: number, limit: number): number {
    if (this.#headerLength > 0 || limit - at < 2) return this.#collect(buffer, at, limit)
    const second = buffer[at + 1] as number
    const size = headerSize(second)
    if (limit - at < size) return this.#collect(buffer, at, limit)
    if (this.#judge(buffer[at] as number, second)) this.#begin(buffer, at, second)
    return at + size
  }

  #collect(buffer: Uint8Array, at: number, limit: number): number {
    const header = (this.#header ??= new Uint8Array(largestHeader))
    while (at < limit) {
      header[this.#headerLength++] = buffer[at++] as number
      if (this.#headerLength === 2) {
        const second = header[1] as number
        if (!this.#judge(header[0] as number, second)) return at
        this.#headerSize = headerSize(second)
      }
      if (this.#headerLength > 1 && this.#headerLength === this.#headerSize) {
        this.#headerLength = 0
        this.#begin(header, 0, header[1] as number)
        return at
      }
    }
    return at
  }

  /** The first two octets. False: they are a fault. */
  #judge(first: number, second: number): boolean {
    const opcode = first & 0x0f
    const isControl = opcode >= Opcode.Close
    // RFC 6455 §5.2: reserved bits are 0 unless an extension says otherwise; RFC 7692 §6: RSV1, in the first frame of a message.
    const allowed = opcode === Opcode.Text || opcode === Opcode.Binary ? this.#allowed : 0
    if ((first & reservedBits & ~allowed) !== 0) return this.#fail('reserved bits are set')
    // RFC 6455 §5.2
    if (opcode > Opcode.Pong || (opcode > Opcode.Binary && !isControl)) return this.#fail(`unknown opcode ${opcode}`)
    // RFC 6455 §5.1
    if (((second & maskBit) !== 0) !== this.#isServer) {
      return this.#fail(this.#isServer ? 'a frame of a client without a mask' : 'a frame of a server with a mask')
    }
    if (isControl) {
      // RFC 6455 §5.5
      if ((first & Flag.Fin) === 0) return this.#fail('a fragmented control frame')
      if ((second & 0x7f) > largestControl) return this.#fail(`a control frame of more than ${largestControl} octets`)
      this.control = opcode
      return true
    }
    // RFC 6455 §5.4
    if (opcode === Opcode.Continuation ? this.fragments === 0 : this.fragments > 0) {
      return this.#fail(opcode === Opcode.Continuation ? 'a continuation of nothing' : 'a message within a message')
    }
    this.control = 0
    if (opcode !== Opcode.Continuation) {
      this.opcode = opcode
      this.compressed = (first & Flag.Rsv1) !== 0
      this.messageSize = 0
    }
    this.fin = (first & Flag.Fin) !== 0
    if (++this.fragments > this.#maxFragments) return this.#fail('too many fragments', CloseCode.MessageTooBig)
    return true
  }

  /** The whole header is at `at`. */
  #begin(buffer: Uint8Array, at: number, second: number): void {
    let length = second & 0x7f
    let end = at + 2
    if (length === 126) {
      length = ((buffer[end] as number) << 8) | (buffer[end + 1] as number)
      end += 2
      // RFC 6455 §5.2: the least octets that can hold it.
      if (length < 126) return void this.#fail('a length in more octets than it needs')
    } else if (length === 127) {
      const high = readUint32(buffer, end)
      length = high * 0x1_0000_0000 + readUint32(buffer, end + 4)
      end += 8
      // RFC 6455 §5.2
      if (high >= 0x8000_0000) return void this.#fail('a length of more than 63 bits')
      if (length < 65_536) return void this.#fail('a length in more octets than it needs')
    }
    if (this.control === 0) {
      // What was announced is enough: nothing of it is waited for.
      this.messageSize += length
      if (this.messageSize > (this.compressed ? this.#maxCompressedSize : this.#maxMessageSize)) {
        return void this.#fail(`a message of more than ${this.#maxMessageSize} bytes`, CloseCode.MessageTooBig)
      }
    }
    this.key = this.#isServer ? readUint32(buffer, end) | 0 : 0
    this.left = length
    this.open = true
  }

  /** The payload of the frame is complete. */
  finish(): void {
    this.open = false
    if (this.control === 0 && this.fin) this.fragments = 0
  }

  #fail(fault: string, code: number = CloseCode.ProtocolError): boolean {
    this.fault = fault
    this.faultCode = code
    return false
  }
}

function headerSize(second: number): number {
  const length = second & 0x7f
  return 2 + (length < 126 ? 0 : length === 126 ? 2 : 8) + ((second & maskBit) === 0 ? 0 : 4)
}

function readUint32(buffer: Uint8Array, at: number): number {
  return (
    (((buffer[at] as number) << 24) |
      ((buffer[at + 1] as number) << 16) |
      ((buffer[at + 2] as number) << 8) |
      (buffer[at + 3] as number)) >>>
    0
  )
}
