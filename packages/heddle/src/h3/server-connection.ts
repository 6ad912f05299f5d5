import type { ConnectionHandler, ConnectionInfo, Instant } from '../http/index.ts'
import { Connection } from './connection.ts'
import { serverLimits, serverLimitsWith } from './limits.ts'
import type { Http3Options } from './options.ts'
import type { QuicTransport } from './transport.ts'

/** The server's end of an HTTP/3 connection. */
export class ServerConnection extends Connection {
  constructor(info: ConnectionInfo, handler: ConnectionHandler, transport: QuicTransport, options: Http3Options, now: Instant) {
    const limits = options.limits === undefined ? serverLimits : serverLimitsWith(options.limits)
    super(true, info, handler, transport, limits, options, now)
  }
}
