import type { TlsFacts } from '../http/index.ts'

/** The levels of encryption of QUIC (RFC 9001 §2.1), as OpenSSL numbers them. */
export const Level = { initial: 0, early: 1, handshake: 2, application: 3 } as const
export type Level = (typeof Level)[keyof typeof Level]

/** The cipher suites of TLS 1.3 that QUIC can be protected with here (RFC 9001 §5.3). */
export type CipherSuite = 'TLS_AES_128_GCM_SHA256' | 'TLS_AES_256_GCM_SHA384' | 'TLS_CHACHA20_POLY1305_SHA256'

/** The AEAD of one direction and one key phase (RFC 9001 §5.3). The nonce is made of its IV and the packet number. */
export interface PacketKey {
  /**
   * Seals in place: the header `buffer[headerStart, payloadStart)` is the associated data, `buffer[payloadStart,
   * payloadLimit)` is encrypted, and the 16 octets of the tag go to `payloadLimit`.
   */
  seal(buffer: Uint8Array, headerStart: number, payloadStart: number, payloadLimit: number, packetNumber: number): void
  /** Opens in place; the tag is the last 16 octets before `limit`. False: the packet is not what the peer sealed, and its payload is undefined. */
  open(buffer: Uint8Array, headerStart: number, payloadStart: number, limit: number, packetNumber: number): boolean
  /** Lets the key go; it may be called again. A closed key seals and opens nothing. */
  close(): void
}

/** The header protection of one direction (RFC 9001 §5.4); it stays through key updates. */
export interface HeaderKey {
  /** Writes the mask for the 16 octets of sample at `sampleStart` into the first 5 octets of `mask`. */
  mask(buffer: Uint8Array, sampleStart: number, mask: Uint8Array): void
  close(): void
}

/** The cryptography below QUIC, but for TLS. */
export interface QuicCrypto {
  /** HKDF-Extract (RFC 5869) with the suite's hash. */
  hkdfExtract(suite: CipherSuite, salt: Uint8Array, secret: Uint8Array): Uint8Array
  /** HKDF-Expand-Label (RFC 8446 §7.1) with an empty context; `label` without its `tls13 `. */
  expandLabel(suite: CipherSuite, secret: Uint8Array, label: string, length: number): Uint8Array
  packetKey(suite: CipherSuite, key: Uint8Array, iv: Uint8Array): PacketKey
  headerKey(suite: CipherSuite, key: Uint8Array): HeaderKey
  /** The 16 octets of a Retry packet's integrity tag (RFC 9001 §5.8) for the Retry pseudo-packet, version 1. */
  retryTag(pseudoPacket: Uint8Array): Uint8Array
  /** Seals a token's content with AES-256-GCM under `key` (32 octets) and a random nonce, which comes first in the result. */
  sealToken(key: Uint8Array, content: Uint8Array): Uint8Array
  /** The content of what `sealToken` made under the same key; undefined for everything else. */
  openToken(key: Uint8Array, token: Uint8Array): Uint8Array | undefined
  /** The 16 octets of the stateless reset token of a connection id (RFC 9000 §10.3.2): an HMAC under `key`. */
  statelessResetToken(key: Uint8Array, connectionId: Uint8Array): Uint8Array
  random(byteCount: number): Uint8Array
}

/** Why TLS ends a connection: the error code is 0x100 + `alert` (RFC 9001 §4.8). */
export interface TlsFault {
  readonly alert: number
  /** What is wrong, with the verification's own words where it was that. */
  readonly message: string
}

/** What a TLS session tells. Called inside `start` and `receive` only. */
export interface TlsSessionHandler {
  /** Octets to be sent in CRYPTO frames; the callee keeps them. */
  onCrypto(level: Level, bytes: Uint8Array): void
  /** A secret of a level and direction; `secret` is the callee's. */
  onSecret(level: Level, direction: 'read' | 'write', suite: CipherSuite, secret: Uint8Array): void
  /** The peer's transport parameters, as they came. */
  onTransportParameters(bytes: Uint8Array): void
  /** Client: a ticket to resume the session with. */
  onTicket(ticket: Uint8Array): void
}

/** The TLS 1.3 handshake of one QUIC connection. */
export interface TlsSession {
  /** Client: makes the first flight. */
  start(): TlsFault | undefined
  /** Takes octets of CRYPTO frames of a level, in order, and goes on as far as they allow. After a fault it does nothing. */
  receive(level: Level, bytes: Uint8Array): TlsFault | undefined
  /** Both sides have finished (RFC 9001 §4.1.1). */
  readonly complete: boolean
  readonly earlyData: 'none' | 'offered' | 'accepted' | 'rejected'
  /** What was agreed on; whole once `complete`. */
  facts(): TlsFacts
  /** Lets the session go; it may be called at any time, and again. */
  close(): void
}

/** What a client says of one connection. */
export interface TlsClientOptions {
  /** The name or IP address that the server's certificate must be for. */
  readonly host: string
  readonly transportParameters: Uint8Array
  /** From an earlier session with this host. */
  readonly ticket?: Uint8Array | undefined
  /** Offer early data if the ticket allows it. Default false. */
  readonly earlyData?: boolean | undefined
}

/** What a server says of one connection. */
export interface TlsServerOptions {
  readonly transportParameters: Uint8Array
}

/** Certificates, trust and preferences that sessions share. */
export interface TlsContext {
  client(options: TlsClientOptions, handler: TlsSessionHandler): TlsSession
  server(options: TlsServerOptions, handler: TlsSessionHandler): TlsSession
  close(): void
}
