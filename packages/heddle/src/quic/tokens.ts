import type { Address } from '../http/index.ts'
import type { QuicCrypto } from '../native/index.ts'

/** A Retry is answered at once: its token is good for so long, ms. */
export const retryTokenAge = 10_000
/** A token of NEW_TOKEN is for a later connection: good for a day, ms. */
export const newTokenAge = 86_400_000

const Kind = { retry: 1, newToken: 2 } as const

const none = new Uint8Array(0)
const utf8 = new TextEncoder()

/** What a token says. */
export interface OpenedToken {
  /** It comes from a Retry packet; otherwise from NEW_TOKEN. */
  readonly isRetry: boolean
  /** It is not too old, and of this address. */
  readonly isGood: boolean
  /** Of a Retry: the Destination Connection ID of the client's first Initial packet. */
  readonly originalDestination: Uint8Array
  /** Of a Retry: the Source Connection ID of the Retry packet. */
  readonly retrySource: Uint8Array
}

/**
 * Makes and checks the tokens that show that a client receives at its address (RFC 9000 §8.1). A token is
 * sealed, and holds what it is, when it was made, for which address, and for Retry the connection ids:
 * the server keeps nothing.
 */
export class Tokens {
  readonly #crypto: QuicCrypto
  readonly #key: Uint8Array

  /** `key`: 32 octets; servers that share it take each other's tokens. */
  constructor(crypto: QuicCrypto, key: Uint8Array) {
    this.#crypto = crypto
    this.#key = key
  }

  /** The token of a Retry packet. `wallTime`: ms since 1970. */
  retry(client: Address, originalDestination: Uint8Array, retrySource: Uint8Array, wallTime: number): Uint8Array {
    // RFC 9000 §8.1.4: of a Retry, the port counts, too.
    return this.#seal(Kind.retry, `${client.address} ${client.port}`, originalDestination, retrySource, wallTime)
  }

  /** The token of a NEW_TOKEN frame. `wallTime`: ms since 1970. */
  later(client: Address, wallTime: number): Uint8Array {
    return this.#seal(Kind.newToken, client.address, none, none, wallTime)
  }

  /** What `token` says; undefined if it is not one of ours. */
  open(token: Uint8Array, client: Address, wallTime: number): OpenedToken | undefined {
    const content = this.#crypto.openToken(this.#key, token)
    if (content === undefined || content.length < 11) return undefined
    const view = new DataView(content.buffer, content.byteOffset, content.length)
    const isRetry = view.getUint8(0) === Kind.retry
    const age = wallTime - view.getFloat64(1)
    const originalLimit = 10 + view.getUint8(9)
    const retryLimit = originalLimit + 1 + view.getUint8(originalLimit)
    const address = utf8.encode(isRetry ? `${client.address} ${client.port}` : client.address)
    // Clocks of servers that share a key may differ by some seconds.
    const isInTime = age >= -10_000 && age <= (isRetry ? retryTokenAge : newTokenAge)
    const isOfClient = content.length - retryLimit === address.length && address.every((octet, i) => octet === content[retryLimit + i])
    return {
      isRetry,
      isGood: isInTime && isOfClient,
      originalDestination: content.subarray(10, originalLimit),
      retrySource: content.subarray(originalLimit + 1, retryLimit),
    }
  }

  #seal(kind: number, client: string, originalDestination: Uint8Array, retrySource: Uint8Array, wallTime: number): Uint8Array {
    const address = utf8.encode(client)
    const content = new Uint8Array(11 + originalDestination.length + retrySource.length + address.length)
    const view = new DataView(content.buffer)
    view.setUint8(0, kind)
    view.setFloat64(1, wallTime)
    view.setUint8(9, originalDestination.length)
    content.set(originalDestination, 10)
    let at = 10 + originalDestination.length
    content[at++] = retrySource.length
    content.set(retrySource, at)
    content.set(address, at + retrySource.length)
    return this.#crypto.sealToken(this.#key, content)
  }
}
