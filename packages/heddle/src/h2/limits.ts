import type { SectionLimits } from '../fieldcode/index.ts'
import { checkLimits, UsageError } from '../http/index.ts'
import { largestWindow } from './frame.ts'

/** Limits and time limits of one HTTP/2 connection. Every one is an option; times are in ms, sizes in bytes. */
export interface Http2Limits extends SectionLimits {
  /** Server: exchanges a client may have open at once (SETTINGS_MAX_CONCURRENT_STREAMS); Infinity: no limit is told. Default 100. On excess: REFUSED_STREAM. */
  readonly maxConcurrentStreams: number
  /** CONTINUATION frames of one field block. Default 8. On excess: ENHANCE_YOUR_CALM. */
  readonly maxContinuations: number
  /** Resets by the peer, and resets it provokes from us: this many at once … Default 200. On excess: GOAWAY ENHANCE_YOUR_CALM. */
  readonly resetBurst: number
  /** … and this many per second after that. Default 20. */
  readonly resetRate: number
  /** Frames that carry nothing (empty DATA, DATA that a client cut into octets, empty fragments, window updates under 64 bytes): at once. Default 1,000. */
  readonly emptyBurst: number
  /** … and per second. Default 100. */
  readonly emptyRate: number
  /** Acks and resets waiting for a peer that does not read. Default 1,000. On excess: the connection is dropped. */
  readonly maxQueuedControl: number
  /**
   * Heads, control frames and, on a server, copied content that one connection may pin. Default 16 MiB; on a server 160 KiB
   * for each of `maxConcurrentStreams` if that is more. On excess: the connection is closed.
   */
  readonly maxPinned: number
  /** Server: declared or received request content. Default Infinity. On excess: 413. */
  readonly maxContentLength: number
  /** From accept to the preface and SETTINGS, and from a HEADERS frame to the end of its block. Default 10 s. */
  readonly headTimeout: number
  /** From our SETTINGS to their acknowledgement. Default 10 s. On excess: SETTINGS_TIMEOUT. */
  readonly settingsTimeout: number
  /** No byte of content arrives although it is wanted. Default: server 30 s, client 60 s. On excess: the stream is reset. */
  readonly bodyTimeout: number
  /**
   * Server: how much of a request that nobody wants is read and thrown away behind its response. A small one
   * comes to its end so, and there are clients that take a reset for a failure. Default 256 KiB; what is
   * announced to be more is not waited for. On excess: the stream is reset with NO_ERROR.
   */
  readonly drainSize: number
  /** … and for how long. Default 500 ms. */
  readonly drainTimeout: number
  /** The peer gives no window, or does not read, while we hold content. Default 60 s. On excess: the stream is reset. */
  readonly sendTimeout: number
  /** Client: from the request sent to the final response's head. Default 60 s. */
  readonly responseTimeout: number
  /** Client: how long content is held back after `Expect: 100-continue`. Default 1 s. */
  readonly continueTimeout: number
  /** No exchange is open. Default: server 60 s, client 60 s. On excess: GOAWAY and close. */
  readonly idleTimeout: number
  /** Silence of a connection with open exchanges after which a PING asks whether the peer is there. Default 15 s. */
  readonly pingInterval: number
  /** Without an answer to the PING the connection is dead. Default 10 s. */
  readonly pingTimeout: number
  /** Receive window of a stream at first. Default 1 MiB. */
  readonly streamWindow: number
  /** Receive window of the connection at first. Default 4 MiB. */
  readonly connectionWindow: number
  /** What a receive window grows to with the bandwidth-delay product. Default 16 MiB. */
  readonly maxWindow: number
  /** Content queued to send on a stream, at which `sendData` returns false. Default 64 KiB. */
  readonly sendBuffer: number
  /** Octets of the dynamic tables of field compression, ours and what we use of the peer's. Default 4 KiB. */
  readonly headerTableSize: number
  /** Client: 1xx responses to one request. Default 100. On excess: the stream is reset. */
  readonly maxInformational: number
}

const common = {
  maxFieldLines: 100,
  maxFieldSectionSize: 65_536,
  maxFieldLineSize: 16_384,
  maxConcurrentStreams: 100,
  maxContinuations: 8,
  resetBurst: 200,
  resetRate: 20,
  emptyBurst: 1_000,
  emptyRate: 100,
  maxQueuedControl: 1_000,
  maxPinned: 16_777_216,
  maxContentLength: Infinity,
  headTimeout: 10_000,
  settingsTimeout: 10_000,
  sendTimeout: 60_000,
  responseTimeout: 60_000,
  continueTimeout: 1_000,
  idleTimeout: 60_000,
  pingInterval: 15_000,
  pingTimeout: 10_000,
  streamWindow: 1_048_576,
  connectionWindow: 4_194_304,
  maxWindow: 16_777_216,
  sendBuffer: 65_536,
  headerTableSize: 4_096,
  maxInformational: 100,
}

/** A server's limits when nothing is said. */
export const serverLimits: Http2Limits = Object.freeze({ ...common, bodyTimeout: 30_000, drainSize: 262_144, drainTimeout: 500 })
/** RFC 9113 §6.5.1: values of settings have 32 bits. */
export const largestSetting = 0xffff_ffff
/** What a handler may queue for one stream before it is asked to wait, with a piece that is more than that. */
const pinnedByStream = 163_840

/** A server's limits with those that are `given`. */
export function serverLimitsWith(given: Partial<Http2Limits>): Http2Limits {
  const limits = { ...serverLimits, ...given }
  if (given.maxPinned !== undefined) return limits
  return { ...limits, maxPinned: Math.max(limits.maxPinned, limits.maxConcurrentStreams * pinnedByStream) }
}

/** A client's limits when nothing is said. */
export const clientLimits: Http2Limits = Object.freeze({ ...common, bodyTimeout: 60_000, drainSize: 0, drainTimeout: 0 })

/** Limits that a face was given, checked: names, and what can be said on the wire. Throws UsageError. */
export function checkedLimits(face: string, given: Partial<Http2Limits>): Partial<Http2Limits> {
  const limits = checkLimits<Http2Limits>(face, 'http2', given, serverLimits)
  const { maxConcurrentStreams = Infinity } = limits
  if (maxConcurrentStreams !== Infinity && !Number.isInteger(maxConcurrentStreams)) {
    throw new UsageError(`${face}: http2.maxConcurrentStreams must be a whole number, or Infinity`)
  }
  // RFC 9113 §6.9.1
  for (const name of ['streamWindow', 'connectionWindow', 'maxWindow'] as const) check(name, limits[name], 1, largestWindow)
  check('headerTableSize', limits.headerTableSize, 0, largestSetting)
  return limits

  function check(name: string, value: number | undefined, least: number, most: number): void {
    if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return
    throw new UsageError(`${face}: http2.${name} must be a whole number from ${least} to ${most.toLocaleString('en')}`)
  }
}
