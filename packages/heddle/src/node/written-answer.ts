import { noFields, type Fields } from '../http/index.ts'
import { checkedFields } from './header-fields.ts'
import { nodeError } from './errors.ts'

/** The head of a response that a program wrote as text. */
export interface WrittenAnswer {
  readonly status: number
  readonly fields: Fields
  /** Where its content begins. */
  readonly end: number
}

/** HTTP/1.1's engine knows it by itself, and HTTP/2 has none (RFC 8441 §5). */
const accept = 'sec-websocket-accept'

/** Reads the head of an HTTP/1.1 response; undefined: it is not complete. Throws for text that is none. */
export function parseAnswer(bytes: Buffer): WrittenAnswer | undefined {
  const at = bytes.indexOf('\r\n\r\n')
  if (at < 0) return undefined
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, at).split('\r\n')
  const [, status] = /^HTTP\/1\.[01] ([1-5]\d\d)(?: .*)?$/.exec(statusLine) ?? []
  if (status === undefined || (status[0] === '1' && status !== '101')) throw malformed(statusLine)
  return { status: Number(status), fields: lines.length === 0 ? noFields : answerFields(lines), end: at + 4 }
}

function answerFields(lines: readonly string[]): Fields {
  const pairs = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    if (colon < 1) throw malformed(line)
    // Content that is chunked by hand would be framed twice.
    if (/^transfer-encoding$/i.test(line.slice(0, colon))) throw malformed(line)
    return [line.slice(0, colon), line.slice(colon + 1).trim()]
  })
  return checkedFields(pairs.filter(([name]) => name.toLowerCase() !== accept))
}

function malformed(line: string): Error {
  return nodeError('ERR_INVALID_HTTP_RESPONSE', `no line of an HTTP response: ${JSON.stringify(line)}`)
}
