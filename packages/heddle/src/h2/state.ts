/**
 * One direction of a stream. RFC 9113 §5.1 draws one machine with six states; here the two directions
 * move on their own, and the RFC's states are their pairs:
 *
 *      sending:  Head ──HEADERS──▶ Content ──END_STREAM──▶ Ended
 *    receiving:  Head ──HEADERS──▶ Content ──END_STREAM──▶ Ended
 *
 *    idle                  both in Head; a client's stream has no number yet
 *    open                  neither has ended
 *    half-closed (local)   sending has ended
 *    half-closed (remote)  receiving has ended
 *    closed                both have ended, or RST_STREAM went or came: the stream is out of the table
 *                          at once, and `onClose` comes in this or the next run of the engine
 *
 * Interim responses leave a direction in Head. "Reserved" does not occur: push is switched off.
 */
export const Phase = { Head: 0, Content: 1, Ended: 2 } as const
export type Phase = (typeof Phase)[keyof typeof Phase]
