/**
 * Tells of what the program threw where nobody waits for an answer, such as a handler's last call: a warning of the
 * process, type `HeddleWarning`, with the stack. For faces that have no `onError`.
 */
export function warnOfFault(cause: unknown): void {
  process.emitWarning(cause instanceof Error ? (cause.stack ?? String(cause)) : `a handler threw ${describe(cause)}`, 'HeddleWarning')
}

/** Whatever was thrown, as text; what cannot be turned into text must not throw once more. */
function describe(thrown: unknown): string {
  try {
    return String(thrown)
  } catch {
    return typeof thrown
  }
}
