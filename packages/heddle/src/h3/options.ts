import type { Http3Limits } from './limits.ts'
import type { ResetCounts } from './reset-counts.ts'

/** What the owner of an HTTP/3 connection may choose; everything has a default. */
export interface Http3Options {
  /** Limits that differ from `serverLimits` or `clientLimits`. */
  readonly limits?: Partial<Http3Limits>
  /** Server: SETTINGS_ENABLE_CONNECT_PROTOCOL is sent (RFC 9220). Default false. */
  readonly extendedConnect?: boolean
  /** Server: where the `date` field comes from when the handler gave none. Default: no such field is added. */
  readonly date?: { httpDate(): string } | undefined
  /** Server: origins (`https://a.test`) this connection answers for, told in an ORIGIN frame (RFC 9412). Default: none is sent. */
  readonly origins?: readonly string[]
  /** Counts streams that are reset, here or there. Default: nobody counts. */
  readonly resets?: ResetCounts | undefined
}
