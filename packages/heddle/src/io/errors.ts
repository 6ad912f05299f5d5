import { HeddleError, NetworkError, PeerError } from '../http/index.ts'

/** Its `code`, or an empty text. */
export function codeOf(error: unknown): string {
  return error instanceof Error ? String((error as NodeJS.ErrnoException).code ?? '') : ''
}

/** What is wrong, for people: the message and the code that is not in it. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = codeOf(error)
  // OpenSSL's own form is `40F7…:error:0A000412:SSL routines:ssl3_read_bytes:…:file:line:`; its `reason` is what a person wants.
  const text = (error as { reason?: string }).reason ?? error.message
  return code === '' || text.includes(code) ? text : `${text} (${code})`
}

/** A socket's error as the engines get it. */
export function transportError(error: unknown): HeddleError {
  const code = codeOf(error)
  const facts = { cause: error }
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === 'ECONNABORTED') {
    return new PeerError('PEER_RESET', `the peer reset the connection: ${describe(error)}`, facts)
  }
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS'))
    return new NetworkError('TLS_FAILED', `TLS failed: ${describe(error)}`, facts)
  return new NetworkError('NETWORK_ERROR', `the connection failed: ${describe(error)}`, facts)
}
