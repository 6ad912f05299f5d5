import type { EventEmitter } from 'node:events'
import { Agent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { connect as connectHttp2, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import { Agent as SecureAgent, request as httpsRequest } from 'node:https'
import type { Duplex, Readable, Writable } from 'node:stream'
import type { Server } from './index.ts'

/** How a client reaches a server: HTTP/1.1 or HTTP/2, plain or over TLS. */
export type Way = 'h1' | 'h2c' | 'https' | 'h2'
export const ways: readonly Way[] = ['h1', 'h2c', 'https', 'h2']

export interface Asked {
  readonly method?: string
  /** With CONNECT, which HTTP/2 alone has here: host and port. */
  readonly path?: string
  readonly headers?: Record<string, string | string[]>
  /** Sent whole, with its length; undefined: no content. */
  readonly body?: string | Uint8Array
  /** Sent after the content, which has no declared length then. */
  readonly trailers?: Record<string, string>
}

export interface Answer {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: Buffer
  readonly trailers: Record<string, string | string[] | undefined>
  /** Statuses of 1xx responses, with their `link`. */
  readonly informational: readonly string[]
}

/** A request under way, for tests that act in the midst of it. */
export interface Talk {
  readonly out: Writable
  /** Resolves with the head of the final response, and what its content can be read from. */
  readonly response: Promise<{ status: number; headers: Record<string, string | string[] | undefined>; content: Readable }>
  readonly informational: readonly string[]
  trailers(): Record<string, string | string[] | undefined>
  /** Breaks it off: RST_STREAM with CANCEL, or the end of the connection. */
  abort(): void
}

/** Node's own clients behind one face, so that one story is told over all four ways. */
export class NodeClient {
  readonly #server: Server
  readonly #way: Way
  readonly #agent: Agent
  readonly #session: ClientHttp2Session | undefined
  /** Codes of GOAWAY frames. */
  readonly goaways: number[]

  constructor(server: Server, way: Way) {
    this.#server = server
    this.#way = way
    this.goaways = []
    const options = { keepAlive: true, maxSockets: 1 }
    this.#agent = way === 'https' ? new SecureAgent({ ...options, rejectUnauthorized: false }) : new Agent(options)
    if (way === 'h1' || way === 'https') return
    const session = connectHttp2(`${way === 'h2' ? 'https' : 'http'}://127.0.0.1:${server.port}`, { rejectUnauthorized: false })
    session.on('error', () => {})
    session.on('goaway', (code) => this.goaways.push(code))
    this.#session = session
  }

  get closed(): boolean {
    return this.#session?.closed ?? false
  }

  start({ method = 'GET', path = '/', headers = {}, trailers }: Asked, endStream: boolean): Talk {
    return this.#session === undefined
      ? this.#startHttp1(method, path, headers)
      : this.#startHttp2(this.#session, method, path, headers, endStream, trailers !== undefined ? trailers : undefined)
  }

  async ask(asked: Asked = {}): Promise<Answer> {
    const { body, trailers } = asked
    const hasContent = body !== undefined || trailers !== undefined
    const framing = trailers === undefined ? { 'content-length': `${Buffer.byteLength(body ?? '')}` } : { 'transfer-encoding': 'chunked' }
    const declared = hasContent && !(trailers !== undefined && this.#session !== undefined) ? framing : {}
    const talk = this.start({ ...asked, headers: { ...declared, ...asked.headers } }, !hasContent)
    if (hasContent || this.#session === undefined) {
      if (trailers !== undefined && this.#session === undefined) (talk.out as ClientRequest).addTrailers(trailers)
      talk.out.end(body ?? '')
    }
    const { status, headers, content } = await talk.response
    const chunks: Buffer[] = []
    for await (const chunk of content) chunks.push(chunk as Buffer)
    return { status, headers, body: Buffer.concat(chunks), trailers: talk.trailers(), informational: talk.informational }
  }

  close(): void {
    this.#agent.destroy()
    this.#session?.destroy()
  }

  #startHttp1(method: string, path: string, headers: Record<string, string | string[]>): Talk {
    const request = this.#way === 'https' ? httpsRequest : httpRequest
    const out = request({ host: '127.0.0.1', port: this.#server.port, agent: this.#agent, method, path, headers })
    const informational: string[] = []
    out.on('information', ({ statusCode, headers: { link } }) => informational.push(`${statusCode}${link === undefined ? '' : ` ${link}`}`))
    out.on('error', () => {})
    let message: IncomingMessage | undefined
    const response = arrival(out).then((arrived) => {
      message = arrived as IncomingMessage
      return { status: message.statusCode as number, headers: message.headers, content: message as Readable }
    })
    response.catch(() => {})
    return { out, response, informational, trailers: () => message?.trailers ?? {}, abort: () => out.destroy() }
  }

  #startHttp2(
    session: ClientHttp2Session,
    method: string,
    path: string,
    headers: Record<string, string | string[]>,
    endStream: boolean,
    trailers: Record<string, string> | undefined,
  ): Talk {
    const stream: ClientHttp2Stream = session.request(
      method === 'CONNECT' ? { ...headers, ':method': method, ':authority': path } : { ...headers, ':method': method, ':path': path },
      { endStream, waitForTrailers: trailers !== undefined },
    )
    if (trailers !== undefined) stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    const informational: string[] = []
    stream.on('continue', () => informational.push('100'))
    stream.on('headers', (head) => {
      if (head[':status'] !== 100) informational.push(`${head[':status']}${head['link'] === undefined ? '' : ` ${String(head['link'])}`}`)
    })
    let received: Record<string, string | string[] | undefined> = {}
    stream.on('trailers', (fields) => (received = fields as typeof received))
    stream.on('error', () => {})
    const response = arrival(stream).then((head) => {
      const { ':status': status, ...rest } = head as { ':status': number }
      return { status, headers: rest as Record<string, string>, content: stream as Duplex as Readable }
    })
    response.catch(() => {})
    return { out: stream, response, informational, trailers: () => received, abort: () => stream.close(8) }
  }
}

/** What the 'response' event brings; rejects when it will not come. */
function arrival(from: EventEmitter): Promise<unknown> {
  return new Promise((resolve, reject) => {
    from.once('response', resolve)
    from.once('error', reject)
    from.once('close', () => reject(new Error('closed without a response')))
  })
}
