/** A listener that could not be set up, in words for the person who started the gateway. */
export class ListenError extends Error {
  /** The system's code: `EADDRINUSE`, `EACCES`, … */
  readonly code: string

  constructor(message: string, code: string) {
    super(message)
    this.name = 'ListenError'
    this.code = code
  }
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there',
  EACCES: 'this user may not (ports below 1024 need privileges)',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTSUP: 'processes cannot share a port of UDP here, so that HTTP/3 takes "workers: 1"',
  ENOTFOUND: 'that name has no address',
}

/**
 * The system's error as a {@link ListenError}; what is no such error passes through. `names`: of the calls of the system
 * only that for UDP is named bind, which is so in a process that shares its ports with no other.
 */
export function listenError(error: unknown, what: string, host: string, port: number, names = false): unknown {
  const { code, message, syscall } = error as NodeJS.ErrnoException
  if (typeof code !== 'string' || error instanceof ListenError) return error
  const place = `${host.includes(':') ? `[${host}]` : host}:${port}${names && syscall === 'bind' ? ' (UDP)' : ''}`
  return new ListenError(`${what} cannot listen on ${place}: ${reasons[code] ?? message}`, code)
}
