import type { TlsFacts } from '../http/index.ts'
import { Level, type TlsFault, type TlsSession, type TlsSessionHandler } from '../native/index.ts'

/** The messages of this handshake: a type, three octets of length, and a body. */
const Message = {
  clientHello: 1,
  serverHello: 2,
  ticket: 4,
  encryptedExtensions: 8,
  certificate: 11,
  finished: 20,
} as const

/** RFC 8446 §6.2: unexpected_message. */
const unexpected: TlsFault = { alert: 10, code: 0x10a, message: 'a message that is not due' }

/** How large the flights are. */
export interface PlainTlsOptions {
  /** Octets of a ClientHello at least. Default 300. */
  readonly clientHello?: number
  /** Octets of a server's certificate. Default 2,000: the first flight has two datagrams. */
  readonly certificate?: number
}

/** The secret of a level and of who writes with it: everybody knows them, so that a test can seal packets, too. */
export function plainSecret(level: Level, byServer: boolean): Uint8Array {
  return new Uint8Array(32).fill(16 * level + (byServer ? 2 : 1))
}

/**
 * A handshake with the shape of TLS 1.3 and nothing of its cryptography: cheap, and the same in every run.
 * It has the flights, levels and secrets, and is as strict about the order of messages.
 */
export class PlainTls implements TlsSession {
  readonly earlyData = 'none'
  complete: boolean
  isClosed: boolean
  readonly #isServer: boolean
  readonly #parameters: Uint8Array
  readonly #handler: TlsSessionHandler
  readonly #options: PlainTlsOptions
  /** The level that messages are due at, and what came of the next one. */
  #level: Level
  #pending: Uint8Array
  #expected: number

  constructor(isServer: boolean, parameters: Uint8Array, handler: TlsSessionHandler, options: PlainTlsOptions = {}) {
    this.complete = false
    this.isClosed = false
    this.#isServer = isServer
    this.#parameters = parameters
    this.#handler = handler
    this.#options = options
    this.#level = Level.initial
    this.#pending = new Uint8Array(0)
    this.#expected = isServer ? Message.clientHello : Message.serverHello
  }

  start(): TlsFault | undefined {
    const body = new Uint8Array(Math.max(2 + this.#parameters.length, this.#options.clientHello ?? 300))
    new DataView(body.buffer).setUint16(0, this.#parameters.length)
    body.set(this.#parameters, 2)
    this.#say(Level.initial, Message.clientHello, body)
    return undefined
  }

  receive(level: Level, bytes: Uint8Array): TlsFault | undefined {
    if (this.isClosed) return undefined
    if (level !== this.#level) return unexpected
    const all = new Uint8Array(this.#pending.length + bytes.length)
    all.set(this.#pending)
    all.set(bytes, this.#pending.length)
    let at = 0
    while (at < all.length) {
      if (all[at] !== this.#expected) return unexpected
      if (all.length - at < 4) break
      const size = ((all[at + 1] as number) << 16) | ((all[at + 2] as number) << 8) | (all[at + 3] as number)
      if (all.length - at - 4 < size) break
      const before = this.#level
      if (!this.#take(all.subarray(at + 4, at + 4 + size))) return unexpected
      at += 4 + size
      // RFC 9001 §4.1.3: a flight ends with its level.
      if (this.#level !== before && at < all.length) return { ...unexpected, code: 0x0a }
    }
    this.#pending = all.slice(at)
    return undefined
  }

  resume(): TlsFault | undefined {
    return undefined
  }

  facts(): TlsFacts {
    return { version: 'TLSv1.3', cipher: 'plain', alpn: undefined, serverName: undefined, authorized: true, peerCertificate: undefined }
  }

  close(): void {
    this.isClosed = true
  }

  /** The message that is due came. */
  #take(body: Uint8Array): boolean {
    switch (this.#expected) {
      case Message.clientHello:
        this.#handler.onTransportParameters(body.slice(2, 2 + (((body[0] as number) << 8) | (body[1] as number))))
        this.#say(Level.initial, Message.serverHello, new Uint8Array(80))
        this.#secrets(Level.handshake)
        this.#say(Level.handshake, Message.encryptedExtensions, this.#parameters)
        this.#say(Level.handshake, Message.certificate, new Uint8Array(this.#options.certificate ?? 2_000))
        this.#say(Level.handshake, Message.finished, new Uint8Array(32))
        this.#handler.onSecret(Level.application, 'write', 'TLS_AES_128_GCM_SHA256', plainSecret(Level.application, true))
        this.#expect(Level.handshake, Message.finished)
        return true
      case Message.serverHello:
        this.#secrets(Level.handshake)
        this.#expect(Level.handshake, Message.encryptedExtensions)
        return true
      case Message.encryptedExtensions:
        this.#handler.onTransportParameters(new Uint8Array(body))
        this.#expected = Message.certificate
        return true
      case Message.certificate:
        this.#expected = Message.finished
        return true
      case Message.finished:
        this.#finish()
        return true
      case Message.ticket:
        this.#handler.onTicket(new Uint8Array(body))
        return !this.#isServer
      default:
        return false
    }
  }

  #finish(): void {
    if (this.#isServer) {
      this.#handler.onSecret(Level.application, 'read', 'TLS_AES_128_GCM_SHA256', plainSecret(Level.application, false))
      this.#say(Level.application, Message.ticket, new Uint8Array(100))
      this.#expect(Level.application, 0)
    } else {
      this.#secrets(Level.application)
      this.#say(Level.handshake, Message.finished, new Uint8Array(32))
      this.#expect(Level.application, Message.ticket)
    }
    this.complete = true
  }

  #secrets(level: Level): void {
    this.#handler.onSecret(level, 'write', 'TLS_AES_128_GCM_SHA256', plainSecret(level, this.#isServer))
    this.#handler.onSecret(level, 'read', 'TLS_AES_128_GCM_SHA256', plainSecret(level, !this.#isServer))
  }

  #expect(level: Level, message: number): void {
    this.#level = level
    this.#expected = message
  }

  #say(level: Level, type: number, body: Uint8Array): void {
    const bytes = new Uint8Array(4 + body.length)
    bytes[0] = type
    bytes[1] = body.length >> 16
    bytes[2] = body.length >> 8
    bytes[3] = body.length
    bytes.set(body, 4)
    this.#handler.onCrypto(level, bytes)
  }
}
