import type { Instant } from '../http/index.ts'
import type { TransportFault } from './transport-error.ts'

/** Why a connection ends, as CONNECTION_CLOSE tells it. */
export interface CloseReason {
  /** The error code of the transport or of the application. */
  readonly code: number
  /** A code of the application (frame type 0x1d) and not of the transport. */
  readonly application: boolean
  /** The type of the frame that the transport's error is about; 0: none. */
  readonly frameType: number
  readonly reason: string
}

/** The reason that a fault is. */
export function faultReason({ code, frameType, reason }: TransportFault): CloseReason {
  return { code, application: false, frameType, reason }
}

/**
 * The end of a connection (RFC 9000 §10.2).
 *
 *     open ── close() ─────────► closing ── three PTO ──► closed
 *      │                            │                       ▲
 *      │                    peer's CONNECTION_CLOSE         │
 *      │                            ▼                       │
 *      ├── CONNECTION_CLOSE ────► draining ── three PTO ────┤
 *      └── idle, reset, lost ───────────────────────────────┘
 *
 * Closing answers what still comes with CONNECTION_CLOSE, ever less often; draining sends nothing.
 */
export class Closing {
  state: 'open' | 'closing' | 'draining' | 'closed'
  /** What this end says in CONNECTION_CLOSE; set while closing. */
  reason: CloseReason | undefined
  /** CONNECTION_CLOSE must leave. */
  mustSend: boolean
  #received: number
  #answerAt: number

  constructor() {
    this.state = 'open'
    this.reason = undefined
    this.mustSend = false
    this.#received = 0
    this.#answerAt = 1
  }

  /** This end closes; does nothing if the connection ends already. */
  close(reason: CloseReason): boolean {
    if (this.state !== 'open') return false
    this.state = 'closing'
    this.reason = reason
    this.mustSend = true
    return true
  }

  /** The peer closes. True if the connection was open. */
  receiveClose(): boolean {
    const wasOpen = this.state === 'open'
    if (this.state !== 'closed') this.state = 'draining'
    // RFC 9000 §10.2.2: an endpoint that drains sends nothing.
    this.mustSend = false
    return wasOpen
  }

  /** A datagram came for a connection that is closing: after 1, 2, 4, 8 … of them the reason is told again (RFC 9000 §10.2.1). */
  receiveDatagram(): void {
    if (this.state !== 'closing') return
    this.#received++
    if (this.#received < this.#answerAt) return
    this.#received = 0
    this.#answerAt *= 2
    this.mustSend = true
  }

  /** When closing or draining is over. `probeTimeout`: ms. */
  deadline(probeTimeout: number, now: Instant): Instant {
    return now + 3 * probeTimeout
  }

  /** It is over, whatever it was. */
  finish(): void {
    this.state = 'closed'
    this.mustSend = false
  }
}
