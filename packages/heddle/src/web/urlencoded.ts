import { latin1Slice } from '../bytes/index.ts'

/**
 * The names and values of application/x-www-form-urlencoded content (WHATWG URL §5.1), as `URLSearchParams`
 * reads them; but in time that grows with the content alone, whatever a client puts in it.
 */
export function urlencodedPairs(bytes: Uint8Array): [name: string, value: string][] {
  const text = latin1Slice(bytes, 0, bytes.length)
  const pairs: [string, string][] = []
  for (let start = 0; start < text.length;) {
    const next = text.indexOf('&', start)
    const limit = next < 0 ? text.length : next
    if (limit > start) {
      const pair = text.slice(start, limit)
      const equals = pair.indexOf('=')
      if (equals < 0) pairs.push([decodedPart(pair), ''])
      else pairs.push([decodedPart(pair.slice(0, equals)), decodedPart(pair.slice(equals + 1))])
    }
    start = limit + 1
  }
  return pairs
}

const plain = /^[^%+\x80-\xff]*$/

/** `part` holds one octet in each code unit. */
function decodedPart(part: string): string {
  if (plain.test(part)) return part
  const octets = Buffer.from(part, 'latin1')
  let length = 0
  for (let i = 0; i < octets.length; i++) {
    const octet = octets[i] as number
    const coded = octet === percent ? codedOctet(octets, i + 1) : -1
    if (coded >= 0) i += 2
    octets[length++] = coded >= 0 ? coded : octet === plus ? space : octet
  }
  // A mark at the start is a character like any other here.
  return octets.toString('utf8', 0, length)
}

const percent = 0x25
const plus = 0x2b
const space = 0x20

/** The octet that two hex digits at `at` stand for, or -1. */
function codedOctet(octets: Uint8Array, at: number): number {
  const high = hexDigit(octets[at])
  const low = hexDigit(octets[at + 1])
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

function hexDigit(octet: number | undefined): number {
  if (octet === undefined) return -1
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30
  const letter = octet | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
