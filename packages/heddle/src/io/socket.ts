/**
 * The part of `net.Socket` and `tls.TLSSocket` the driver uses. The seeded world's links have the
 * same shape, so tests run the driver that production runs.
 */
export interface SocketLike {
  write(chunk: Uint8Array, done?: (error?: Error | null) => void): boolean
  /** Bytes taken by `write` and not yet by the kernel. */
  readonly writableLength: number
  readonly destroyed: boolean
  /** FIN after what was written. */
  end(): unknown
  destroy(): unknown
  /** RST. Absent, or throws, where there is no TCP right below: TLS, Unix sockets. */
  resetAndDestroy?(): unknown
  pause(): unknown
  resume(): unknown
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown
  on(event: 'end' | 'close' | 'drain' | 'finish', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Counts for the process: it goes on while such a socket is there. So it is at first. */
  ref?(): unknown
  /** Does not keep the process running. */
  unref?(): unknown
  /** Needed only where a driver is detached. */
  off?(event: string, listener: (value: any) => void): unknown
}

/** Drops the connection at once, with RST where that can be done. */
export function resetSocket(socket: SocketLike): void {
  try {
    if (socket.resetAndDestroy !== undefined) {
      socket.resetAndDestroy()
      return
    }
  } catch {
    // Not TCP.
  }
  socket.destroy()
}
