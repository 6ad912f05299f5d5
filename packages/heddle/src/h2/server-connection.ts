import type { ConnectionHandler, ConnectionInfo, Instant } from '../http/index.ts'
import { Connection } from './connection.ts'
import { serverLimits, serverLimitsWith } from './limits.ts'
import type { Http2Options } from './options.ts'
import { stageOrigins } from './origin.ts'

/** The server's end of an HTTP/2 connection. */
export class ServerConnection extends Connection {
  constructor(info: ConnectionInfo, handler: ConnectionHandler, options: Http2Options, now: Instant) {
    super(true, info, handler, options.limits === undefined ? serverLimits : serverLimitsWith(options.limits), options, now)
    if (options.origins !== undefined) stageOrigins(this.sender.staging, options.origins)
  }
}
