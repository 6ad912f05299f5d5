import { MIMEType } from 'node:util'

/** What a `data:` URL says. */
export interface DataUrl {
  readonly contentType: string
  readonly bytes: Uint8Array<ArrayBuffer>
  /** The URL without its fragment. */
  readonly href: string
}

/** Reads a `data:` URL (RFC 2397 as Fetch §6 reads it). Throws TypeError if it has no comma or its base64 is malformed. */
export function readDataUrl(text: string): DataUrl {
  const url = new URL(text)
  url.hash = ''
  const { href } = url
  const rest = href.slice('data:'.length)
  const comma = rest.indexOf(',')
  if (comma < 0) throw new TypeError('a data: URL needs a comma before its content')
  let mime = rest.slice(0, comma).trim()
  let bytes = percentDecoded(rest.slice(comma + 1))
  const base64 = /; *base64$/i.exec(mime)
  if (base64 !== null) {
    mime = mime.slice(0, base64.index)
    bytes = base64Decoded(bytes)
  }
  return { contentType: mimeType(mime), bytes, href }
}

function mimeType(text: string): string {
  try {
    return new MIMEType(text.startsWith(';') ? `text/plain${text}` : text).toString()
  } catch {
    return 'text/plain;charset=US-ASCII'
  }
}

function percentDecoded(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length)
  let length = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    const pair = code === 0x25 ? text.slice(i + 1, i + 3) : ''
    if (/^[0-9A-Fa-f]{2}$/.test(pair)) {
      bytes[length++] = Number.parseInt(pair, 16)
      i += 2
    } else {
      bytes[length++] = code
    }
  }
  return bytes.slice(0, length)
}

function base64Decoded(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  let text: string
  try {
    // Buffer's decoder takes anything; this one refuses what the standard refuses.
    text = atob(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1'))
  } catch (error) {
    throw new TypeError('malformed base64 in a data: URL', { cause: error })
  }
  return new Uint8Array(Buffer.from(text, 'latin1'))
}
