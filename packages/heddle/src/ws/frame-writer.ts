import type { Exchange } from '../http/index.ts'
import { headerSize, maskBit, writeHeader, writeUint32 } from './frame.ts'
import { applyMask } from './mask.ts'

/** Where a payload begins in the scratch: room for any header in front of it, and aligned for masking. */
export const payloadAt = 16
/** Octets of payload the scratch has room for; a multiple of 4, so that the mask goes on as it is behind it. */
export const scratchRoom = 65_536
/** A payload up to this is copied behind its header; a longer one is given by itself. */
const composeMost = 4_096
/** Up to this, a loop copies faster than a call. */
const loopMost = 24

/**
 * Where frames are put together, and text is encoded. One for the process: an exchange copies what it is
 * given, or sends it, before it returns, and calls nobody back.
 */
export const scratch: Buffer = Buffer.allocUnsafeSlow(payloadAt + scratchRoom)

/** Puts frames on an exchange: the header in front of the payload, masked if this is a client's. */
export class FrameWriter {
  /** False: the exchange asked to wait, and has not said since that it is writable. */
  writable: boolean
  /** Octets given to the exchange; the caller takes them off. */
  wire: number
  readonly #exchange: Exchange
  readonly #maskKey: (() => number) | undefined

  constructor(exchange: Exchange, maskKey: (() => number) | undefined) {
    this.writable = true
    this.wire = 0
    this.#exchange = exchange
    this.#maskKey = maskKey
  }

  /**
   * Writes one frame with the payload `buffer[start, limit)`, which may lie in the scratch at `payloadAt`.
   * `first`: opcode and flags. `owned`: as for `sendOwned`. `end`: nothing follows on this exchange.
   */
  write(first: number, buffer: Uint8Array, start: number, limit: number, owned: boolean, end: boolean): void {
    if (this.#maskKey !== undefined) this.#writeMasked(first, buffer, start, limit, this.#maskKey() | 0, end)
    else if (limit - start <= composeMost || buffer === scratch) this.#compose(first, buffer, start, limit, end)
    else this.#writeApart(first, buffer, start, limit, owned, end)
  }

  /** Writes a frame that is complete. */
  writeWhole(frame: Uint8Array): void {
    this.wire += frame.length
    this.writable =
      frame.length <= composeMost ? this.#exchange.sendData(frame, 0, frame.length, false) : this.#exchange.sendOwned(frame, false)
  }

  #compose(first: number, buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const length = limit - start
    if (buffer !== scratch) copyToScratch(buffer, start, limit)
    const at = payloadAt - headerSize(length)
    writeHeader(scratch, at, first, 0, length)
    this.#send(at, payloadAt + length, end)
  }

  #writeApart(first: number, buffer: Uint8Array, start: number, limit: number, owned: boolean, end: boolean): void {
    const length = limit - start
    const at = payloadAt - headerSize(length)
    writeHeader(scratch, at, first, 0, length)
    this.#send(at, payloadAt, false)
    this.wire += length
    if (!owned) this.writable = this.#exchange.sendData(buffer, start, limit, end)
    else if (length === buffer.length) this.writable = this.#exchange.sendOwned(buffer, end)
    else this.writable = this.#exchange.sendOwned(buffer.subarray(start, limit), end)
  }

  #writeMasked(first: number, buffer: Uint8Array, start: number, limit: number, key: number, end: boolean): void {
    const length = limit - start
    const at = payloadAt - 4 - headerSize(length)
    writeUint32(scratch, writeHeader(scratch, at, first, maskBit, length), key)
    if (buffer === scratch) {
      applyMask(scratch, payloadAt, payloadAt + length, key)
      this.#send(at, payloadAt + length, end)
      return
    }
    // RFC 6455 §5.3: the caller's bytes stay as they are; what leaves is a masked copy.
    let from = at
    let done = start
    do {
      const until = limit - done > scratchRoom ? done + scratchRoom : limit
      const filled = payloadAt + until - done
      copyToScratch(buffer, done, until)
      applyMask(scratch, payloadAt, filled, key)
      this.#send(from, filled, end && until === limit)
      from = payloadAt
      done = until
    } while (done < limit)
  }

  #send(start: number, limit: number, end: boolean): void {
    this.wire += limit - start
    this.writable = this.#exchange.sendData(scratch, start, limit, end)
  }
}

function copyToScratch(buffer: Uint8Array, start: number, limit: number): void {
  if (limit - start > loopMost) {
    copy.call(buffer, scratch, payloadAt, start, limit)
    return
  }
  for (let at = payloadAt; start < limit;) scratch[at++] = buffer[start++] as number
}

/** Encodes `text` into the scratch at `payloadAt`, lone surrogates as U+FFFD; there must be room for 3 octets each unit. Returns where it ends. */
export function encodeText(text: string): number {
  const { length } = text
  if (length > loopMost) return payloadAt + utf8Write.call(scratch, text, payloadAt, scratchRoom)
  let at = payloadAt
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code > 0x7f) return payloadAt + utf8Write.call(scratch, text, payloadAt, scratchRoom)
    scratch[at++] = code
  }
  return at
}

/** The longest text that is sure to fit the scratch. */
export const scratchText: number = Math.floor(scratchRoom / 3)

// Without the checks of their arguments, and without views.
const { copy, utf8Write } = Buffer.prototype as unknown as {
  copy(this: Uint8Array, target: Uint8Array, at: number, start: number, limit: number): number
  utf8Write(this: Uint8Array, text: string, at: number, byteCount: number): number
}
