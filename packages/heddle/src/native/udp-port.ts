import { createSocket, type Socket } from 'node:dgram'
import { isSpan } from './suites.ts'
import type { UdpAddress, UdpCounters, UdpHandler, UdpOptions, UdpPort } from './types.ts'
import { type Address, AddressTable } from './udp-address.ts'

/** Datagrams that may wait for room in the system; what goes beyond is dropped, for the caller did not heed `blocked`. */
const largestQueue = 1024
/** The largest payload of UDP over IPv4. */
const largestPayload = 65_507

/** Addresses of this thread. */
export const addresses: AddressTable = new AddressTable()

/**
 * What all ports have: a `dgram` socket that holds the descriptor, says when it is readable, and takes datagrams one by
 * one. It serves as the only way to send where there are no batches, and as the waiting line where there are.
 */
export abstract class SocketPort implements UdpPort {
  abstract readonly sendsEcn: boolean
  abstract readonly buffer: Uint8Array
  readonly counters: UdpCounters
  readonly handler: UdpHandler
  readonly remote: Address | undefined
  readonly socket: Socket
  local: Address
  blocked: boolean
  closed: boolean
  /** Datagrams that `socket` has and has not yet sent. */
  waiting: number
  #error: NodeJS.ErrnoException | undefined
  #closing: Promise<void> | undefined
  #connected: boolean

  constructor(socket: Socket, options: UdpOptions, handler: UdpHandler) {
    this.counters = { sent: 0, sendCalls: 0, dropped: 0, received: 0, batches: 0 }
    this.handler = handler
    this.remote = options.remote as Address | undefined
    this.socket = socket
    this.local = addresses.of(4, 0, 0, 0, 0, 0, 0)
    this.blocked = false
    this.closed = false
    this.waiting = 0
    this.#error = undefined
    this.#closing = undefined
    this.#connected = false
  }

  abstract offset(index: number): number
  abstract length(index: number): number
  abstract ecn(index: number): number
  abstract peer(index: number): UdpAddress
  abstract send(peer: UdpAddress, buffer: Uint8Array, start: number, limit: number, segmentSize: number, ecn: number): number

  /** The socket has its descriptor: learns the local address, and connects to the only peer if there is one. */
  async open(): Promise<void> {
    const { socket, remote } = this
    if (remote !== undefined) {
      await new Promise<void>((resolve, reject) => {
        // `dgram` hands a failure to the same function, which its types do not know.
        socket.connect(remote.port, this.hostFor(remote), (error?: Error) => {
          if (error === undefined) resolve()
          else reject(error)
        })
      })
      this.#connected = true
    }
    const { address, port } = socket.address()
    this.local = addresses.parse(address, port)
    // For as long as the socket lives, even closed: an 'error' that nobody listens to would end the process.
    socket.on('error', (error) => {
      this.report(error)
    })
  }

  /** An address as this socket's family writes it. */
  hostFor(address: Address): string {
    return this.isIpv6 ? address.mappedHost : address.host
  }

  abstract readonly isIpv6: boolean

  /** Gives datagrams to `socket` one by one, as copies. Returns how many it took. */
  enqueue(peer: Address, buffer: Uint8Array, start: number, limit: number, segmentSize: number): number {
    const { socket } = this
    const host = this.hostFor(peer)
    let count = 0
    for (let at = start; at < limit; at += segmentSize) {
      if (this.waiting >= largestQueue) {
        this.counters.dropped += Math.ceil((limit - at) / segmentSize)
        break
      }
      const copy = Buffer.from(buffer.subarray(at, Math.min(at + segmentSize, limit)))
      this.waiting++
      count++
      try {
        if (this.#connected) socket.send(copy, 0, copy.length, this.#onSent)
        else socket.send(copy, 0, copy.length, peer.port, host, this.#onSent)
      } catch (error) {
        setImmediate(this.#onSent, error as Error)
      }
    }
    return count
  }

  readonly #onSent = (error: Error | null): void => {
    this.waiting--
    if (error !== null) {
      this.counters.dropped++
      if ((error as NodeJS.ErrnoException).code !== 'EMSGSIZE') this.report(error)
    } else {
      this.counters.sent++
    }
    if (this.blocked && this.waiting <= this.waitingWhenWritable) {
      this.blocked = false
      if (!this.closed) this.handler.onWritable(this)
    }
  }

  /** At how many waiting datagrams `blocked` ends. */
  abstract readonly waitingWhenWritable: number

  /** Tells the handler, later and once a turn: `send` calls nobody back. */
  report(error: NodeJS.ErrnoException): void {
    const isFirst = this.#error === undefined
    this.#error = error
    if (!isFirst) return
    setImmediate(() => {
      const told = this.#error
      this.#error = undefined
      if (!this.closed && told !== undefined) this.handler.onError(this, told)
    })
  }

  ref(): void {
    if (!this.closed) this.socket.ref()
  }

  unref(): void {
    if (!this.closed) this.socket.unref()
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.closed = true
      this.socket.close(() => {
        resolve()
      })
    })
    return this.#closing
  }
}

/** Asserts what `send` is given, for addresses are made of it. */
export function checkSend(buffer: Uint8Array, start: number, limit: number, segmentSize: number, ecn: number): void {
  if (!isSpan(start, start, limit, buffer.length)) throw new RangeError('send: outside of the buffer')
  if (!Number.isInteger(segmentSize) || segmentSize < 1 || segmentSize > largestPayload)
    throw new RangeError(`${segmentSize} octets are no datagram`)
  if (ecn !== 0 && ecn !== 1 && ecn !== 2 && ecn !== 3) throw new RangeError(`${ecn} is no ECN field`)
}

/** A `dgram` socket that asks no resolver: it is given addresses only. */
export function addressSocket(isIpv6: boolean, options: UdpOptions): Socket {
  return createSocket({
    type: isIpv6 ? 'udp6' : 'udp4',
    ipv6Only: options.ipv6Only ?? false,
    reusePort: options.reusePort ?? false,
    lookup: (host, _options, done) => {
      done(null, host, isIpv6 ? 6 : 4)
    },
  })
}

/** Binds the socket by `bind`'s own means; rejects with the system's error, and the socket is then closed. */
export function listening(socket: Socket, bind: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error): void => {
      socket.close()
      reject(error)
    }
    socket.once('error', failed)
    socket.once('listening', () => {
      socket.off('error', failed)
      resolve()
    })
    try {
      bind()
    } catch (error) {
      socket.off('error', failed)
      socket.close()
      reject(error as Error)
    }
  })
}
