import { createHash } from 'node:crypto'

/** RFC 8446 §4.1.3: the random of a HelloRetryRequest, which is 6 octets behind the message's beginning. */
const retryRandom = createHash('sha256').update('HelloRetryRequest').digest()
const whole = 6 + retryRandom.length

/** Tells a HelloRetryRequest from a ServerHello before OpenSSL reads it, by the first octets of the server's first message. */
export class RetryWatch {
  #begin: Buffer

  constructor() {
    this.#begin = Buffer.alloc(0)
  }

  /** Takes the next octets of the Initial level. True once: they show that it is a HelloRetryRequest. */
  sees(bytes: Uint8Array): boolean {
    const { length } = this.#begin
    if (length >= whole) return false
    this.#begin = Buffer.concat([this.#begin, bytes.subarray(0, whole - length)])
    return this.#begin.length === whole && this.#begin.subarray(6).equals(retryRandom)
  }
}
