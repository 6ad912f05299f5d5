import type { ConnectionHandler, ConnectionInfo, Instant } from '../http/index.ts'
import { Connection } from './connection.ts'
import { clientLimits } from './limits.ts'
import type { Http3Options } from './options.ts'
import type { QuicTransport } from './transport.ts'

/** The client's end of an HTTP/3 connection: many exchanges at once, as many as the server allows. */
export class ClientConnection extends Connection {
  constructor(info: ConnectionInfo, handler: ConnectionHandler, transport: QuicTransport, options: Http3Options, now: Instant) {
    const limits = options.limits === undefined ? clientLimits : { ...clientLimits, ...options.limits }
    super(false, info, handler, transport, limits, options, now)
  }
}
