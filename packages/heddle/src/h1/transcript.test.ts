import { Outbox } from '../bytes/index.ts'
import {
  requestHead,
  responseHead,
  type ConnectionHandler,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type HttpConnection,
  type StreamEngine,
} from '../http/index.ts'
import { ClientConnection, ServerConnection, type Http1Options } from './index.ts'

/** Facts of a connection that does not exist. */
export function info(secure = false): ConnectionInfo {
  const address = { address: '192.0.2.1', port: 80, family: 'IPv4' } as const
  const tls = { version: 'TLSv1.3', cipher: '', alpn: undefined, serverName: undefined, authorized: false, peerCertificate: undefined }
  return { id: 1, remote: address, local: address, tls: secure ? tls : undefined }
}

/** An exchange handler that writes down what it is told; pieces of content are joined. */
export class Log implements ExchangeHandler {
  readonly lines: string[] = []
  exchange: Exchange | undefined
  content = ''
  received = 0
  sent = 0
  writable = 0
  closed = 0
  error: HeddleError | undefined
  /** The message received has ended. */
  ended = false
  head: Head | undefined
  consumes = true
  /** Called after the call was written down. */
  on: Partial<ExchangeHandler> = {}

  onHead(head: Head, end: boolean): void {
    this.check()
    if (head.status >= 200 || head.status === 0) this.head = head
    this.lines.push(headLine(head))
    for (let i = 0; i < head.fields.length; i += 2) this.lines.push(`  ${head.fields[i]}: ${head.fields[i + 1]}`.trimEnd())
    if (end) this.end()
    this.on.onHead?.(head, end)
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.check()
    if (this.ended) throw new Error('data after the end')
    if (start === limit && !end) throw new Error('data without bytes and end')
    this.content += Buffer.from(buffer.subarray(start, limit)).toString('latin1')
    this.received += limit - start
    if (this.consumes) this.exchange?.consume(limit - start)
    if (end) this.end()
    this.on.onData?.(buffer, start, limit, end)
  }

  onTrailers(fields: Fields): void {
    this.check()
    this.flush()
    this.lines.push(`trailers ${fields.join(' ')}`)
    this.end()
    this.on.onTrailers?.(fields)
  }

  onSent(byteCount: number, writable: boolean): void {
    this.check()
    if (byteCount < 0) throw new Error('onSent counts backwards')
    this.sent += byteCount
    if (writable) this.writable++
    this.on.onSent?.(byteCount, writable)
  }

  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    this.check()
    this.flush()
    this.closed++
    this.error = error
    this.lines.push(error === undefined ? 'close' : `close ${error.code}: ${error.message}`)
    this.on.onClose?.(error)
  }

  private end(): void {
    this.flush()
    this.ended = true
    this.lines.push('end')
  }

  /** Writes down the content that has come. */
  flush(): void {
    if (this.content !== '') this.lines.push(`data ${JSON.stringify(this.content)}`)
    this.content = ''
  }

  private check(): void {
    if (this.closed > 0) throw new Error('a call after onClose')
  }
}

function headLine(head: Head): string {
  if (head.status !== 0) return String(head.status)
  return [head.method, head.scheme, head.authority, head.path, head.protocol].filter((part) => part !== '').join(' ')
}

/** A connection's handler that writes down what it is told. */
export class ConnectionLog implements ConnectionHandler {
  readonly lines: string[] = []
  readonly exchanges: Log[] = []
  closed = 0
  error: HeddleError | undefined
  /** Makes ready what the server does with a new exchange. */
  serve: (log: Log, exchange: Exchange) => void = () => {}

  onReady(): void {}
  onExchange(exchange: Exchange): ExchangeHandler {
    const log = new Log()
    log.exchange = exchange
    this.exchanges.push(log)
    this.serve(log, exchange)
    return log
  }
  onCapacity(openable: number): void {
    this.lines.push(`capacity ${openable}`)
  }
  onDraining(): void {
    this.lines.push('draining')
  }
  onDrained(byteCount: number, completed: boolean): void {
    this.lines.push(`drained ${byteCount} ${completed}`)
  }
  onClose(error: HeddleError | undefined): void {
    if (this.closed++ > 0) throw new Error('the connection closed twice')
    this.error = error
    this.lines.push(error === undefined ? 'close' : `close ${error.code}: ${error.message}`)
  }
}

/** Runs one engine by hand, as a driver would, and keeps what it sends. */
export class Bench<E extends StreamEngine & HttpConnection> {
  readonly engine: E
  readonly log: ConnectionLog
  now = 0
  /** All it has sent. */
  wire = ''
  /** How much `transmit` may take each time. */
  room = 65_536
  /** False: the peer takes nothing. */
  takes = true
  dirt = 0

  constructor(engine: E, log: ConnectionLog) {
    this.engine = engine
    this.log = log
    engine.onDirty = () => {
      this.dirt++
    }
  }

  get closing(): string {
    return this.engine.closing
  }

  /** The bytes come in pieces that end at `cuts`; each in a buffer that is overwritten afterwards. */
  feed(text: string | Uint8Array, ...cuts: number[]): this {
    const bytes = typeof text === 'string' ? Buffer.from(text, 'latin1') : text
    let start = 0
    for (const cut of [...cuts, bytes.length]) {
      if (cut <= start || this.closing === 'close' || this.closing === 'reset') continue
      const buffer = Buffer.alloc(cut - start + 3, 0x58)
      buffer.set(bytes.subarray(start, cut), 2)
      this.engine.receive(buffer, 2, 2 + cut - start, this.now)
      buffer.fill(0xdb)
      this.flush()
      start = cut
    }
    return this
  }

  feedEach(text: string): this {
    const bytes = Buffer.from(text, 'latin1')
    return this.feed(bytes, ...Array.from({ length: bytes.length }, (_, i) => i))
  }

  feedEnd(): this {
    if (this.closing !== 'close' && this.closing !== 'reset') {
      this.engine.receiveEnd(this.now)
      this.flush()
    }
    return this
  }

  flush(): this {
    if (!this.takes) {
      const out = new Outbox(Buffer.alloc(0), 0)
      this.engine.transmit(out, this.now)
      return this
    }
    for (let more = true; more;) {
      const out = new Outbox(Buffer.alloc(1024), this.room)
      more = this.engine.transmit(out, this.now)
      this.wire += out.buffer.toString('latin1', 0, out.length)
      if (more && out.length === 0) throw new Error('transmit has more to send and sends nothing')
    }
    return this
  }

  /** Time goes on; `expire` is called whenever it is due. */
  advance(ms: number): this {
    const until = this.now + ms
    for (let rounds = 0; this.engine.deadline <= until; rounds++) {
      if (rounds > 100) throw new Error('the deadline does not move')
      this.now = Math.max(this.now, this.engine.deadline)
      this.engine.expire(this.now)
      this.flush()
    }
    this.now = until
    return this
  }

  /** The responses sent, in order: status, and the text of a refusal. */
  get answers(): string[] {
    return [...this.wire.matchAll(/HTTP\/1\.1 (\d\d\d)[^]*?\r\n\r\n(?:([a-zA-Z][^\r\n]*)\n)?/g)].map(([, status, text]) =>
      text === undefined ? (status as string) : `${status} ${text}`,
    )
  }
}

/** A server that answers every request with 200 once it has been received, unless `serve` says otherwise. */
export function server(
  options: Http1Options = {},
  serve?: (log: Log, exchange: Exchange) => void,
  secure = false,
): Bench<ServerConnection> {
  const log = new ConnectionLog()
  log.serve = serve ?? answerAtEnd
  return new Bench(new ServerConnection(info(secure), log, options, 0), log)
}

/** Answers 200 without content at the end of the request; a tunnel is opened, and closed when the client does. */
export function answerAtEnd(log: Log, exchange: Exchange): void {
  const answer = (): void => exchange.sendHead(responseHead(200), true)
  log.on = {
    onHead(head, end) {
      if (end) answer()
      else if (head.method === 'CONNECT') exchange.sendHead(responseHead(200), false)
    },
    onData(_buffer, _start, _limit, end) {
      if (!end) return
      if (log.head?.method === 'CONNECT') exchange.sendData(Buffer.alloc(0), 0, 0, true)
      else answer()
    },
    onTrailers: answer,
  }
}

export function client(options: Http1Options = {}, secure = false): Bench<ClientConnection> {
  const log = new ConnectionLog()
  return new Bench(new ClientConnection(info(secure), log, options, 0), log)
}

/** Opens an exchange and sends its head. */
export function request(
  bench: Bench<ClientConnection>,
  head: Head = requestHead('GET', 'http', 'a.test', '/'),
  end = true,
  before: (exchange: Exchange) => void = () => {},
): Log {
  const log = new Log()
  const exchange = bench.engine.open(log)
  if (exchange === undefined) throw new Error('no slot is free')
  log.exchange = exchange
  bench.log.exchanges.push(log)
  before(exchange)
  exchange.sendHead(head, end)
  return log
}
