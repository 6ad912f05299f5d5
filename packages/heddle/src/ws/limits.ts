/** What one WebSocket connection may cost; every member is an option. */
export interface WebSocketLimits {
  /** Bytes of one received message, inflated. Default 16 MiB. On excess: 1009, before the rest is received. */
  readonly maxMessageSize: number
  /** Frames one received message may consist of. Default 16,384. On excess: 1009. */
  readonly maxFragments: number
  /** Pongs that wait to be sent. Default 64. Pings beyond that are answered together, by one Pong (RFC 6455 §5.5.3). */
  readonly maxQueuedPongs: number
  /** Pings that may come while `maxQueuedPongs` Pongs wait. Default 1,000. On excess: 1008. */
  readonly maxUnansweredPings: number
  /** Bytes of messages that wait for the codec at which `sendText` and `sendBytes` return false. Default 64 KiB. */
  readonly maxQueuedBytes: number
  /** Bytes thrown away after a Close or a fault of the peer; then receive credit is withheld. Default 256 KiB. */
  readonly drainSize: number
}

/** The limits when nothing is said. */
export const webSocketLimits: WebSocketLimits = Object.freeze({
  maxMessageSize: 16 * 1024 * 1024,
  maxFragments: 16_384,
  maxQueuedPongs: 64,
  maxUnansweredPings: 1_000,
  maxQueuedBytes: 65_536,
  drainSize: 262_144,
})
