import { CancelledError, CancelReason, NetworkError, PeerError, type HeddleError } from '../http/index.ts'

/** The same error, with the certainty that the server has seen nothing of the request. */
export function unprocessed(error: HeddleError): HeddleError {
  if (error.unprocessed) return error
  if (error instanceof CancelledError) return new CancelledError(error.reason, error.message, { cause: error.cause, unprocessed: true })
  if (error instanceof NetworkError) return new NetworkError(error.code, error.message, { cause: error, unprocessed: true })
  if (error instanceof PeerError) return new PeerError(error.code, error.message, { cause: error, unprocessed: true })
  return error
}

/** True if the rest of the response may be read quietly: nothing is wrong with the server or the response. */
export function isHarmless(error: HeddleError): boolean {
  if (!(error instanceof CancelledError)) return false
  const { reason } = error
  return reason !== CancelReason.Timeout && reason !== CancelReason.ExcessiveLoad && reason !== CancelReason.MessageError
}
