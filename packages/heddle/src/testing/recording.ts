import type { ConnectionHandler, Capabilities, Exchange, ExchangeHandler, Fields, Head, HeddleError, Priority } from '../http/index.ts'

/** One call of an exchange's handler, its bytes copied. */
export type RecordedCall =
  | { readonly call: 'head'; readonly head: Head; readonly end: boolean }
  | { readonly call: 'data'; readonly bytes: Buffer; readonly end: boolean }
  | { readonly call: 'trailers'; readonly fields: Fields }
  | { readonly call: 'sent'; readonly byteCount: number; readonly writable: boolean }
  | { readonly call: 'priority'; readonly priority: Priority }
  | { readonly call: 'close'; readonly error: HeddleError | undefined }

/** What a {@link Recording} does besides. */
export interface RecordingOptions {
  /** Consumes what arrives at once. Default true. */
  readonly autoConsume?: boolean
  /** Called after the call was recorded: what the program under test would do. */
  readonly on?: Partial<ExchangeHandler>
}

/**
 * An exchange handler that writes down what it is told, and every breach of the handler's contract
 * in `faults`: calls out of order, a second end, anything after `onClose`.
 */
export class Recording implements ExchangeHandler {
  exchange: Exchange | undefined
  readonly calls: RecordedCall[]
  /** Breaches of the contract of {@link ExchangeHandler}. Assert that it is empty. */
  readonly faults: string[]
  /** The final head (a request's only one). */
  head: Head | undefined
  /** The 1xx heads. */
  readonly informational: Head[]
  trailers: Fields | undefined
  /** Content bytes received. */
  received: number
  /** Sum of `onSent`. */
  sent: number
  /** The message was received to its end. */
  ended: boolean
  closed: boolean
  error: HeddleError | undefined
  autoConsume: boolean
  /** Set it when the rest was discarded: the exchange may then end well without the message's end. */
  discarded: boolean
  on: Partial<ExchangeHandler>
  readonly #chunks: Buffer[]

  constructor(options: RecordingOptions = {}) {
    this.exchange = undefined
    this.calls = []
    this.faults = []
    this.head = undefined
    this.informational = []
    this.trailers = undefined
    this.received = 0
    this.sent = 0
    this.ended = false
    this.closed = false
    this.error = undefined
    this.discarded = false
    this.autoConsume = options.autoConsume ?? true
    this.on = options.on ?? {}
    this.#chunks = []
  }

  /** All content received so far. */
  get content(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  /**
   * The calls as text, for comparing: heads, content (pieces joined, since a link may cut anywhere),
   * trailers and the close. `onSent` is left out; see `sent`.
   */
  get lines(): string[] {
    const lines: string[] = []
    let content: Buffer[] = []
    const flush = (): void => {
      if (content.length > 0) lines.push(`data ${contentText(Buffer.concat(content))}`)
      content = []
    }
    for (const call of this.calls) {
      if (call.call === 'data') {
        if (call.bytes.length > 0) content.push(call.bytes)
        if (!call.end) continue
        flush()
        lines.push('end')
      } else if (call.call === 'head') lines.push(headText(call.head, call.end))
      else if (call.call === 'trailers') {
        flush()
        lines.push(`trailers${fieldsText(call.fields)}`)
      } else if (call.call === 'close') {
        flush()
        lines.push(call.error === undefined ? 'close' : `close ${call.error.code}`)
      }
    }
    flush()
    return lines
  }

  onHead(head: Head, end: boolean): void {
    this.#expect(this.head === undefined, 'a head after the final head')
    const isFinal = head.status === 0 || head.status >= 200
    this.#expect(!(end && !isFinal), 'a 1xx head with end')
    this.#expect(head.status !== 101, 'a 101 head')
    if (isFinal) this.head = head
    else this.informational.push(head)
    this.calls.push({ call: 'head', head, end })
    if (end) this.ended = true
    this.on.onHead?.(head, end)
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.#expect(this.head !== undefined, 'data before the head')
    this.#expect(!this.ended, 'data after the end')
    this.#expect(limit > start || end, 'data without bytes and without end')
    this.#expect(start >= 0 && limit <= buffer.length && start <= limit, 'data out of the bounds of its buffer')
    const bytes = Buffer.from(buffer.subarray(start, limit))
    this.calls.push({ call: 'data', bytes, end })
    if (bytes.length > 0) this.#chunks.push(bytes)
    this.received += bytes.length
    if (end) this.ended = true
    if (this.autoConsume && bytes.length > 0) this.exchange?.consume(bytes.length)
    this.on.onData?.(buffer, start, limit, end)
  }

  onTrailers(fields: Fields): void {
    this.#expect(this.head !== undefined, 'trailers before the head')
    this.#expect(!this.ended, 'trailers after the end')
    this.ended = true
    this.trailers = fields
    this.calls.push({ call: 'trailers', fields })
    this.on.onTrailers?.(fields)
  }

  onSent(byteCount: number, writable: boolean): void {
    this.#expect(byteCount >= 0, 'a negative count in onSent')
    this.sent += byteCount
    this.calls.push({ call: 'sent', byteCount, writable })
    this.on.onSent?.(byteCount, writable)
  }

  onPriority(priority: Priority): void {
    this.#expect(true, '')
    this.calls.push({ call: 'priority', priority })
    this.on.onPriority?.(priority)
  }

  onClose(error: HeddleError | undefined): void {
    this.#expect(
      error !== undefined || this.discarded || (this.head !== undefined && this.ended),
      'a clean close before the message was received',
    )
    this.closed = true
    this.error = error
    this.calls.push({ call: 'close', error })
    this.on.onClose?.(error)
  }

  #expect(sound: boolean, fault: string): void {
    if (this.closed) this.faults.push('a call after onClose')
    else if (!sound) this.faults.push(fault)
  }
}

/** A handler that records its calls; see {@link Recording}. */
export function recordingHandler(options?: RecordingOptions): Recording {
  return new Recording(options)
}

/** What a {@link RecordingConnection} does besides. */
export interface RecordingConnectionOptions {
  /** Makes the handler of each exchange a server gets. Default: a recording that consumes and answers nothing. */
  readonly onExchange?: (exchange: Exchange) => Recording
  /** Called after the call was recorded. */
  readonly on?: Partial<Omit<ConnectionHandler, 'onExchange'>>
}

/** A connection handler that writes down what it is told, and every exchange's recording. */
export class RecordingConnection implements ConnectionHandler {
  /** `ready`, `capacity 1`, `exchange`, `draining`, `drained 17 true`, `close` or `close CODE`. */
  readonly lines: string[]
  readonly faults: string[]
  readonly exchanges: Recording[]
  capabilities: Capabilities | undefined
  closed: boolean
  error: HeddleError | undefined
  readonly #options: RecordingConnectionOptions

  constructor(options: RecordingConnectionOptions = {}) {
    this.lines = []
    this.faults = []
    this.exchanges = []
    this.capabilities = undefined
    this.closed = false
    this.error = undefined
    this.#options = options
  }

  onReady(capabilities: Capabilities): void {
    this.#note('ready')
    this.capabilities = capabilities
    this.#options.on?.onReady?.(capabilities)
  }

  onExchange(exchange: Exchange): ExchangeHandler {
    this.#note('exchange')
    const recording = this.#options.onExchange?.(exchange) ?? new Recording()
    recording.exchange ??= exchange
    this.exchanges.push(recording)
    return recording
  }

  onCapacity(openable: number): void {
    this.#note(`capacity ${openable}`)
    this.#options.on?.onCapacity?.(openable)
  }

  onDraining(): void {
    this.#note('draining')
    this.#options.on?.onDraining?.()
  }

  onDrained(byteCount: number, completed: boolean): void {
    this.#note(`drained ${byteCount} ${completed}`)
    this.#options.on?.onDrained?.(byteCount, completed)
  }

  onClose(error: HeddleError | undefined): void {
    this.#note(error === undefined ? 'close' : `close ${error.code}`)
    for (const recording of this.exchanges) if (!recording.closed) this.faults.push('the connection closed before its exchange')
    this.closed = true
    this.error = error
    this.#options.on?.onClose?.(error)
  }

  #note(line: string): void {
    if (this.closed) this.faults.push(`${line} after onClose`)
    this.lines.push(line)
  }
}

/** A connection handler that records its calls; see {@link RecordingConnection}. */
export function recordingConnection(options?: RecordingConnectionOptions): RecordingConnection {
  return new RecordingConnection(options)
}

function headText(head: Head, end: boolean): string {
  const tail = `${fieldsText(head.fields)}${end ? ' end' : ''}`
  if (head.status !== 0) return `head ${head.status}${tail}`
  const protocol = head.protocol === '' ? '' : ` ${head.protocol}`
  return `head ${head.method} ${head.scheme === '' ? '' : `${head.scheme}://`}${head.authority}${head.path}${protocol}${tail}`
}

function fieldsText(fields: Fields): string {
  let text = ''
  for (let i = 0; i < fields.length; i += 2) text += ` ${fields[i] as string}:${fields[i + 1] as string}`
  return text
}

function contentText(content: Buffer): string {
  return content.length <= 80 ? JSON.stringify(content.toString('latin1')) : `${content.length} bytes`
}
