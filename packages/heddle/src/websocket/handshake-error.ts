import { HeddleError, reasonPhrase, type Fields } from '../http/index.ts'
import { headersFrom, type Headers } from '../web/index.ts'

/**
 * The server answered, and what it answered opens no WebSocket. `code` is HANDSHAKE_FAILED. What failed on
 * the way to the server (name, connection, TLS, time) keeps the error and code it has everywhere else.
 */
export class HandshakeError extends HeddleError {
  /** `ws://example.org/chat`, without user information and query. */
  readonly url: string
  /** Of the answer; 101 or 200 if something else was wrong with it. 0: there was none, since the server cannot be asked. */
  readonly status: number
  /**
   * What the answer said, if it was text (no page) and came with it: the first line, without control characters, 200
   * characters at most. Else ''. It is the server's word: trust it no more than the server.
   */
  readonly text: string
  readonly #fields: Fields

  constructor(url: string, status: number, fields: Fields, what: string, cause?: unknown, text = '') {
    super('HANDSHAKE_FAILED', `${url}: ${what}${text === '' ? '' : `; the server says ${JSON.stringify(text)}`}`, { cause })
    this.url = url
    this.status = status
    this.text = text
    this.#fields = fields
  }

  /** Of the answer: `www-authenticate`, `retry-after`, `location`. */
  get headers(): Headers {
    return headersFrom(this.#fields, true)
  }
}

/** What an answer with another status than was expected says of itself. */
export function unexpectedStatus(status: number, protocol: 'h1' | 'h2' | 'h3', location: string | undefined): string {
  const phrase = reasonPhrase(status)
  const answer = `the server answered the WebSocket handshake with ${status}${phrase === '' ? '' : ` (${phrase})`}`
  const redirected = location !== undefined && status >= 300 && status < 400
  const where = redirected ? `, and redirects are not followed (to ${JSON.stringify(location.slice(0, 200))})` : ''
  return `${answer}${where}; ${protocol === 'h1' ? '101' : '200'} was expected`
}
