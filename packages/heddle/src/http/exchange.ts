import type { CancelReason, HeddleError } from './errors.ts'
import type { Fields } from './fields.ts'
import type { Head } from './head.ts'
import type { Priority } from './priority.ts'

/**
 * Milliseconds on the driver's monotonic clock. Engines never read a clock: time is a parameter.
 */
export type Instant = number

/** One end of a connection. `address` is an IP address, or the path of a Unix socket with port 0. */
export interface Address {
  readonly address: string
  readonly port: number
  readonly family: 'IPv4' | 'IPv6' | 'unix'
}

/** What TLS agreed on. */
export interface TlsFacts {
  /** `TLSv1.3`, … */
  readonly version: string
  readonly cipher: string
  /** The ALPN protocol chosen, or undefined. */
  readonly alpn: string | undefined
  /** The server name the client asked for, or undefined. */
  readonly serverName: string | undefined
  /** True when the peer's certificate was verified. */
  readonly authorized: boolean
  /** DER of the peer's certificate, or undefined if it sent none. Made on demand. */
  readonly peerCertificate: Uint8Array | undefined
}

/** Facts about the connection an exchange runs on; one object per connection. */
export interface ConnectionInfo {
  /** Unique within the process. */
  readonly id: number
  /** The other end; over HTTP/3, where a client may move on (RFC 9000 §9), where it was when the connection began. */
  readonly remote: Address
  readonly local: Address
  readonly tls: TlsFacts | undefined
}

/**
 * One request and its response, in any version, for client and server alike.
 *
 * 1. Methods queue; none of them calls a handler back. What a local `cancel` causes (`onClose`)
 *    arrives in the engine's next `transmit` or `expire`.
 * 2. Sends after reset or close do nothing and return false: the race with the peer is normal.
 *    A `UsageError` is thrown for mistakes of order (data before the head, data after the end).
 * 3. Received bytes are valid during the call only; whoever keeps them copies them.
 * 4. After `onClose`, nothing.
 */
export interface Exchange {
  readonly protocol: 'h1' | 'h2' | 'h3'
  readonly connection: ConnectionInfo
  /** Replaceable at any time, for example to hand a tunnel over. */
  handler: ExchangeHandler
  /**
   * Sends the head. A server may send 1xx heads first (`end` false). `end`: no content follows.
   * Throws UsageError for an invalid field name or value, or out of order.
   */
  sendHead(head: Head, end: boolean): void
  /**
   * Sends `buffer[start, limit)`, copying what cannot leave at once. Takes everything; false asks
   * the caller to wait for `onSent(…, true)`. `end` ends the message (or half-closes the tunnel).
   */
  sendData(buffer: Uint8Array, start: number, limit: number, end: boolean): boolean
  /** As `sendData`, but keeps the reference until sent: the caller must not write to `chunk` again. */
  sendOwned(chunk: Uint8Array, end: boolean): boolean
  /** Ends the message with trailer fields. */
  sendTrailers(fields: Fields): void
  /** Gives receive credit back: counts the bytes of `onData`. A no-op after `onClose`. */
  consume(byteCount: number): void
  /**
   * What the peer may send on this exchange ahead of `consume`, bytes, from now on: in place of what its
   * connection gives every exchange, and without growing. Absent where exchanges have no windows of their
   * own (HTTP/1.1).
   */
  limitWindow?(byteCount: number): void
  /**
   * What the peer may send on this exchange ahead of `consume` grows to `byteCount` at most, or not at all if it is
   * more by now. Absent as `limitWindow` is.
   */
  limitWindowGrowth?(byteCount: number): void
  /**
   * Whoever sends here sees to it by itself that not too much waits to be sent, so it does not count as what the
   * peer makes its connection hold. Otherwise a peer that leaves too much unread loses the connection, and with it
   * every exchange. Absent where nothing is counted (HTTP/1.1).
   */
  exemptQueue?(): void
  /**
   * No more received data is wanted, sending goes on: HTTP/1.1 drains in the background, HTTP/2
   * answers NO_ERROR after its END_STREAM, HTTP/3 sends STOP_SENDING. `onData` and `onTrailers` are
   * not called again.
   */
  discard(): void
  /**
   * RFC 9218: how urgent the response is. HTTP/2: a client tells the server by PRIORITY_UPDATE, a server
   * sends what waits on the connection in that order, whatever the request said. HTTP/1.1: nothing happens.
   */
  setPriority(priority: Priority): void
  /**
   * HTTP/1.1, where a server may ignore an Upgrade and answer what was asked besides (RFC 9110 §7.8).
   * A server calls this before its head, which then opens no tunnel whatever its status. A client that is
   * ready for such an answer calls it before its head, and looks at `upgradeIgnored` when the answer is
   * there; without it, a 2xx that is none of the tunnel's is a PROTOCOL_ERROR. Does nothing where no Upgrade
   * is asked for. Absent with other versions, in which a 2xx is the tunnel's.
   */
  ignoreUpgrade?(): void
  /** Client: true once the head has come of an answer that ignores the Upgrade; see `ignoreUpgrade`. */
  readonly upgradeIgnored?: boolean
  /** Ends the exchange at once, both ways. `onClose` follows in a later run of the engine. */
  cancel(reason: CancelReason): void
}

/** What an engine tells about one exchange. Called inside `receive`, `transmit` and `expire` only. */
export interface ExchangeHandler {
  /**
   * Server: the request's head, once. Client: once per 1xx head, then the final one. `end`: no
   * content follows; a trailers-only answer is a head with `end`.
   */
  onHead(head: Head, end: boolean): void
  /** Content `buffer[start, limit)`, valid during the call; `end` may come with the last or with no bytes. */
  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void
  /** Trailer fields; ends the message. */
  onTrailers(fields: Fields): void
  /**
   * `byteCount` more content bytes were taken by the connection within the peer's window: what a
   * proxy credits to its source. `writable`: a sender that was told false may go on.
   */
  onSent(byteCount: number, writable: boolean): void
  /** Server: the client changed its mind by PRIORITY_UPDATE (RFC 9218 §7); what waits to be sent has its new place already. */
  onPriority(priority: Priority): void
  /** The exchange is over: exactly once, and last. `error` undefined: both messages ended well. */
  onClose(error: HeddleError | undefined): void
}

/** What the peer's settings allow. */
export interface Capabilities {
  readonly protocol: 'h1' | 'h2' | 'h3'
  /** Exchanges that may be open at once: 1 for HTTP/1.1. */
  readonly maxExchanges: number
  /** Tunnels by extended CONNECT (Upgrade in HTTP/1.1) may be tried. */
  readonly extendedConnect: boolean
}

/** One HTTP connection of any version, as pool and server see it. */
export interface HttpConnection {
  /** Client: reserves a slot and returns its exchange, or undefined when no slot is free. The stream id comes with `sendHead`. */
  open(handler: ExchangeHandler): Exchange | undefined
  /** Client: how many exchanges can be opened now. */
  readonly openable: number
  /** Exchanges that are not over. */
  readonly openExchanges: number
  /** Graceful: no new exchanges, open ones finish, then the connection closes. */
  shutdown(): void
  /** At once: every exchange ends with `error`. */
  abort(error: HeddleError): void
}

/** What a connection tells its owner. Called inside `receive`, `transmit` and `expire` only. */
export interface ConnectionHandler {
  /** The connection can be used; with HTTP/1.1 at once. */
  onReady(capabilities: Capabilities): void
  /** Server: a request begins. Returns the handler of the new exchange, whose `onHead` follows. */
  onExchange(exchange: Exchange): ExchangeHandler
  /** Client: `openable` rose to this. */
  onCapacity(openable: number): void
  /** The peer wants no new exchanges here: GOAWAY, or `Connection: close`. */
  onDraining(): void
  /** Client: discarded content is off the wire (`completed`) or was given up, and the connection with it. `byteCount`: content bytes read and thrown away. */
  onDrained(byteCount: number, completed: boolean): void
  /** The connection is over: exactly once, and last. */
  onClose(error: HeddleError | undefined): void
  /**
   * `cause` was thrown by a call that nothing could be ended for any more: the `onClose` of an exchange. (What else
   * a handler throws cancels its exchange, whose `onClose` is told.) Absent: nobody hears of it.
   */
  onFault?(cause: unknown): void
}

/** Tells `owner` what a handler threw in its last call. An owner that throws in turn harms nobody. */
export function tellFault(owner: ConnectionHandler, cause: unknown): void {
  try {
    owner.onFault?.(cause)
  } catch {
    // Whoever is told of faults fails: there is nobody left to tell.
  }
}

/**
 * What a driver needs to run an engine on a byte stream. The loop: mutate once (`receive`,
 * `receiveEnd`, `expire`), then drain `transmit`, then read `closing`, `wantsInput` and `deadline`.
 */
export interface StreamEngine {
  /** Takes all of `buffer[start, limit)`. Never throws for what the peer sent. */
  receive(buffer: Uint8Array, start: number, limit: number, now: Instant): void
  /** The peer's FIN. */
  receiveEnd(now: Instant): void
  /**
   * The transport failed or is gone: every exchange that is not over ends with `error`. The last call
   * of all, and it always comes: after `close` or `reset` too, when the engine has told its handlers
   * already and ignores it.
   */
  receiveError(error: HeddleError, now: Instant): void
  /**
   * Appends what may be sent now; bodies stop at `out.room`. True: more is waiting for room. Without
   * any room at the start the socket is backed up: nothing is appended, but a time limit for a peer
   * that takes nothing begins to run.
   */
  transmit(out: OutboxLike, now: Instant): boolean
  /** False: the driver stops reading. */
  readonly wantsInput: boolean
  /**
   * After the flush: `end` sends FIN and keeps reading, `close` sends FIN and lets the transport
   * go, `reset` drops it at once.
   */
  readonly closing: 'no' | 'end' | 'close' | 'reset'
  /** When `expire` must be called next; Infinity: never. */
  readonly deadline: Instant
  expire(now: Instant): void
  /** Set by the driver: user code, or the other leg of a proxy, left something to send. */
  onDirty: () => void
}

/** The part of an outbox engines write to (see `bytes/outbox.ts`). */
export interface OutboxLike {
  buffer: Buffer
  length: number
  readonly room: number
  reserve(byteCount: number): void
  writeBytes(buffer: Uint8Array, start: number, limit: number): void
  writeLatin1(text: string): void
}
