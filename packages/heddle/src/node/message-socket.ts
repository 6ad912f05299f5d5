import { X509Certificate } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { ConnectionInfo } from '../http/index.ts'

/** Whom a {@link MessageSocket} stands for. */
export interface SocketOwner {
  readonly connection: ConnectionInfo
  /** The program wants more of the request. */
  onReadWanted(): void
  /** The program is done with the exchange. */
  onSocketDestroyed(error: Error | undefined): void
  /** Nothing happened for as long as `setTimeout` said. */
  onSocketTimeout(): void
}

/**
 * What `req.socket` and `res.socket` are: the facts of the connection, and the part of `net.Socket`
 * that frameworks use. There is one for each request, also where requests share a connection: to destroy
 * it ends that request (HTTP/2 and HTTP/3 reset the stream, HTTP/1.1 drops the connection), and 'close' tells that
 * the exchange is over. Nothing can be read from it or written to it.
 */
export class MessageSocket extends EventEmitter {
  readable: boolean
  writable: boolean
  destroyed: boolean
  /** ms without activity after which 'timeout' comes; 0: never. */
  timeout: number
  readonly readableHighWaterMark: number
  readonly #owner: SocketOwner
  #timer: NodeJS.Timeout | undefined

  constructor(owner: SocketOwner) {
    super()
    this.readable = true
    this.writable = true
    this.destroyed = false
    this.timeout = 0
    this.readableHighWaterMark = 65_536
    this.#owner = owner
    this.#timer = undefined
  }

  get remoteAddress(): string | undefined {
    return this.#owner.connection.remote.address
  }

  get remotePort(): number | undefined {
    return this.#owner.connection.remote.port
  }

  get remoteFamily(): string | undefined {
    return this.#owner.connection.remote.family
  }

  get localAddress(): string | undefined {
    return this.#owner.connection.local.address
  }

  get localPort(): number | undefined {
    return this.#owner.connection.local.port
  }

  get localFamily(): string | undefined {
    return this.#owner.connection.local.family
  }

  /** True over TLS; undefined else, as with Node's sockets. */
  get encrypted(): true | undefined {
    return this.#owner.connection.tls === undefined ? undefined : true
  }

  get authorized(): boolean {
    return this.#owner.connection.tls?.authorized ?? false
  }

  get alpnProtocol(): string | false {
    return this.#owner.connection.tls?.alpn ?? false
  }

  get servername(): string | false {
    return this.#owner.connection.tls?.serverName ?? false
  }

  /** Here nothing is buffered: see `res.writableLength`. */
  get writableLength(): number {
    return 0
  }

  get readyState(): 'open' | 'closed' {
    return this.destroyed ? 'closed' : 'open'
  }

  get connecting(): boolean {
    return false
  }

  address(): { address?: string; port?: number; family?: string } {
    const { address, port, family } = this.#owner.connection.local
    return family === 'unix' ? {} : { address, port, family }
  }

  getProtocol(): string | null {
    return this.#owner.connection.tls?.version ?? null
  }

  getCipher(): { name: string } | undefined {
    const { tls } = this.#owner.connection
    return tls === undefined ? undefined : { name: tls.cipher }
  }

  /** The client's certificate as `tls.TLSSocket` gives it; an empty object if it sent none. */
  getPeerCertificate(): object {
    const raw = this.#owner.connection.tls?.peerCertificate
    return raw === undefined ? {} : new X509Certificate(raw).toLegacyObject()
  }

  /** 'timeout' comes after `timeout` ms without a byte of this request or its response; 0 turns it off. */
  setTimeout(timeout: number, callback?: () => void): this {
    this.timeout = timeout
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (timeout > 0 && !this.destroyed) {
      this.#timer = setTimeout(() => this.#owner.onSocketTimeout(), timeout).unref()
      if (callback !== undefined) this.once('timeout', callback)
    } else if (callback !== undefined) this.removeListener('timeout', callback)
    return this
  }

  /** Something was received or sent. */
  touch(): void {
    this.#timer?.refresh()
  }

  /** What `http.IncomingMessage` calls when it wants more. */
  resume(): this {
    this.#owner.onReadWanted()
    return this
  }

  pause(): this {
    return this
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this
    this.destroyed = true
    this.readable = false
    this.writable = false
    this.#owner.onSocketDestroyed(error)
    return this
  }

  destroySoon(): void {
    this.destroy()
  }

  end(): this {
    return this.destroy()
  }

  /** The exchange is over. */
  close(hadError: boolean): void {
    this.destroyed = true
    this.readable = false
    this.writable = false
    this.setTimeout(0)
    this.emit('close', hadError)
  }

  // The connection is heddle's, and carries other requests too.
  setNoDelay(): this {
    return this
  }
  setKeepAlive(): this {
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
  cork(): void {}
  uncork(): void {}
}
