import { IncomingMessage as NodeIncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Fields, Head } from '../http/index.ts'
import type { MessageSocket } from './message-socket.ts'
import type { UpgradeSocket } from './upgrade-socket.ts'

/** Parts of Node's class that its types leave out: how its parser hands fields over, and how its server lets go of a request. */
interface Internals {
  _addHeaderLines(lines: readonly string[], count: number): void
  _dump(): void
  _consuming: boolean
}

/**
 * A request as Node's frameworks know it: a real `http.IncomingMessage`, whose bytes and fields come from an
 * exchange. Node's class makes `headers`, `headersDistinct` and `trailers` of the lines, and is the
 * stream; what it asks of its socket reaches the exchange through {@link MessageSocket}.
 */
export class IncomingMessage extends NodeIncomingMessage {
  /** `end`: there is no content. */
  constructor(socket: MessageSocket | UpgradeSocket, head: Head, end: boolean, protocol: 'h1' | 'h2' | 'h3') {
    super(socket as unknown as Socket)
    // Express gives the object the prototype of Node's class: what is ours must be the object's own.
    this._destroy = IncomingMessage.prototype._destroy
    const major = protocol === 'h1' ? 1 : Number(protocol[1])
    const minor = protocol === 'h1' ? 1 : 0
    this.httpVersionMajor = major
    this.httpVersionMinor = minor
    this.httpVersion = `${major}.${minor}`
    this.method = head.method
    this.url = head.path
    const lines = rawHeaders(head, end)
    ;(this as unknown as Internals)._addHeaderLines(lines, lines.length)
  }

  /**
   * As Node's: a request that is not over takes its exchange along, unless `stream.pipeline` has taken
   * the socket off first.
   */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.readableEnded || !this.complete) {
      this.aborted = true
      this.emit('aborted')
      const socket = this.socket as Socket | null
      if (socket !== null && !socket.destroyed) socket.destroy(error ?? undefined)
    }
    // An error nobody listens for is no reason to end the process. Later, for listeners that are about to come.
    process.nextTick(() => done(this.listenerCount('error') === 0 ? null : error))
  }
}

/** True once the program reads `message`. */
export function isRead(message: IncomingMessage): boolean {
  return (message as unknown as Internals)._consuming
}

/** The rest of `message` came. */
export function completeMessage(message: IncomingMessage, trailers: Fields): void {
  message.complete = true
  if (trailers.length > 0) (message as unknown as Internals)._addHeaderLines(trailers, trailers.length)
  message.push(null)
}

/** Nobody reads `message`, and nobody will: lets it end, as Node's server does after the response. */
export function dumpMessage(message: IncomingMessage): void {
  ;(message as unknown as Internals)._dump()
}

/** The field lines, with those that Fields leave to the head. */
function rawHeaders({ authority, fields }: Head, end: boolean): string[] {
  const lines = authority === '' ? [...fields] : ['host', authority, ...fields]
  if (end) return lines
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === 'content-length') return lines
  // Frameworks know by the framing that a request has a body; HTTP/2 needs none, and Fields have none.
  lines.push('transfer-encoding', 'chunked')
  return lines
}
