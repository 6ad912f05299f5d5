import { Level } from '../native/index.ts'

/** The packet number spaces (RFC 9000 §12.3): each has its own numbers, acknowledgements and loss detection. */
export const Space = { initial: 0, handshake: 1, application: 2 } as const
export type Space = (typeof Space)[keyof typeof Space]

/** How many there are. */
export const spaceCount = 3

/** The space that packets of `level` are numbered in: 0-RTT and 1-RTT share one. */
export function spaceOf(level: Level): Space {
  if (level === Level.initial) return Space.initial
  return level === Level.handshake ? Space.handshake : Space.application
}
