import { checkedLimits, clientLimits, type Http3Limits, type Http3Options } from '../h3/index.ts'
import { dialQuic, quicTlsFault, quicUnavailable, QuicTls, type QuicDialOptions, type TlsClientOptions } from '../io/index.ts'
import type { ClientOptions, QuicDialler } from './options.ts'

/** How a client connects by QUIC. */
export interface QuicSettings {
  readonly connect: QuicDialler
  readonly tls: QuicTls
  readonly quic: NonNullable<QuicDialOptions['quic']>
}

/** Why a client with these options cannot connect by QUIC, in words; undefined: it can. */
export function quicFault({ connect, connectQuic, socketPath, tls = {} }: ClientOptions): string | undefined {
  if (socketPath !== undefined) return 'a Unix socket carries no QUIC (socketPath)'
  const fault = quicTlsFault(tls)
  if (fault !== undefined || connectQuic !== undefined) return fault
  if (connect !== undefined) return 'connections are made by connect, and there is no connectQuic beside it'
  return quicUnavailable()
}

/** `limits`: those of the client's HTTP/3 connections. */
export function quicSettings({ connectQuic }: ClientOptions, tls: TlsClientOptions, { limits = {} }: Http3Options): QuicSettings {
  const { streamWindow, connectionWindow, maxWindow } = { ...clientLimits, ...limits }
  return {
    connect: connectQuic ?? dialQuic,
    tls: new QuicTls(tls),
    quic: {
      initialMaxStreamData: streamWindow,
      initialMaxData: connectionWindow,
      largestWindow: Math.max(maxWindow, connectionWindow),
      keepAlive: pingInterval,
      maxIdleTimeout: silence,
    },
  }
}

/** ms of silence while requests run, after which the server is asked whether it is there (PING) … */
const pingInterval = 15_000
/** … and after which the connection is dead. */
const silence = 30_000

/** A connection usually runs this many streams at once (RFC 9114 §6.1). */
const usualStreams = 100
/** A receive window holds no more, so that numbers stay exact. */
const largestWindow = 2 ** 40

/** The client's limits of HTTP/3: `shared` is what holds for every version. As with HTTP/2, a connection's window holds those of its streams. */
export function http3Limits(shared: Partial<Http3Limits>, given: Partial<Http3Limits> | undefined): Partial<Http3Limits> {
  const limits = { ...shared, ...(given === undefined ? {} : checkedLimits('Client', given)) }
  const { streamWindow = clientLimits.streamWindow } = limits
  return { connectionWindow: Math.min(streamWindow * usualStreams, largestWindow), ...limits }
}
