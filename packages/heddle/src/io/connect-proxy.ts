import type { Socket } from 'node:net'
import { ClientConnection } from '../h1/index.ts'
import {
  HeddleError,
  NetworkError,
  reasonPhrase,
  requestHead,
  type ConnectionHandler,
  type Exchange,
  type ExchangeHandler,
  type Head,
} from '../http/index.ts'
import type { Clock } from './clock.ts'
import { connectionFacts } from './connection-facts.ts'
import { StreamDriver } from './tcp-driver.ts'

/**
 * Asks an HTTP proxy on `socket` to open a tunnel to `authority` (RFC 9110 §9.3.6). `done` is called
 * once, later, with a PROXY_FAILED error (`unprocessed`) or, when the tunnel stands, with nothing:
 * the socket is then as a fresh one, paused and with nobody listening but for errors. Not after
 * `cancel`. Failing and cancelling destroy the socket.
 */
export function openTunnel(
  socket: Socket,
  clock: Clock,
  authority: string,
  proxy: { readonly host: string; readonly authorization?: string | undefined },
  done: (error: HeddleError | undefined) => void,
): { cancel(): void } {
  return new TunnelRequest(socket, clock, authority, proxy, done)
}

class TunnelRequest implements ConnectionHandler, ExchangeHandler {
  readonly #socket: Socket
  readonly #clock: Clock
  readonly #driver: StreamDriver
  readonly #proxy: string
  readonly #done: (error: HeddleError | undefined) => void
  /** What came behind the answer: the first bytes of the tunnel. */
  readonly #early: Buffer[]
  #answered: boolean

  constructor(
    socket: Socket,
    clock: Clock,
    authority: string,
    proxy: { readonly host: string; readonly authorization?: string | undefined },
    done: (error: HeddleError | undefined) => void,
  ) {
    this.#socket = socket
    this.#clock = clock
    this.#driver = new StreamDriver(socket, clock)
    this.#proxy = proxy.host
    this.#done = done
    this.#early = []
    this.#answered = false
    const engine = new ClientConnection(connectionFacts(socket, undefined, false), this, {}, clock.now())
    this.#driver.attach(engine)
    const fields = proxy.authorization === undefined ? [] : ['proxy-authorization', proxy.authorization]
    const exchange = engine.open(this)
    if (exchange === undefined) this.#fail(undefined, 'the connection to it takes no request')
    else exchange.sendHead(requestHead('CONNECT', '', authority, '', fields), false)
  }

  cancel(): void {
    this.#answered = true
    this.#driver.detach()
    this.#socket.destroy()
  }

  onHead(head: Head): void {
    if (this.#answered || head.status < 200) return
    if (head.status > 299) return this.#fail(undefined, `it answered ${head.status} ${reasonPhrase(head.status)}`.trimEnd())
    this.#answered = true
    // The engine runs now; it is taken off when it does not.
    this.#clock.soon(() => this.#handOver())
  }

  onData(buffer: Uint8Array, start: number, limit: number): void {
    if (this.#answered && limit > start) this.#early.push(Buffer.from(buffer.subarray(start, limit)))
  }

  onClose(error: HeddleError | undefined): void {
    this.#fail(error, error === undefined ? 'it closed the connection' : error.message)
  }

  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onReady(): void {}
  onCapacity(): void {}
  onDraining(): void {}
  onDrained(): void {}
  onExchange(_exchange: Exchange): ExchangeHandler {
    return this
  }

  #handOver(): void {
    if (this.#socket.destroyed) {
      this.#done(this.#error(undefined, 'it closed the connection'))
      return
    }
    this.#driver.detach()
    for (const bytes of this.#early.toReversed()) this.#socket.unshift(bytes)
    this.#done(undefined)
  }

  #fail(cause: HeddleError | undefined, text: string): void {
    if (this.#answered) return
    this.#answered = true
    this.#clock.soon(() => {
      this.#driver.detach()
      this.#socket.destroy()
      this.#done(this.#error(cause, text))
    })
  }

  #error(cause: HeddleError | undefined, text: string): HeddleError {
    return new NetworkError('PROXY_FAILED', `the proxy ${this.#proxy} opened no tunnel: ${text}`, { cause, unprocessed: true })
  }
}
