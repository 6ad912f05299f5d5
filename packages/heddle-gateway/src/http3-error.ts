import { quicUnavailable } from 'heddle/io'
import type { Config } from './config/index.ts'

/** HTTP/3 was asked for, and this process has no QUIC: the message says who asked, and what is missing. */
export class Http3Error extends Error {
  readonly code = 'QUIC_UNAVAILABLE'

  constructor(message: string) {
    super(message)
    this.name = 'Http3Error'
  }
}

/**
 * Throws {@link Http3Error} if `config` wants HTTP/3 and it is not to be had here: who asked for it shall not be left with
 * less. `obstacle`: why there is none; undefined: there is.
 */
export function checkHttp3({ listeners, clusters }: Config, obstacle: string | undefined = quicUnavailable()): void {
  if (obstacle === undefined) return
  const listener = listeners.find(({ protocols }) => protocols.includes('h3'))
  if (listener !== undefined) throw new Http3Error(`listener ${listener.name} cannot serve HTTP/3: ${obstacle}`)
  const cluster = clusters.find(({ protocol }) => protocol === 'h3')
  if (cluster !== undefined) throw new Http3Error(`cluster ${cluster.name} cannot be spoken to in HTTP/3: ${obstacle}`)
}
