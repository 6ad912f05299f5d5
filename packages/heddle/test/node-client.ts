/** Node's own clients behind one face, so that one story is told over HTTP/1.1 and HTTP/2, plain and over TLS. */
import type { EventEmitter } from 'node:events'
import { Agent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { connect as connectHttp2, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import { Agent as SecureAgent, request as httpsRequest } from 'node:https'
import type { Readable, Writable } from 'node:stream'

/** How a client reaches a server. */
export type Way = 'h1' | 'h2c' | 'https' | 'h2'
export const ways: readonly Way[] = ['h1', 'h2c', 'https', 'h2']

type Headers = Record<string, string | string[]>
type ReceivedHeaders = Record<string, string | string[] | undefined>

export interface Asked {
  readonly method?: string
  /** With CONNECT, which only HTTP/2 has here: host and port. */
  readonly path?: string
  readonly headers?: Headers
  /** Sent whole, after the 100 if `expect` asks for one; undefined: no content. */
  readonly body?: string | Uint8Array
  /** The content's length is not declared. */
  readonly streamed?: boolean
  /** Sent after the content, whose length is not declared then. */
  readonly trailers?: Record<string, string>
  /** Breaks the request off when this many bytes of the response have come. */
  readonly abortAfter?: number
}

export interface Answer {
  readonly status: number
  readonly headers: ReceivedHeaders
  readonly body: Buffer
  readonly text: string
  readonly trailers: ReceivedHeaders
  /** Statuses of 1xx responses, with their `link`. */
  readonly informational: readonly string[]
}

/** A request under way, for tests that act in the midst of it. */
export interface Talk {
  readonly out: Writable
  /** Resolves with the head of the final response, and what its content can be read from. */
  readonly response: Promise<{ status: number; headers: ReceivedHeaders; content: Readable }>
  readonly informational: readonly string[]
  trailers(): ReceivedHeaders
  /** Resolves when 100 came. */
  readonly continued: Promise<void>
  /** Breaks it off: RST_STREAM with CANCEL, or the end of the connection. */
  abort(): void
}

/** A client with one connection to 127.0.0.1:`port`. */
export class NodeClient {
  readonly #port: number
  readonly #way: Way
  readonly #agent: Agent
  readonly #session: ClientHttp2Session | undefined
  /** Codes of GOAWAY frames. */
  readonly goaways: number[]

  constructor(port: number, way: Way) {
    this.#port = port
    this.#way = way
    this.goaways = []
    const options = { keepAlive: true, maxSockets: 1 }
    this.#agent = way === 'https' ? new SecureAgent({ ...options, rejectUnauthorized: false }) : new Agent(options)
    this.#session = undefined
    if (way === 'h1' || way === 'https') return
    const session = connectHttp2(`${way === 'h2' ? 'https' : 'http'}://127.0.0.1:${port}`, { rejectUnauthorized: false })
    session.on('error', () => {})
    session.on('goaway', (code) => this.goaways.push(code))
    this.#session = session
  }

  start(asked: Asked, endStream: boolean): Talk {
    return this.#session === undefined ? this.#startHttp1(asked) : this.#startHttp2(this.#session, asked, endStream)
  }

  ask(asked: Asked = {}): Promise<Answer> {
    return askBy(this, asked, this.#session === undefined)
  }

  close(): void {
    this.#agent.destroy()
    this.#session?.destroy()
  }

  #startHttp1({ method = 'GET', path = '/', headers = {} }: Asked): Talk {
    const request = this.#way === 'https' ? httpsRequest : httpRequest
    const out = request({ host: '127.0.0.1', port: this.#port, agent: this.#agent, method, path, headers })
    if (headers['expect'] !== undefined) out.flushHeaders()
    const informational: string[] = []
    out.on('information', ({ statusCode, headers: { link } }) => informational.push(`${statusCode}${link === undefined ? '' : ` ${link}`}`))
    out.on('error', () => {})
    const continued = new Promise<void>((resolve) => out.on('continue', resolve))
    let message: IncomingMessage | undefined
    const response = arrival(out).then((arrived) => {
      message = arrived as IncomingMessage
      return { status: message.statusCode as number, headers: message.headers, content: message as Readable }
    })
    response.catch(() => {})
    return { out, response, informational, continued, trailers: () => message?.trailers ?? {}, abort: () => out.destroy() }
  }

  #startHttp2(session: ClientHttp2Session, { method = 'GET', path = '/', headers = {}, trailers }: Asked, endStream: boolean): Talk {
    const target = method === 'CONNECT' ? { ':authority': path } : { ':path': path }
    const stream: ClientHttp2Stream = session.request(
      { ...headers, ':method': method, ...target },
      { endStream, waitForTrailers: trailers !== undefined },
    )
    if (trailers !== undefined) stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    const informational: string[] = []
    const continued = new Promise<void>((resolve) => stream.on('continue', resolve))
    stream.on('continue', () => informational.push('100'))
    stream.on('headers', (head) => {
      const { ':status': status, link } = head
      if (status !== 100) informational.push(`${status}${link === undefined ? '' : ` ${String(link)}`}`)
    })
    let received: ReceivedHeaders = {}
    stream.on('trailers', (fields) => (received = fields))
    stream.on('error', () => {})
    const response = arrival(stream).then((head) => {
      const { ':status': status, ...rest } = head as ReceivedHeaders & { ':status': number }
      return { status, headers: rest, content: stream as Readable }
    })
    response.catch(() => {})
    return { out: stream, response, informational, continued, trailers: () => received, abort: () => stream.close(8) }
  }
}

/** One request with `client`, and all of its answer. `isHttp1`: content needs framing, and a request an end. */
export async function askBy(client: Pick<NodeClient, 'start'>, asked: Asked, isHttp1: boolean): Promise<Answer> {
  const { body, trailers, streamed = false, headers = {}, abortAfter = Infinity } = asked
  const hasContent = body !== undefined || trailers !== undefined
  const framing: Headers = {}
  if (hasContent && trailers === undefined && !streamed) framing['content-length'] = `${Buffer.byteLength(body ?? '')}`
  else if (hasContent && isHttp1) framing['transfer-encoding'] = 'chunked'
  const talk = client.start({ ...asked, headers: { ...framing, ...headers } }, !hasContent)
  if (hasContent || isHttp1) {
    if (trailers !== undefined && isHttp1) (talk.out as ClientRequest).addTrailers(trailers)
    if (headers['expect'] === undefined) talk.out.end(body ?? '')
    else talk.continued.then(() => talk.out.end(body))
  }
  const { status, headers: received, content } = await talk.response
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of content) {
    chunks.push(chunk as Buffer)
    length += (chunk as Buffer).length
    if (length < abortAfter) continue
    talk.abort()
    break
  }
  const whole = Buffer.concat(chunks)
  return { status, headers: received, body: whole, text: whole.toString(), trailers: talk.trailers(), informational: talk.informational }
}

/** What the 'response' event brings; rejects when it will not come. */
function arrival(from: EventEmitter): Promise<unknown> {
  return new Promise((resolve, reject) => {
    from.once('response', resolve)
    from.once('error', reject)
    from.once('close', () => reject(new Error('closed without a response')))
  })
}
