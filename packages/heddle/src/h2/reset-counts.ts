import { CodeCounts } from '../http/index.ts'
import { errorNames } from './frame.ts'

/** How many streams were reset, by the codes of RFC 9113 §7 and direction. One object may count for many connections. */
export class ResetCounts extends CodeCounts {
  constructor() {
    super(errorNames, 0)
  }
}
