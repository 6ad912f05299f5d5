/**
 * How far a request has come.
 *
 * ```
 *            admitted          response head             both ended
 * Reading ───────────▶ Trying ──────────────▶ Responding ──────────▶ Closed
 *    │                 │ │ ▲ └ 2xx to CONNECT ▶ Tunnel ─────────────────▲
 *    │         refused │ └─┘ another endpoint                           │
 *    └─────────────────┴──────▶ Answered (by the gateway itself) ───────┘
 * ```
 */
export const Phase = { Reading: 0, Trying: 1, Responding: 2, Tunnel: 3, Answered: 4, Closed: 5 } as const
export type Phase = (typeof Phase)[keyof typeof Phase]
