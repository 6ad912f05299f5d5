import { Socket, type OnReadOpts } from 'node:net'

/** The read buffer of the thread: it is empty again when a read callback returns, so one does for all connections. */
let readBuffer: Buffer | undefined

/** Takes bytes `buffer[0, byteCount)`, which are valid during the call; false stops the socket from reading. */
export type TakeBytes = (byteCount: number, buffer: Uint8Array) => boolean

/** The `onread` option of `net.connect` with the thread's buffer. */
export function sharedReads(take: TakeBytes): OnReadOpts {
  readBuffer ??= Buffer.allocUnsafeSlow(65_536)
  return { buffer: readBuffer, callback: take }
}

interface Internals {
  readonly buffer: symbol
  readonly callback: symbol
}

interface Handle {
  useUserBuffer?(buffer: Uint8Array): void
}

/** Where sockets of this Node keep what `onread` sets; undefined: not where it is known to be. */
const internals = findInternals()

function findInternals(): Internals | undefined {
  const own = Object.getOwnPropertySymbols(new Socket())
  const named = (name: string): symbol | undefined => own.find(({ description }) => description === name)
  const buffer = named('kBuffer')
  const callback = named('kBufferCb')
  return buffer === undefined || callback === undefined ? undefined : { buffer, callback }
}

/**
 * Gives an accepted or secured socket what `onread` gives to one that connects: a buffer for every
 * read is 64 KiB of garbage, which costs a small request a fifth of its CPU time. Node has that option
 * for `net.connect` alone, so this sets by hand what it sets. Returns false, having done nothing, when
 * the socket does not look as expected; 'data' works then.
 */
export function shareReads(socket: Socket, take: TakeBytes): boolean {
  const handle = (socket as unknown as { _handle?: Handle | null })._handle
  if (internals === undefined || typeof handle?.useUserBuffer !== 'function') return false
  // Bytes that were read before stay in the socket and come as 'data'.
  if (socket.readableLength > 0 || socket.readableEnded) return false
  const { buffer, callback } = sharedReads(take)
  const fields = socket as unknown as Record<symbol, unknown>
  if (fields[internals.buffer] !== null) return false
  fields[internals.buffer] = buffer
  fields[internals.callback] = callback
  handle.useUserBuffer(buffer as Uint8Array)
  return true
}
