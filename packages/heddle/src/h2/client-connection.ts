import type { ConnectionHandler, ConnectionInfo, Instant } from '../http/index.ts'
import { Connection } from './connection.ts'
import { clientLimits } from './limits.ts'
import type { Http2Options } from './options.ts'

/** The client's end of an HTTP/2 connection: many exchanges at once, as many as the server allows. */
export class ClientConnection extends Connection {
  constructor(info: ConnectionInfo, handler: ConnectionHandler, options: Http2Options, now: Instant) {
    super(false, info, handler, options.limits === undefined ? clientLimits : { ...clientLimits, ...options.limits }, options, now)
  }
}
