import { UsageError } from '../http/index.ts'
import { loadNative, type Native, type TlsContext } from '../native/index.ts'
import { keylogWanted, writeKeylog } from './keylog.ts'
import { TlsSessions, type TlsClientOptions } from './tls-client.ts'

/** Contexts hold memory of OpenSSL's: those whose owner is collected let it go. */
const forgotten = new FinalizationRegistry<TlsContext>((context) => context.close())

/**
 * TLS of QUIC connections from one client: one set of certificates and trust, and what servers gave to come back
 * with, by name. Keep one object for one set of options: making the context costs milliseconds.
 */
export class QuicTls {
  /** Of the server's name for its certificate, if it is not the host's. */
  readonly servername: string | undefined
  readonly #options: TlsClientOptions
  readonly #alpn: readonly string[]
  #native: Native | undefined
  /** Tickets (RFC 8446 §4.6.1), each used once. */
  readonly #tickets: TlsSessions
  /** Tokens of NEW_TOKEN (RFC 9000 §8.1.3), each used once. */
  readonly #tokens: TlsSessions
  #context: TlsContext | undefined

  /** `options` have no `quicTlsFault`. `alpn`: default `['h3']`. */
  constructor(options: TlsClientOptions, alpn: readonly string[] = ['h3']) {
    this.#native = undefined
    this.servername = options.servername
    this.#options = options
    this.#alpn = alpn
    this.#tickets = new TlsSessions()
    this.#tokens = new TlsSessions()
    this.#context = undefined
  }

  /** Throws UsageError where there is none. */
  get native(): Native {
    if (this.#native === undefined) {
      const native = loadNative()
      if ('unavailable' in native) throw new UsageError(native.unavailable)
      this.#native = native
    }
    return this.#native
  }

  /** Made when it is first asked for. Throws UsageError for options that cannot be used. */
  get context(): TlsContext {
    this.#context ??= this.#makeContext()
    return this.#context
  }

  /** What `server` gave last to resume its session with; it is not given again. */
  takeTicket(server: string): Uint8Array | undefined {
    return this.#tickets.take(server)
  }

  keepTicket(server: string, ticket: Uint8Array): void {
    this.#tickets.put(server, bufferOf(ticket))
  }

  /** The same of tokens that save the server's check of our address. */
  takeToken(server: string): Uint8Array | undefined {
    return this.#tokens.take(server)
  }

  keepToken(server: string, token: Uint8Array): void {
    this.#tokens.put(server, bufferOf(token))
  }

  #makeContext(): TlsContext {
    const { ca, cert, key, pfx, passphrase, rejectUnauthorized, keylog } = this.#options
    const wantsLog = keylog !== undefined || keylogWanted()
    const context = this.native.tls({
      side: 'client',
      alpn: this.#alpn,
      ca,
      cert,
      key,
      pfx,
      passphrase,
      rejectUnauthorized,
      keylog: wantsLog ? (line) => tellLine(line, keylog) : undefined,
    })
    forgotten.register(this, context)
    return context
  }
}

/** `line` in the form node:tls gives it. */
function tellLine(line: string, keylog: TlsClientOptions['keylog']): void {
  const bytes = Buffer.from(`${line}\n`, 'latin1')
  writeKeylog(bytes)
  keylog?.(bytes)
}

function bufferOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length)
}

/** Why QUIC connections cannot be made with `options`, in words; undefined: they can. */
export function quicTlsFault({ ciphers, maxVersion, checkServerIdentity }: TlsClientOptions): string | undefined {
  // RFC 9001 §4.2
  if (maxVersion !== undefined && maxVersion !== 'TLSv1.3') return `QUIC needs TLS 1.3, and tls.maxVersion is ${maxVersion}`
  if (ciphers !== undefined) return 'tls.ciphers does not hold for QUIC, which has ciphers of its own'
  if (checkServerIdentity !== undefined) return 'tls.checkServerIdentity does not hold for QUIC, which checks the usual way'
  return undefined
}

/** Why there is no QUIC in this process, in words; undefined: there is. */
export function quicUnavailable(): string | undefined {
  const native = loadNative()
  return 'unavailable' in native ? native.unavailable : undefined
}
