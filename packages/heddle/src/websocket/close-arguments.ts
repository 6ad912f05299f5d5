import { isCloseCode } from '../ws/index.ts'

/** RFC 6455 §5.5: a control frame has 125 bytes, of which the code takes two. */
const mostReason = 123

/**
 * What `close(code, reason)` comes to (WHATWG WebSockets §3.1, and Web IDL). `anyCode`: every code that may be in
 * a Close will do, as for a server. Throws an InvalidAccessError for a code, a SyntaxError for a reason that will not.
 */
export function closeArguments(code: unknown, reason: unknown, anyCode: boolean): [code: number | undefined, reason: string | undefined] {
  const text = reason === undefined ? undefined : String(reason).toWellFormed()
  let number: number | undefined
  if (code !== undefined) {
    number = clamped(Number(code))
    const isFit = number === 1000 || (number >= 3000 && number <= 4999) || (anyCode && isCloseCode(number))
    if (!isFit) {
      const what = anyCode ? 'may not be sent' : 'is neither 1000 nor 3000 to 4999'
      throw new DOMException(`WebSocket: the close code ${number} ${what}`, 'InvalidAccessError')
    }
  }
  if (text !== undefined && Buffer.byteLength(text) > mostReason) {
    throw new DOMException(`WebSocket: the reason has more than ${mostReason} bytes`, 'SyntaxError')
  }
  // A Close cannot have a reason without a code.
  return [number ?? (text === undefined || text === '' ? undefined : 1000), text]
}

/** Web IDL §3.3.6: `[Clamp] unsigned short`; halves go to the even number. */
function clamped(value: number): number {
  if (Number.isNaN(value)) return 0
  const bounded = Math.min(Math.max(value, 0), 65_535)
  const floor = Math.floor(bounded)
  const isHalf = bounded - floor === 0.5
  return isHalf ? floor + (floor % 2) : Math.round(bounded)
}
