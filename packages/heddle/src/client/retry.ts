import { isIdempotent, type HeddleError } from '../http/index.ts'
import { mostMoves, type Ticket } from './ticket.ts'

/**
 * The one rule of sending again: what was certainly not acted on, whatever its method; or what is
 * idempotent (RFC 9110 §9.2.2) and met a kept-alive connection that died before any byte of a
 * response (RFC 9112 §9.3.1). Never anything else. `ticket` is that of an attempt which had a
 * connection (where none was to be had, the pool has tried what can be tried) and whose content can
 * be sent again from its beginning.
 */
export function mayRetry(error: HeddleError, method: string, ticket: Ticket): boolean {
  if (ticket.responded) return false
  // The pool has sent it to as many connections as is good for the server.
  if (error.unprocessed) return error.code !== 'CANCELLED' && error.code !== 'SHUTDOWN' && ticket.moves < mostMoves
  // RST_STREAM is an answer of a sort: the connection lives, and the server has seen the request.
  if (!ticket.reused || !isIdempotent(method) || error.scope === 'stream') return false
  // The end of a QUIC connection from which nothing comes any more is IDLE_TIMEOUT.
  return error.code === 'IDLE_TIMEOUT' || error.code === 'PEER_CLOSED' || error.code === 'PEER_RESET' || error.code === 'NETWORK_ERROR'
}
