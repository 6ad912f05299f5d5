import type { HeddleError } from '../../http/index.ts'
import type { MessageHandler, WebSocketConnection } from '../../ws/index.ts'
import { payloadText } from './peer-frame.ts'

/** Sends every message back, if it shall, and writes down what it is told, and every breach of the handler's contract. */
export class EchoProgram implements MessageHandler {
  readonly echo: boolean
  /** Called after the call was written down: what a program would do. */
  on: Partial<MessageHandler>
  connection: WebSocketConnection | undefined
  readonly lines: string[] = []
  readonly faults: string[] = []
  over = false
  error: HeddleError | undefined
  #sent = 0
  #closing = false

  constructor(echo = true) {
    this.echo = echo
    this.on = {}
  }

  onMessage(buffer: Uint8Array, start: number, limit: number, binary: boolean): void {
    this.#expect(!this.#closing, 'a message behind the end')
    const payload = Buffer.from(buffer.subarray(start, limit))
    this.lines.push(`${binary ? 'binary' : 'text'} ${payloadText(payload, !binary)}`)
    this.on.onMessage?.(buffer, start, limit, binary)
    if (!this.echo) return
    // As a program that cannot know its messages would: text is decoded and encoded again.
    if (binary) this.connection?.sendBytes(buffer.subarray(start, limit), true, true, false)
    else this.connection?.sendText(payload.toString('utf8'), true)
  }

  onPing(buffer: Uint8Array, start: number, limit: number): void {
    this.#expect(!this.#closing, 'a Ping behind the end')
    this.lines.push(`ping ${payloadText(buffer.subarray(start, limit), false)}`)
    this.on.onPing?.(buffer, start, limit)
  }

  onPong(buffer: Uint8Array, start: number, limit: number): void {
    this.#expect(!this.#closing, 'a Pong behind the end')
    this.lines.push(`pong ${payloadText(buffer.subarray(start, limit), false)}`)
    this.on.onPong?.(buffer, start, limit)
  }

  onSent(messageCount: number, writable: boolean): void {
    this.#sent += messageCount
    this.#expect(this.#sent === this.connection?.messagesSent, 'onSent and messagesSent do not agree')
    this.#expect(this.#sent <= (this.connection?.messagesAccepted ?? 0), 'more was sent than accepted')
    this.on.onSent?.(messageCount, writable)
  }

  onPeerClose(code: number, reason: string): void {
    this.#expect(!this.#closing, 'a Close behind the end')
    this.#closing = true
    this.lines.push(`peer closes ${code} ${JSON.stringify(reason)}`)
    this.on.onPeerClose?.(code, reason)
  }

  onClosing(error: HeddleError): void {
    this.#expect(!this.#closing, 'a fault behind the end')
    this.#closing = true
    this.lines.push('failing')
    this.on.onClosing?.(error)
  }

  onClose(code: number, reason: string, clean: boolean, error: HeddleError | undefined): void {
    this.#expect(clean === (error === undefined), 'clean and error do not agree')
    this.lines.push(`over ${code} ${clean ? 'clean' : (error?.wireCode ?? error?.code)}`)
    this.over = true
    this.error = error
    this.on.onClose?.(code, reason, clean, error)
  }

  #expect(sound: boolean, fault: string): void {
    if (this.over) this.faults.push('a call after onClose')
    else if (!sound) this.faults.push(fault)
  }
}
