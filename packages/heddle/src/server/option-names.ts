import type { OptionNames } from '../http/index.ts'
import type { ServeOptions } from './options.ts'

/** Every option of `serve`. */
export const serveOptionNames: OptionNames<ServeOptions> = {
  port: true,
  hostname: true,
  path: true,
  tls: true,
  fetch: true,
  onExchange: true,
  protocols: true,
  limits: true,
  http2: true,
  http3: true,
  altSvc: true,
  origins: true,
  halfOpen: true,
  maxConnections: true,
  maxHandshakes: true,
  handshakeTimeout: true,
  upgrades: true,
  extendedConnect: true,
  websocket: true,
  websocketAccept: true,
  onError: true,
  clock: true,
  listen: true,
  backlog: true,
  reusePort: true,
  quicKey: true,
  exclusive: true,
}
