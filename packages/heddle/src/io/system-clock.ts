import type { Clock } from './clock.ts'

/** The clock of this thread; always the same object. */
export function systemClock(): Clock {
  throw new Error('under construction')
}
