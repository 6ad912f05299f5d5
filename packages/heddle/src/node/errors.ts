/** An error with the code Node's own classes give it, which frameworks look at. */
export function nodeError(code: string, message: string, make: new (message: string) => Error = Error): Error & { code: string } {
  const error = new make(message) as Error & { code: string }
  error.code = code
  return error
}

export function headersSent(what: string): Error {
  return nodeError('ERR_HTTP_HEADERS_SENT', `Cannot ${what} headers after they are sent to the client`)
}

export function writeAfterEnd(): Error {
  return nodeError('ERR_STREAM_WRITE_AFTER_END', 'write after end')
}

export function streamDestroyed(): Error {
  return nodeError('ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed')
}

/** What a request stream is destroyed with when the client has gone. */
export function aborted(cause: unknown): Error {
  const error = nodeError('ECONNRESET', 'aborted')
  error.cause = cause
  return error
}
