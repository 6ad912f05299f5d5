/** A server's word on how long it keeps idle connections is believed up to this, in ms. */
const longestHint = 600_000
const shortest = 1_000

/**
 * How long a client keeps a connection idle after a response with this Keep-Alive value: a second less
 * than the server says, so that no request meets its FIN; `otherwise` (ms) where it says nothing.
 */
export function idleTimeoutFor(keepAlive: string, otherwise: number): number {
  if (keepAlive === '') return otherwise
  const hint = /(?:^|[, \t])timeout[ \t]*=[ \t]*"?(\d{1,9})/i.exec(keepAlive)
  return hint === null ? otherwise : Math.min(longestHint, Math.max(shortest, Number(hint[1]) * 1_000 - 1_000))
}
