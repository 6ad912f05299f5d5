import type { TlsFacts } from '../http/index.ts'
import type { TlsUpdate } from './tls-options.ts'

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

/** Why TLS ends a connection. */
export interface TlsFault {
  readonly alert: number
  /** The error code of QUIC: 0x100 + `alert` (RFC 9001 §4.8), but PROTOCOL_VIOLATION where RFC 9001 says that. */
  readonly code: number
  /** What is wrong, with the verification's own words where it was that. */
  readonly message: string
}

/** What a TLS session tells. Called inside `start`, `receive` and `resume` only, but for `onWake`. What one of these throws, the outer call throws, and the session is closed. */
export interface TlsSessionHandler {
  /** Octets to be sent in CRYPTO frames; the callee keeps them. */
  onCrypto(level: Level, bytes: Uint8Array): void
  /** A secret of a level and direction; `secret` is the callee's. */
  onSecret(level: Level, direction: 'read' | 'write', suite: CipherSuite, secret: Uint8Array): void
  /** The peer's transport parameters, as they came. */
  onTransportParameters(bytes: Uint8Array): void
  /** Client: a ticket to resume the session with. */
  onTicket(ticket: Uint8Array): void
  /** Server: the promise of an SNI callback is settled; `resume` goes on. Called in a turn of its own, where `resume` may be called at once. */
  onWake?(): void
}

/** The TLS 1.3 handshake of one QUIC connection. */
export interface TlsSession {
  /** Client: makes the first flight. */
  start(): TlsFault | undefined
  /** Takes octets of CRYPTO frames of a level, in order, and goes on as far as they allow. After a fault it does nothing. */
  receive(level: Level, bytes: Uint8Array): TlsFault | undefined
  /** Goes on after `onWake`. */
  resume(): TlsFault | undefined
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
  /**
   * Sessions are resumed, and early data is taken, only where this is the same as it was: the limits that a client
   * remembers for early data (RFC 9000 §7.4.1). Default: the same for all.
   */
  readonly resumptionContext?: string | undefined
}

/** Certificates, trust and preferences that sessions share. */
export interface TlsContext {
  client(options: TlsClientOptions, handler: TlsSessionHandler): TlsSession
  server(options: TlsServerOptions, handler: TlsSessionHandler): TlsSession
  /** Server: for handshakes to come, what is given replaces what was given before. Throws UsageError, and changes nothing, for what cannot be used. */
  update(change: TlsUpdate): void
  /** No more sessions; those there are go on. */
  close(): void
}

/** Where a datagram comes from or goes to. Two of the same address and port have the same `key`, and mostly are one object. */
export interface UdpAddress {
  /** An IPv4 address that an IPv6 socket maps is IPv4 here. */
  readonly family: 4 | 6
  /** In its canonical text form (RFC 5952), with the zone of a link-local address. */
  readonly host: string
  readonly port: number
  /** Unique to address, zone and port. */
  readonly key: string
  equals(other: UdpAddress): boolean
}

/** What a UDP port tells. Nothing of it is called inside `send`. */
export interface UdpHandler {
  /**
   * `count` datagrams came. They and what `port.offset` and its siblings say of them are valid during the call only.
   * One that is larger than {@link largestDatagram} never comes.
   */
  onBatch(port: UdpPort, count: number): void
  /** `port.blocked` is over. */
  onWritable(port: UdpPort): void
  /**
   * Something was not sent, or the peer of a connected port is not there (ECONNREFUSED); the port lives on. At most once a
   * turn of the event loop. A datagram that is too large for the network interface (EMSGSIZE) is lost without a word.
   */
  onError(port: UdpPort, error: NodeJS.ErrnoException): void
}

/** How a UDP port is opened. */
export interface UdpOptions {
  /** An IP address. Default: all addresses, IPv4 and IPv6 where there is IPv6. */
  readonly host?: string | undefined
  /** Default 0: the system chooses. */
  readonly port?: number | undefined
  /** The only peer: nobody else is heard, and that nobody listens there becomes an error. */
  readonly remote?: UdpAddress | undefined
  /** With `::`: no IPv4. Default false. */
  readonly ipv6Only?: boolean | undefined
  /** Processes share the port, each with clients of its own (SO_REUSEPORT). Default false. */
  readonly reusePort?: boolean | undefined
  /** Octets that may wait to be received; the system may allow less. Default 2 MiB. */
  readonly receiveBufferSize?: number | undefined
  /** Octets that may wait to be sent. Default 2 MiB. */
  readonly sendBufferSize?: number | undefined
  /** Let the system cut one large buffer into datagrams, where it can (UDP_SEGMENT). Default true. */
  readonly segmentation?: boolean | undefined
}

/** One UDP socket, bound. */
export interface UdpPort {
  readonly local: UdpAddress
  /** Datagrams that the system had no room for wait here: send no more until `onWritable`. */
  readonly blocked: boolean
  /** Whether the ECN field goes out as given. Without: as 0. */
  readonly sendsEcn: boolean
  /** Datagrams given to the system, calls that did it, datagrams dropped; datagrams and batches that came. */
  readonly counters: UdpCounters

  /** Inside `onBatch`: where the datagrams are. */
  readonly buffer: Uint8Array
  offset(index: number): number
  length(index: number): number
  /**
   * The ECN field (RFC 3168 §5): 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE; −1 if the system did not tell, as for the first
   * datagram of every wake-up. A path with a −1 cannot have its counts reported (RFC 9000 §13.4.1).
   */
  ecn(index: number): number
  peer(index: number): UdpAddress

  /**
   * Sends `buffer[start, limit)` as datagrams of `segmentSize` octets, the last of what is left, with `ecn` in each.
   * The octets are the caller's again at once. Returns how many datagrams are on their way or wait.
   */
  send(peer: UdpAddress, buffer: Uint8Array, start: number, limit: number, segmentSize: number, ecn: number): number
  /** Whether the port keeps the process alive: at first it does. */
  ref(): void
  unref(): void
  /** Once closed, nothing is called anymore and `send` does nothing. It may be called again, and inside `onBatch`. */
  close(): Promise<void>
}

export interface UdpCounters {
  sent: number
  sendCalls: number
  /** Too large, or refused by the system. */
  dropped: number
  received: number
  batches: number
}

/** Opens UDP ports. */
export interface Udp {
  /** Many datagrams a call of the system; otherwise one. */
  readonly batches: boolean
  /** Rejects with the system's error: `code`, `syscall`, `address`, `port`. */
  bind(options: UdpOptions, handler: UdpHandler): Promise<UdpPort>
  /** `host` is an IP address, with a zone if it is link-local. Throws a RangeError if it is not, or `port` is none. */
  address(host: string, port: number): UdpAddress
}

/** Octets of the largest datagram that is received: more than an Ethernet frame brings. */
export const largestDatagram = 2048

/** Why something native is not to be had, for people. Not beside what needs it: `node:ffi` has types in the newest of `@types/node` only. */
export interface Unavailable {
  readonly unavailable: string
}
