import type { HeddleError } from '../../http/index.ts'
import type { MessageHandler, WebSocketConnection } from '../../ws/index.ts'
import { payloadText } from './peer-frame.ts'

/** Sends every message back, and writes down what it is told, and every breach of the handler's contract. */
export class EchoProgram implements MessageHandler {
  connection: WebSocketConnection | undefined
  readonly lines: string[] = []
  readonly faults: string[] = []
  over = false
  error: HeddleError | undefined
  #sent = 0
  #closing = false

  onMessage(buffer: Uint8Array, start: number, limit: number, binary: boolean): void {
    this.#expect(!this.#closing, 'a message behind the end')
    const payload = Buffer.from(buffer.subarray(start, limit))
    this.lines.push(`${binary ? 'binary' : 'text'} ${payloadText(payload, !binary)}`)
    // As a program that cannot know its messages would: text is decoded and encoded again.
    if (binary) this.connection?.sendBytes(buffer.subarray(start, limit), true, true, false)
    else this.connection?.sendText(payload.toString('utf8'), true)
  }

  onPing(buffer: Uint8Array, start: number, limit: number): void {
    this.#expect(!this.#closing, 'a Ping behind the end')
    this.lines.push(`ping ${payloadText(buffer.subarray(start, limit), false)}`)
  }

  onPong(buffer: Uint8Array, start: number, limit: number): void {
    this.#expect(!this.#closing, 'a Pong behind the end')
    this.lines.push(`pong ${payloadText(buffer.subarray(start, limit), false)}`)
  }

  onSent(messageCount: number, _writable: boolean): void {
    this.#sent += messageCount
    this.#expect(this.#sent === this.connection?.messagesSent, 'onSent and messagesSent do not agree')
    this.#expect(this.#sent <= (this.connection?.messagesAccepted ?? 0), 'more was sent than accepted')
  }

  onPeerClose(code: number, reason: string): void {
    this.#expect(!this.#closing, 'a Close behind the end')
    this.#closing = true
    this.lines.push(`peer closes ${code} ${JSON.stringify(reason)}`)
  }

  onClosing(): void {
    this.#expect(!this.#closing, 'a fault behind the end')
    this.#closing = true
    this.lines.push('failing')
  }

  onClose(code: number, _reason: string, clean: boolean, error: HeddleError | undefined): void {
    this.#expect(clean === (error === undefined), 'clean and error do not agree')
    this.lines.push(`over ${code} ${clean ? 'clean' : (error?.wireCode ?? error?.code)}`)
    this.over = true
    this.error = error
  }

  #expect(sound: boolean, fault: string): void {
    if (this.over) this.faults.push('a call after onClose')
    else if (!sound) this.faults.push(fault)
  }
}
