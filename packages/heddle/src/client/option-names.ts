import type { OptionNames } from '../http/index.ts'
import type { ClientOptions } from './options.ts'

/** Every option of `Client`. */
export const clientOptionNames: OptionNames<ClientOptions> = {
  maxConnectionsPerOrigin: true,
  maxConnections: true,
  maxWaitingPerOrigin: true,
  connectTimeout: true,
  queueTimeout: true,
  totalTimeout: true,
  limits: true,
  originLifetime: true,
  tls: true,
  lookup: true,
  family: true,
  localAddress: true,
  socketPath: true,
  proxy: true,
  clock: true,
  connect: true,
}
