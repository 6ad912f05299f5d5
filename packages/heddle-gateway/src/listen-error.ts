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
  ENOTFOUND: 'that name has no address',
}

/** The system's error as a {@link ListenError}; what is no such error passes through. */
export function listenError(error: unknown, what: string, host: string, port: number): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  if (typeof code !== 'string' || error instanceof ListenError) return error
  return new ListenError(`${what} cannot listen on ${host.includes(':') ? `[${host}]` : host}:${port}: ${reasons[code] ?? message}`, code)
}
