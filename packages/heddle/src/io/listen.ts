import type { SecureVersion } from 'node:tls'
import type { Address, ConnectionInfo, StreamEngine } from '../http/index.ts'
import type { Clock } from './clock.ts'
import type { SocketLike } from './socket.ts'
import type { DriverOptions, StreamDriver } from './tcp-driver.ts'

type Pem = string | Uint8Array

/** One certificate with its key, and what goes with it. */
export interface TlsIdentity {
  readonly cert?: Pem | readonly Pem[] | undefined
  readonly key?: Pem | readonly Pem[] | undefined
  readonly pfx?: Uint8Array | undefined
  readonly passphrase?: string | undefined
  /** Trusted for client certificates. */
  readonly ca?: Pem | readonly Pem[] | undefined
  readonly minVersion?: SecureVersion | undefined
  readonly maxVersion?: SecureVersion | undefined
  readonly ciphers?: string | undefined
}

export interface TlsServerOptions extends TlsIdentity {
  /** ALPN protocols, best first; a client that offers none of them gets the alert. Default `['http/1.1']`. */
  readonly alpn?: readonly string[] | undefined
  /** Chooses the protocol instead; undefined refuses the handshake, and so does a throw. */
  readonly alpnCallback?: ((serverName: string, protocols: readonly string[]) => string | undefined) | undefined
  /** Identities by server name: `example.org` or `*.example.org`. The options' own is for all other names. */
  readonly names?: Readonly<Record<string, TlsIdentity>> | undefined
  /** Asked for names that `names` lacks. A throw or rejection fails that handshake only. */
  readonly sniCallback?: ((serverName: string) => TlsIdentity | undefined | Promise<TlsIdentity | undefined>) | undefined
  /** Asks clients for a certificate. Default false. */
  readonly requestCert?: boolean | undefined
  /** With `requestCert`: refuses clients without a valid one. Default true. */
  readonly rejectUnauthorized?: boolean | undefined
  /** 48 bytes, the same in every worker, so that sessions resume across them. */
  readonly ticketKeys?: Buffer | undefined
}

export interface ListenOptions {
  readonly clock: Clock
  /** Default: all addresses. */
  readonly hostname?: string | undefined
  /** Default 0: any free one. */
  readonly port?: number | undefined
  /** Path of a Unix socket instead of hostname and port. */
  readonly path?: string | undefined
  /** Default 511. */
  readonly backlog?: number | undefined
  /** Connections held at once; more are dropped. Default: no limit. */
  readonly maxConnections?: number | undefined
  readonly tls?: TlsServerOptions | undefined
  /** ms until the TLS handshake must be done. Default 10000. */
  readonly handshakeTimeout?: number | undefined
  /** TLS handshakes in flight; more are dropped. Default 1000. */
  readonly maxHandshakes?: number | undefined
  /** Several processes share the port by SO_REUSEPORT (Node ≥ 23.1; ignored before). Default false. */
  readonly reusePort?: boolean | undefined
  /** As in `net.Server.listen`. */
  readonly exclusive?: boolean | undefined
  /** A connection stands, TLS included. It must be attached, or its socket destroyed. A throw destroys that connection. */
  onConnection(accepted: Accepted): void
  /** Something failed that concerns no connection that was handed over; counted besides. */
  readonly onError?: ((error: unknown) => void) | undefined
}

/** A connection a listener hands over. */
export interface Accepted {
  readonly socket: SocketLike
  readonly info: ConnectionInfo
  readonly alpn: string | undefined
  /** Puts `engine` on it and starts reading. */
  attach(engine: StreamEngine, options?: DriverOptions): StreamDriver
}

export interface ListenerCounters {
  accepted: number
  /** Dropped because of `maxConnections`. */
  refused: number
  /** Dropped because of `maxHandshakes`. */
  handshakesRefused: number
  /** Handshakes that failed or took too long. */
  handshakesFailed: number
  /** Failures of accept itself, such as EMFILE. */
  acceptErrors: number
}

/** A socket that listens. */
export interface Listener {
  readonly address: Address
  /** Connections that stand or shake hands now. */
  readonly connections: number
  /** TLS handshakes in flight. */
  readonly handshakes: number
  readonly counters: ListenerCounters
  /** Replaces identities and names for handshakes to come; connections that stand are left alone. Throws UsageError for a bad identity and changes nothing then. */
  updateTls(tls: TlsServerOptions): void
  /** Accepts no more; what stands goes on. Resolves when the port is free. */
  stop(): Promise<void>
  /** Drops every connection that stands or shakes hands. */
  destroyConnections(): void
}

/** Starts to listen. Rejects with the system's error (EADDRINUSE, EACCES…), or UsageError for a bad TLS identity. */
export function listen(_options: ListenOptions): Promise<Listener> {
  throw new Error('under construction')
}
