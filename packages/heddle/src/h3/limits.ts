import type { SectionLimits } from '../fieldcode/index.ts'
import { checkLimits, UsageError } from '../http/index.ts'

/** Limits and time limits of one HTTP/3 connection. Every one is an option; times are in ms, sizes in bytes. */
export interface Http3Limits extends SectionLimits {
  /** Server: exchanges a client may have open at once, which QUIC tells it (RFC 9000 §4.6). Default 100. On excess: H3_REQUEST_REJECTED. */
  readonly maxConcurrentStreams: number
  /** Resets by the peer, and resets it provokes from us: this many at once … Default 200. On excess: H3_EXCESSIVE_LOAD. */
  readonly resetBurst: number
  /** … and this many per second after that. Default 20. */
  readonly resetRate: number
  /** Frames that carry nothing (empty DATA, DATA that a client cut into octets, unknown frames and streams, changes of priority): at once. Default 1,000. */
  readonly emptyBurst: number
  /** … and per second. Default 100. */
  readonly emptyRate: number
  /**
   * Field blocks that are not complete and, on a server, copied content that waits to be sent, of one connection. Default 16 MiB;
   * on a server 160 KiB for each of `maxConcurrentStreams` if that is more. On excess: the connection is closed.
   */
  readonly maxPinned: number
  /** Server: declared or received request content. Default Infinity. On excess: 413. */
  readonly maxContentLength: number
  /** Server: from the first octet of a request to its whole head. Default 10 s. On excess: the stream is reset. */
  readonly headTimeout: number
  /** Until the peer's SETTINGS are here. Default 10 s. On excess: H3_MISSING_SETTINGS. */
  readonly settingsTimeout: number
  /** No byte of content arrives although it is wanted. Default: server 30 s, client 60 s. On excess: the stream is reset. */
  readonly bodyTimeout: number
  /** The peer gives no window, or does not acknowledge, while we hold content. Default 60 s. On excess: the stream is reset. */
  readonly sendTimeout: number
  /** Client: from the request sent to the final response's head. Default 60 s. */
  readonly responseTimeout: number
  /** Client: how long content is held back after `Expect: 100-continue`. Default 1 s. */
  readonly continueTimeout: number
  /** No exchange is open. Default: server 60 s, client 60 s. On excess: GOAWAY and close. */
  readonly idleTimeout: number
  /** Receive window of a stream at first. Default 1 MiB. */
  readonly streamWindow: number
  /** Receive window of the connection at first. Default 4 MiB. */
  readonly connectionWindow: number
  /** What a receive window grows to with the bandwidth-delay product, and what may be sent and not acknowledged. Default 16 MiB. */
  readonly maxWindow: number
  /** Content queued to send on a stream, at which `sendData` returns false. Default 64 KiB. */
  readonly sendBuffer: number
  /** Octets of the dynamic tables of field compression, ours and what we use of the peer's. Default 4 KiB. */
  readonly headerTableSize: number
  /** Streams that may wait for a table entry that is under way (SETTINGS_QPACK_BLOCKED_STREAMS). Default 16. */
  readonly blockedStreams: number
  /** Client: 1xx responses to one request. Default 100. On excess: the stream is reset. */
  readonly maxInformational: number
}

const common = {
  maxFieldLines: 100,
  maxFieldSectionSize: 65_536,
  maxFieldLineSize: 16_384,
  maxConcurrentStreams: 100,
  resetBurst: 200,
  resetRate: 20,
  emptyBurst: 1_000,
  emptyRate: 100,
  maxPinned: 16_777_216,
  maxContentLength: Infinity,
  headTimeout: 10_000,
  settingsTimeout: 10_000,
  sendTimeout: 60_000,
  responseTimeout: 60_000,
  continueTimeout: 1_000,
  idleTimeout: 60_000,
  streamWindow: 1_048_576,
  connectionWindow: 4_194_304,
  maxWindow: 16_777_216,
  sendBuffer: 65_536,
  headerTableSize: 4_096,
  blockedStreams: 16,
  maxInformational: 100,
}

/** A server's limits when nothing is said. */
export const serverLimits: Http3Limits = Object.freeze({ ...common, bodyTimeout: 30_000 })
/** A client's limits when nothing is said. */
export const clientLimits: Http3Limits = Object.freeze({ ...common, bodyTimeout: 60_000 })

/** What a handler may queue for one stream before it is asked to wait, with a piece that is more than that. */
const pinnedByStream = 163_840

/** A server's limits with those that are `given`. */
export function serverLimitsWith(given: Partial<Http3Limits>): Http3Limits {
  const limits = { ...serverLimits, ...given }
  if (given.maxPinned !== undefined) return limits
  return { ...limits, maxPinned: Math.max(limits.maxPinned, limits.maxConcurrentStreams * pinnedByStream) }
}

/** Limits that a face was given, checked: names, and what can be said on the wire. Throws UsageError. */
export function checkedLimits(face: string, given: Partial<Http3Limits>): Partial<Http3Limits> {
  const limits = checkLimits<Http3Limits>(face, 'http3', given, serverLimits)
  for (const name of ['streamWindow', 'connectionWindow', 'maxWindow'] as const) check(name, limits[name], 1)
  for (const name of ['maxConcurrentStreams', 'headerTableSize', 'blockedStreams'] as const) check(name, limits[name], 0)
  return limits

  function check(name: string, value: number | undefined, least: number): void {
    if (value === undefined || (Number.isSafeInteger(value) && value >= least)) return
    throw new UsageError(`${face}: http3.${name} must be a whole number of at least ${least}`)
  }
}
