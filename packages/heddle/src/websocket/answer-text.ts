import { fieldValue, type Fields } from '../http/index.ts'

/** Bytes that are kept of an answer: more than enough for a line of 200 characters. */
const mostBytes = 1_024
/** Characters (code points) of it that are told. */
const mostText = 200

/** What an answer that opens no WebSocket says in its content, as far as that is for a message: the first line of a text. */
export class AnswerText {
  /** There is no more to wait for. */
  complete: boolean
  readonly #charset: string
  #bytes: Buffer
  /** A character of text has come, so the next line is not the first. */
  #begun: boolean

  constructor(charset: string) {
    this.complete = false
    this.#charset = charset
    this.#bytes = Buffer.alloc(0)
    this.#begun = false
  }

  receive(buffer: Uint8Array, start: number, limit: number): void {
    if (this.complete) return
    const room = mostBytes - this.#bytes.length
    this.#bytes = Buffer.concat([this.#bytes, buffer.subarray(start, Math.min(limit, start + room))])
    for (let i = start; i < limit && !this.complete; i++) {
      const octet = buffer[i] as number
      if (octet > 0x20) this.#begun = true
      else if (this.#begun && (octet === 0x0a || octet === 0x0d)) this.complete = true
    }
    if (this.#bytes.length === mostBytes) this.complete = true
  }

  /** One line without control characters, 200 characters at most; '' if there is none. */
  get text(): string {
    // What is cut within a character is left out, as is what is no text at all.
    const whole = new TextDecoder(this.#charset).decode(this.#bytes, { stream: true }).replaceAll('\uFFFD', '')
    const line = whole.trimStart().split(/[\r\n]/, 1)[0] as string
    // Neither terminals nor logs are to be led astray: controls (also of text direction), and separators of lines.
    const harmless = line
      .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]+/gu, ' ')
      .replace(/\s+/g, ' ')
      .trim()
    const points = [...harmless]
    return points.length <= mostText ? harmless : `${points.slice(0, mostText - 1).join('')}…`
  }
}

/** Of an answer with these fields; undefined: its content is nothing to show, such as a page, or compressed. */
export function answerTextOf(fields: Fields): AnswerText | undefined {
  const coding = fieldValue(fields, 'content-encoding')
  if (coding !== undefined && coding.toLowerCase() !== 'identity') return undefined
  const type = fieldValue(fields, 'content-type') ?? ''
  if (!/^(?:text\/(?!html)|application\/(?:[\w.-]+\+)?json)/i.test(type)) return undefined
  return new AnswerText(/charset="?iso-8859-1/i.test(type) ? 'latin1' : 'utf-8')
}
