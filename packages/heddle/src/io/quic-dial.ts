import { isIP, type LookupFunction } from 'node:net'
import { NetworkError, TimeoutError, UsageError, type ConnectionInfo, type HeddleError, type Instant } from '../http/index.ts'
import type { UdpCounters } from '../native/index.ts'
import type { QuicApplication, QuicConnection, QuicOptions } from '../quic/index.ts'
import { hostAndPort, interleave, type IpAddress } from './addresses.ts'
import { Alarm, type Clock } from './clock.ts'
import { connectError, dnsError, unprocessed } from './dial-errors.ts'
import { describe } from './errors.ts'
import { Race } from './happy-eyeballs.ts'
import { QuicAttempt } from './quic-attempt.ts'
import type { QuicTls } from './quic-tls.ts'
import { resolveHost } from './resolve.ts'

/** How {@link dialQuic} connects. */
export interface QuicDialOptions {
  /** Where time comes from. */
  readonly clock: Clock
  readonly tls: QuicTls
  /** Whom the certificate must be for, and the name for SNI. Default: `tls.servername`, or the target's host. */
  readonly servername?: string | undefined
  /** Name lookup and handshake together, ms. Default 10000. */
  readonly connectTimeout?: number | undefined
  /** In place of `dns.lookup`; called with `{ all: true }`. */
  readonly lookup?: LookupFunction | undefined
  /** 4 or 6: use this family only. Default 0: both. */
  readonly family?: 0 | 4 | 6 | undefined
  /** The local IP address to send from. */
  readonly localAddress?: string | undefined
  /** RFC 8305 §5: ms between two attempts. Default 250. */
  readonly attemptDelay?: number | undefined
  /** True: the ports of its attempts do not keep the process running. Default false; see also `DialledQuic.unref`. */
  readonly unref?: boolean | undefined
  /** Windows and time limits of the connection. */
  readonly quic?: Partial<QuicOptions> | undefined
}

/** A QUIC connection that stands. */
export interface DialledQuic {
  /** What an engine is made on. */
  readonly quic: QuicConnection
  readonly info: ConnectionInfo
  /** What TLS agreed on. */
  readonly alpn: string | undefined
  /** Datagrams sent and received, and calls of the system for them. */
  readonly datagrams: UdpCounters
  /** Puts `application` on it, which is told at once that it is ready. Call it, or `destroy`, before `done` returns. */
  attach(application: QuicApplication): void
  /** The connection does not keep the process running. */
  unref(): void
  /** For the application: what the server gave for the next connection. */
  keepTicket(ticket: Uint8Array): void
  keepToken(token: Uint8Array): void
  /** Closes it at once. */
  destroy(): void
}

/**
 * Connects by QUIC: the addresses of the host race as those of TCP do (RFC 8305), each by a port of its own that
 * goes with the connection. Throws UsageError for a target or local address that cannot be. `done` is called once, never
 * before `dialQuic` returned, and not after `cancel`. Every error it gets is a HeddleError with `unprocessed: true`:
 * DNS_FAILED, CONNECT_FAILED, TLS_FAILED or CONNECT_TIMEOUT. Nothing is left of attempts that came to nothing; a connection that
 * was made and is not wanted has its port for three more probe timeouts (RFC 9000 §10.2), which keeps no process running.
 */
export function dialQuic(
  target: { readonly host: string; readonly port: number },
  options: QuicDialOptions,
  done: (error: HeddleError | undefined, dialled: DialledQuic | undefined) => void,
): { cancel(): void } {
  return new QuicDialling(target, options, done)
}

class QuicDialling {
  readonly #target: { readonly host: string; readonly port: number }
  readonly #options: QuicDialOptions
  readonly #done: (error: HeddleError | undefined, dialled: DialledQuic | undefined) => void
  readonly #alarm: Alarm
  #phase: 'looking up the name' | 'shaking hands'
  /** The attempts, once there are addresses. */
  #race: Race<QuicAttempt> | undefined
  #over: boolean

  constructor(
    target: { readonly host: string; readonly port: number },
    options: QuicDialOptions,
    done: (error: HeddleError | undefined, dialled: DialledQuic | undefined) => void,
  ) {
    const { host, port } = target
    const { clock, connectTimeout = 10_000, localAddress, lookup, family = 0 } = options
    if (host === '') throw new UsageError('the host to connect to is empty')
    if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new UsageError(`${port} is no port`)
    if (localAddress !== undefined && isIP(localAddress) === 0) throw new UsageError(`the local address ${localAddress} is no IP address`)
    this.#target = target
    this.#options = options
    this.#done = done
    this.#alarm = new Alarm(() => this.#timedOut(connectTimeout))
    this.#phase = 'looking up the name'
    this.#race = undefined
    this.#over = false
    clock.set(this.#alarm, clock.now() + connectTimeout)
    resolveHost(host, lookup, family, (error, addresses) => {
      if (this.#over) return
      if (error !== undefined) this.#fail(dnsError(host, error, undefined))
      else this.#connect(addresses)
    })
  }

  /** Ends it, whatever it is doing; `done` is not called. */
  cancel(): void {
    if (this.#over) return
    this.#finish()
    this.#race?.cancel()
  }

  get #name(): string {
    return hostAndPort(this.#target.host, this.#target.port)
  }

  #connect(addresses: readonly IpAddress[]): void {
    const { clock, tls, servername, attemptDelay = 250, localAddress, unref = false, quic } = this.#options
    const { host, port } = this.#target
    this.#phase = 'shaking hands'
    const name = servername ?? tls.servername ?? host
    try {
      void tls.context
    } catch (cause) {
      // Options OpenSSL cannot use, such as a certificate that is none.
      return this.#fail(new NetworkError('TLS_FAILED', `TLS with ${name} cannot be begun: ${describe(cause)}`, unprocessed(cause)))
    }
    const settings = { clock, tls, name, server: `${name}:${port}`, port, localAddress, unref, quic }
    const race = new Race<QuicAttempt>(
      interleave(addresses),
      clock,
      attemptDelay,
      ({ address, family }, done) => {
        const attempt = new QuicAttempt(address, family, settings, (error, ready) => {
          // Whom it reached is not the server that was meant: its other addresses make that no better.
          if (error instanceof NetworkError && error.code === 'TLS_FAILED') this.#refused(error)
          else done(error, ready)
        })
        return { cancel: () => attempt.cancel() }
      },
      (failures, attempt) => {
        if (attempt === undefined) this.#fail(connectError(this.#name, failures, undefined, 'QUIC connection'))
        else this.#succeed(attempt)
      },
    )
    this.#race = race
    race.start()
  }

  #refused(error: HeddleError): void {
    if (this.#over) return
    this.#race?.cancel()
    this.#fail(error)
  }

  #succeed(attempt: QuicAttempt): void {
    this.#finish()
    this.#done(undefined, attempt)
  }

  #fail(error: HeddleError): void {
    if (this.#over) return
    this.#finish()
    // Some failures are known at once; `done` comes later all the same.
    this.#options.clock.soon(() => this.#done(error, undefined))
  }

  #timedOut(connectTimeout: Instant): void {
    if (this.#over) return
    this.#race?.cancel()
    const message = `no QUIC connection to ${this.#name} within ${connectTimeout} ms (${this.#phase})`
    this.#fail(new TimeoutError('connect', message, { unprocessed: true }))
  }

  #finish(): void {
    this.#over = true
    this.#options.clock.clear(this.#alarm)
  }
}
