/** Enough for OpenSSL's own frames and the callbacks within: some 100 octets a frame, four times what they were seen to need. */
const frames = 600

/**
 * Throws RangeError where little of the stack is left. Inside a callback of native code it would be too late: there a
 * throw ends the process, and a function that is called at the end of the stack throws before its first statement.
 */
export function needStack(): void {
  descend(frames)
}

function descend(left: number): number {
  return left === 0 ? 0 : descend(left - 1) + 1
}
