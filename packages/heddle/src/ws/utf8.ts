/** Runs shorter than this are looked at here, longer ones by the native function, if there is one. */
const worthNative = 192

/**
 * Reads text in pieces and finds the first octet that cannot be UTF-8 (RFC 3629, Unicode's table of well-formed
 * byte sequences): overlong forms, surrogates and what is above U+10FFFF are faults at their second octet.
 */
export class Utf8Reader {
  readonly #isUtf8: ((bytes: Uint8Array) => boolean) | undefined
  /** Octets that the sequence begun still needs. */
  #needed: number
  /** The next octet's bounds. */
  #least: number
  #most: number

  constructor(isUtf8: ((bytes: Uint8Array) => boolean) | undefined) {
    this.#isUtf8 = isUtf8
    this.#needed = 0
    this.#least = 0x80
    this.#most = 0xbf
  }

  /** Forgets the text. */
  reset(): void {
    this.#needed = 0
    // The bounds are those of the octet that was to come.
    this.#least = 0x80
    this.#most = 0xbf
  }

  /** True: the text read so far does not end within a sequence. */
  get complete(): boolean {
    return this.#needed === 0
  }

  /** True if `buffer[start, limit)` is the whole of a text. */
  isText(buffer: Uint8Array, start: number, limit: number): boolean {
    if (this.#isUtf8 !== undefined && limit - start >= worthNative) return this.#isUtf8(view(buffer, start, limit))
    this.reset()
    return this.#read(buffer, start, limit) && this.#needed === 0
  }

  /** Reads on; false: this is no UTF-8, whatever follows. */
  read(buffer: Uint8Array, start: number, limit: number): boolean {
    if (this.#isUtf8 === undefined || limit - start < worthNative) return this.#read(buffer, start, limit)
    // What was begun before and what is not complete yet, each three octets at most, is read here.
    let at = start
    while (this.#needed > 0) if (!this.#read(buffer, at, ++at)) return false
    const whole = lastStart(buffer, limit)
    return this.#isUtf8(view(buffer, at, whole)) && this.#read(buffer, whole, limit)
  }

  #read(buffer: Uint8Array, start: number, limit: number): boolean {
    let at = start
    let needed = this.#needed
    let least = this.#least
    let most = this.#most
    while (at < limit) {
      if (needed === 0) at = skipAscii(buffer, at, limit)
      if (at === limit) break
      const octet = buffer[at++] as number
      if (needed > 0) {
        if (octet < least || octet > most) return false
        needed--
        least = 0x80
        most = 0xbf
      } else if (octet < 0xe0) {
        if (octet < 0xc2) return false
        needed = 1
      } else if (octet < 0xf0) {
        needed = 2
        if (octet === 0xe0) least = 0xa0
        else if (octet === 0xed) most = 0x9f
      } else {
        if (octet > 0xf4) return false
        needed = 3
        if (octet === 0xf0) least = 0x90
        else if (octet === 0xf4) most = 0x8f
      }
    }
    this.#needed = needed
    this.#least = least
    this.#most = most
    return true
  }
}

/** The first octet from `at` on that is not ASCII. */
function skipAscii(buffer: Uint8Array, at: number, limit: number): number {
  const whole = limit - 3
  while (
    at < whole &&
    (((buffer[at] as number) | (buffer[at + 1] as number) | (buffer[at + 2] as number) | (buffer[at + 3] as number)) & 0x80) === 0
  ) {
    at += 4
  }
  while (at < limit && (buffer[at] as number) < 0x80) at++
  return at
}

/** Where the last sequence before `limit` begins, if it may be incomplete; else `limit`. */
function lastStart(buffer: Uint8Array, limit: number): number {
  for (let back = 1; back <= 3; back++) {
    const octet = buffer[limit - back] as number
    if (octet < 0x80) return limit
    if (octet >= 0xc0) return limit - back
  }
  return limit
}

function view(buffer: Uint8Array, start: number, limit: number): Uint8Array {
  return start === 0 && limit === buffer.length ? buffer : buffer.subarray(start, limit)
}
