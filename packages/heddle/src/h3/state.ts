/**
 * One direction of a request stream. Both move on their own (RFC 9114 §4.1):
 *
 *      sending:  Head ──HEADERS──▶ Content ──FIN has left──▶ Ended
 *    receiving:  Head ──HEADERS──▶ Content ──trailers or FIN──▶ Ended
 *
 * Interim responses leave a direction in Head. Sending has ended when the last octet has left within the peer's
 * windows, not when it was queued: until then the exchange is open. Both ended: the exchange is over, and
 * `onClose` comes in this or the next run of the engine. What QUIC still has to repeat or to throw away is no part
 * of the exchange.
 */
export const Phase = { Head: 0, Content: 1, Ended: 2 } as const
export type Phase = (typeof Phase)[keyof typeof Phase]
