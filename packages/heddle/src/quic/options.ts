/** What a QUIC connection may be told; every time is in ms, every size in octets. */
export interface QuicOptions {
  /** Without anything from the peer for so long the connection is over (RFC 9000 §10.1). 0: never. Default 30,000. */
  readonly maxIdleTimeout: number
  /** While the application wants the path watched: a PING after so long without anything. 0: none. Default 15,000. */
  readonly keepAlive: number
  /** The handshake takes no longer. Default 10,000. */
  readonly handshakeTimeout: number
  /** What the peer may send on a stream ahead of what is consumed, at first. Default 1 MiB. */
  readonly initialMaxStreamData: number
  /** The same for the whole connection. Default 4 MiB. */
  readonly initialMaxData: number
  /** Both windows grow with use; the connection's to this at most, and no more than this is in flight the other way. Default 16 MiB. */
  readonly largestWindow: number
  /** Bidirectional streams the peer may have open at once. Default 100. */
  readonly maxBidirectionalStreams: number
  /** Unidirectional streams the peer may have open at once. Default 16. */
  readonly maxUnidirectionalStreams: number
  /** Datagrams grow to this, if the path and the peer take them. Default 1,452. */
  readonly maxDatagramSize: number
  /** Default 'cubic'. */
  readonly congestion: 'cubic' | 'newreno'
  /** Marks datagrams with ECT(0) and listens for CE (RFC 9000 §13.4). Default true. */
  readonly ecn: boolean
}

export const quicDefaults: QuicOptions = {
  maxIdleTimeout: 30_000,
  keepAlive: 15_000,
  handshakeTimeout: 10_000,
  initialMaxStreamData: 1 << 20,
  initialMaxData: 4 << 20,
  largestWindow: 16 << 20,
  maxBidirectionalStreams: 100,
  maxUnidirectionalStreams: 16,
  maxDatagramSize: 1_452,
  congestion: 'cubic',
  ecn: true,
}
