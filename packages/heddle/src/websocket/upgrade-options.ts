import type { DeflatePolicy } from '../ws/index.ts'
import type { CompressionOptions } from './codec.ts'
import { aFragmentSize, anObject, aSwitch, origins, subprotocols, type OptionChecks } from './option-checks.ts'
import type { SocketLimits } from './socket-options.ts'

/** How a server compresses: what it agrees to (RFC 7692), and how hard it tries. */
export interface UpgradeDeflate extends DeflatePolicy, CompressionOptions {
  /** Messages under this many bytes are sent uncompressed. Default 128 with context takeover, else 1,024. */
  readonly threshold?: number | undefined
}

/** Which web pages may open a WebSocket: `origin` is the Origin field, undefined when there is none; `host` the host that was asked, with its port if it has one. */
export type OriginCheck = (origin: string | undefined, host: string) => boolean

/** Chooses a subprotocol of those the client offers, its preferred one first; undefined: none. */
export type ProtocolChoice = (offered: readonly string[]) => string | undefined

/** How a server accepts a WebSocket. Times are in ms, sizes in bytes. */
export interface UpgradeOptions {
  /**
   * The subprotocols spoken here, the preferred one first: the first that the client offers too is chosen. Or
   * a function that chooses. Default: none. When nothing is chosen the handshake succeeds without one, and
   * browsers that offered some close.
   */
  readonly protocol?: string | readonly string[] | ProtocolChoice | undefined
  /**
   * The web pages that may connect, by their origin: `https://app.example.org`; `null` for those that have
   * none; `'*'` for all. Or a function that decides. Browsers send cookies along whatever the page, so a server
   * that lets strangers' pages in lets them speak for its users. Clients without an Origin field are no
   * browsers, and only a function can refuse them. Default: pages of the same host and port.
   */
  readonly origin?: string | readonly string[] | OriginCheck | undefined
  /** Agrees to permessage-deflate if the client offers it. It costs CPU time and memory for each connection. Default false. */
  readonly deflate?: boolean | UpgradeDeflate | undefined
  /** What one connection may cost, where it shall differ from the defaults. */
  readonly limits?: Partial<SocketLimits> | undefined
  /** Messages leave in frames of at most this many bytes. Default Infinity: one message, one frame. */
  readonly fragmentSize?: number | undefined
}

/** Every option, and what it can be. */
export const upgradeChecks: OptionChecks<UpgradeOptions> = {
  protocol: subprotocols,
  origin: origins,
  deflate: aSwitch,
  limits: anObject,
  fragmentSize: aFragmentSize,
}
