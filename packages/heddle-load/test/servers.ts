import { responseHead, type Exchange, type ExchangeHandler, type Head } from 'heddle/http'
import { serve, type ServeOptions, type Server } from 'heddle/server'
import { acceptWebSocket, type SocketHandler } from 'heddle/websocket'

/** What one request was: told when it has come in whole. */
export interface Asked {
  readonly protocol: string
  readonly head: Head
  readonly body: Buffer
}

/** Answers one request. */
export type Answer = (exchange: Exchange, asked: Asked) => void

class Request implements ExchangeHandler {
  readonly #exchange: Exchange
  readonly #answer: Answer
  readonly #echo: SocketHandler | undefined
  #head: Head | undefined
  #parts: Buffer[] = []

  constructor(exchange: Exchange, answer: Answer, echo: SocketHandler | undefined) {
    this.#exchange = exchange
    this.#answer = answer
    this.#echo = echo
  }
  onHead(head: Head, end: boolean): void {
    if (head.protocol === 'websocket' && this.#echo !== undefined) {
      const socket = acceptWebSocket(this.#exchange, head)
      if (socket !== undefined) socket.handler = this.#echo
      return
    }
    this.#head = head
    if (end) this.#tell()
  }
  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.#parts.push(Buffer.from(buffer.subarray(start, limit)))
    this.#exchange.consume(limit - start)
    if (end) this.#tell()
  }
  onTrailers(): void {
    this.#tell()
  }
  #tell(): void {
    const { protocol } = this.#exchange
    this.#answer(this.#exchange, { protocol, head: this.#head as Head, body: Buffer.concat(this.#parts) })
  }
  onSent(): void {}
  onPriority(): void {}
  onClose(): void {}
}

/** Echoes messages. */
export const echo: SocketHandler = {
  onMessage(socket, buffer, start, limit, binary) {
    socket.post(buffer.subarray(start, limit), { text: !binary })
  },
}

/** An answer in whole. */
export function answer(exchange: Exchange, status: number, text: string): void {
  exchange.sendHead(responseHead(status, ['content-length', String(text.length)]), text === '')
  if (text !== '') exchange.sendOwned(Buffer.from(text), true)
}

/** A server on the raw face; `sockets` says what becomes of messages of WebSockets. On loopback unless it is told otherwise. */
export function rawServer(
  answers: Answer,
  options: Partial<ServeOptions> = {},
  sockets: SocketHandler | undefined = echo,
): Promise<Server> {
  return serve({
    hostname: '127.0.0.1',
    port: 0,
    websocket: true,
    onExchange: (exchange: Exchange) => new Request(exchange, answers, sockets),
    ...options,
  } as ServeOptions)
}

/** A gRPC server that answers a message with `text`, and `status` in trailers; without a text, in trailers only. */
export function grpcAnswer(status: number, text?: string): Answer {
  return (exchange) => {
    const head = ['content-type', 'application/grpc']
    if (text === undefined) return exchange.sendHead(responseHead(200, [...head, 'grpc-status', String(status)]), true)
    exchange.sendHead(responseHead(200, head), false)
    const message = Buffer.alloc(5 + text.length)
    message.writeUInt32BE(text.length, 1)
    message.write(text, 5)
    exchange.sendOwned(message, false)
    exchange.sendTrailers(['grpc-status', String(status)])
  }
}
