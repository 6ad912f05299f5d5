import type { Fields } from './fields.ts'
import { trimBlanks } from './validation.ts'

/** What a client expects of a server (RFC 9110 §10.1.1): nothing, `100-continue`, or something that is not known. */
export type Expectation = 'none' | 'continue' | 'unknown'

/**
 * What `fields` expect. One member that is not `100-continue`, in any of the lines, makes it 'unknown': the answer
 * to that is 417 (Expectation Failed).
 */
export function expectationOf(fields: Fields): Expectation {
  let expectation: Expectation = 'none'
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] !== 'expect') continue
    for (const member of (fields[i + 1] as string).split(',')) {
      const name = trimBlanks(member)
      // RFC 9110 §5.6.1.2: empty members of a list count for nothing.
      if (name === '') continue
      if (name.toLowerCase() !== '100-continue') return 'unknown'
      expectation = 'continue'
    }
  }
  return expectation
}
