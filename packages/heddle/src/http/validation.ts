/** 1 where the octet may stand in a token (RFC 9110 §5.6.2), 2 where it is also an upper-case letter. */
export const tokenTable: Uint8Array = new Uint8Array(256)
/** 1 where the octet may stand inside a field value (RFC 9110 §5.5): HTAB, SP, VCHAR, obs-text. */
export const valueTable: Uint8Array = new Uint8Array(256)
/** 1 where the octet may stand in a request target: VCHAR but no control, space, DEL; obs-text is rejected. */
export const targetTable: Uint8Array = new Uint8Array(256)

for (const char of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") tokenTable[char.charCodeAt(0)] = 1
for (const char of 'ABCDEFGHIJKLMNOPQRSTUVWXYZ') tokenTable[char.charCodeAt(0)] = 2
valueTable[0x09] = 1
for (let octet = 0x20; octet < 0x100; octet++) if (octet !== 0x7f) valueTable[octet] = 1
for (let octet = 0x21; octet < 0x7f; octet++) targetTable[octet] = 1

/** True for a token of any case: a method, a field name as HTTP/1.1 writes it. */
export function isToken(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code > 0xff || tokenTable[code] === 0) return false
  }
  return text.length > 0
}

/** True for a field name in the form {@link Fields} wants: a token without upper case. */
export function isFieldName(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code > 0xff || tokenTable[code] !== 1) return false
  }
  return text.length > 0
}

/**
 * True for a value that can go on the wire as latin1: no CR, LF, NUL or other control, no code unit
 * above 0xFF (it would be truncated: U+010A would become a line feed), no white space at the ends
 * (RFC 9113 §8.2.1).
 */
export function isFieldValue(text: string): boolean {
  const last = text.length - 1
  for (let i = 0; i <= last; i++) {
    const code = text.charCodeAt(i)
    if (code > 0xff || valueTable[code] === 0) return false
  }
  return last < 0 || !(isBlank(text.charCodeAt(0)) || isBlank(text.charCodeAt(last)))
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** `text` without the SP and HTAB around it. RFC 9110 §5.6.3: unlike for `trim`, no other octet is white space, 0xA0 for one. */
export function trimBlanks(text: string): string {
  let start = 0
  let limit = text.length
  while (start < limit && isBlank(text.charCodeAt(start))) start++
  while (limit > start && isBlank(text.charCodeAt(limit - 1))) limit--
  return start === 0 && limit === text.length ? text : text.slice(start, limit)
}

/** True for a `:path` or request target other than `*` and authority-form: begins with `/`, no control, space or fragment. */
export function isPath(text: string): boolean {
  if (text.charCodeAt(0) !== 0x2f) return false
  for (let i = 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code > 0xff || targetTable[code] === 0 || code === 0x23) return false
  }
  return true
}

// RFC 3986 §3.2.2: reg-name or IP-literal, and an optional port. User information is not allowed (RFC 9110 §4.2.4).
const authority =
  /^(?:\[[0-9A-Fa-f:.]+(?:%25[A-Za-z0-9._~-]+)?\]|[A-Za-z0-9._~!$&'()*+,;=-]+|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+)(?::\d{0,5})?$/

/** True for `host` or `host:port` as RFC 9110 §7.2 and RFC 9113 §8.3.1 want it: not empty, no user information. */
export function isAuthority(text: string): boolean {
  return text.length <= 1024 && authority.test(text)
}
