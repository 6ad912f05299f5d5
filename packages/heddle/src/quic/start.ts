import type { QuicCrypto, TlsSession, TlsSessionHandler } from '../native/index.ts'
import type { QuicConnection } from './connection.ts'
import type { IdIssuer } from './local-ids.ts'
import type { QuicOptions } from './options.ts'
import type { Route } from './path.ts'
import type { ResetTokens } from './remote-ids.ts'

/** What a connection begins with. */
export interface QuicStart {
  readonly isServer: boolean
  readonly route: Route
  /** The id that this end chose for itself, by which datagrams find the connection already. */
  readonly localId: Uint8Array
  /** Server: the client's Source Connection ID. Client: what it sends to first, at random, 8 octets at least. */
  readonly remoteId: Uint8Array
  /** The Destination Connection ID of the client's first Initial packet. */
  readonly originalDestination: Uint8Array
  /** Server: the Source Connection ID of the Retry packet that it sent before. */
  readonly retrySource?: Uint8Array | undefined
  /** Client: a token of NEW_TOKEN from an earlier connection. */
  readonly token?: Uint8Array | undefined
  /** Server: the client has shown that it receives at its address. */
  readonly isValidated: boolean
  readonly issuer: IdIssuer
  /** Who is told of the stateless reset tokens that the peer may use. */
  readonly resetTokens?: ResetTokens | undefined
  readonly crypto: QuicCrypto
  readonly options?: Partial<QuicOptions> | undefined
  openTls(transportParameters: Uint8Array, handler: TlsSessionHandler): TlsSession
  /** Server: makes the token for NEW_TOKEN; absent: none is sent. */
  makeToken?: (() => Uint8Array) | undefined
  /** The handshake is complete, or the connection over before it was: once. */
  onHandshakeOver?(): void
  /** The connection stands no longer, though it may still say so: once. */
  onOver?(): void
  /** The connection is over and nothing of it is needed any more: once, and last. */
  onGone(connection: QuicConnection): void
}
