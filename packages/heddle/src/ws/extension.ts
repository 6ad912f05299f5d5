import { isToken } from '../http/index.ts'

/** One extension of a Sec-WebSocket-Extensions field (RFC 6455 §9.1). */
export interface Extension {
  readonly name: string
  /** In the order of the field, duplicates included. */
  readonly parameters: readonly ExtensionParameter[]
}

/** `name`, `name=value` or `name="value"`. */
export interface ExtensionParameter {
  readonly name: string
  /** Unquoted; undefined: the parameter has none. */
  readonly value: string | undefined
}

/**
 * Reads the value of Sec-WebSocket-Extensions (all its field lines joined by commas); undefined if it does
 * not follow the grammar, which ends the handshake (RFC 6455 §9.1).
 */
export function parseExtensions(text: string): Extension[] | undefined {
  const scanner = new Scanner(text)
  const extensions: Extension[] = []
  for (;;) {
    // RFC 9110 §5.6.1.2: empty elements of a list are skipped.
    while (scanner.take(',')) continue
    if (scanner.atEnd) return extensions.length > 0 ? extensions : undefined
    const extension = readExtension(scanner)
    if (extension === undefined || !(scanner.atEnd || scanner.take(','))) return undefined
    extensions.push(extension)
  }
}

function readExtension(scanner: Scanner): Extension | undefined {
  const name = scanner.token()
  if (name === '') return undefined
  const parameters: ExtensionParameter[] = []
  while (scanner.take(';')) {
    const parameter = scanner.token()
    if (parameter === '') return undefined
    if (!scanner.take('=')) {
      parameters.push({ name: parameter, value: undefined })
      continue
    }
    const value = scanner.take('"') ? scanner.quoted() : scanner.token()
    // RFC 6455 §9.1: what a quoted value says must be a token, too.
    if (!isToken(value)) return undefined
    parameters.push({ name: parameter, value })
  }
  return { name, parameters }
}

/** Tokens and separators, blanks around them skipped. */
class Scanner {
  readonly #text: string
  #at: number

  constructor(text: string) {
    this.#text = text
    this.#at = 0
    this.#skipBlanks()
  }

  get atEnd(): boolean {
    return this.#at === this.#text.length
  }

  /** Goes past `separator` if it is next. */
  take(separator: string): boolean {
    if (this.#text[this.#at] !== separator) return false
    this.#at++
    if (separator !== '"') this.#skipBlanks()
    return true
  }

  /** The token that is next; '' if none is. */
  token(): string {
    const start = this.#at
    while (this.#at < this.#text.length && isToken(this.#text[this.#at] as string)) this.#at++
    const token = this.#text.slice(start, this.#at)
    this.#skipBlanks()
    return token
  }

  /** The rest of a quoted string, unescaped; '' if it does not end. */
  quoted(): string {
    let value = ''
    while (this.#at < this.#text.length) {
      let char = this.#text[this.#at++] as string
      if (char === '"') {
        this.#skipBlanks()
        return value
      }
      if (char === '\\') char = this.#text[this.#at++] ?? ''
      value += char
    }
    return ''
  }

  #skipBlanks(): void {
    while (this.#text[this.#at] === ' ' || this.#text[this.#at] === '\t') this.#at++
  }
}
