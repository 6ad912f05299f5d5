import { CodeCounts } from '../http/index.ts'
import { ErrorCode, errorNames } from './frame.ts'

/**
 * How many streams were reset, or not read to their end, by the codes of RFC 9114 §8.1 and direction. One object may
 * count for many connections.
 */
export class ResetCounts extends CodeCounts {
  constructor() {
    super(errorNames, ErrorCode.NoError)
  }
}
