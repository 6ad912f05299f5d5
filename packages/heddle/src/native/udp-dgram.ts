import type { RemoteInfo, Socket } from 'node:dgram'
import { systemError } from './libc.ts'
import { largestDatagram, type Udp, type UdpAddress, type UdpHandler, type UdpOptions, type UdpPort } from './types.ts'
import { addresses, addressSocket, checkSend, listening, SocketPort } from './udp-port.ts'
import { Address } from './udp-address.ts'

const slots = 32
const none = new Uint8Array(0)

/** A port by `dgram` alone: a call of the system for every datagram, and no ECN. */
class DgramPort extends SocketPort {
  readonly sendsEcn = false
  readonly waitingWhenWritable = 64
  readonly isIpv6: boolean
  /** What came in this turn of the event loop. */
  buffer: Uint8Array
  count: number
  readonly lengths: Uint16Array
  readonly peers: Address[]

  constructor(socket: Socket, isIpv6: boolean, options: UdpOptions, handler: UdpHandler) {
    super(socket, options, handler)
    this.isIpv6 = isIpv6
    this.buffer = none
    this.count = 0
    this.lengths = new Uint16Array(slots)
    this.peers = []
    socket.on('message', (message, from) => {
      this.#onMessage(message, from)
    })
  }

  offset(index: number): number {
    return index * largestDatagram
  }

  length(index: number): number {
    return this.lengths[index]!
  }

  ecn(_index: number): number {
    return -1
  }

  peer(index: number): UdpAddress {
    return this.peers[index]!
  }

  /** Datagrams are told of a turn at a time, so that one answer serves them all. */
  #onMessage(message: Buffer, from: RemoteInfo): void {
    if (this.closed || message.length > largestDatagram) return
    const peer = addresses.parse(from.address, from.port)
    // What came before the socket was connected.
    if (this.remote !== undefined && !this.remote.equals(peer)) return
    if (this.count === 0) {
      if (this.buffer.length === 0) this.buffer = new Uint8Array(slots * largestDatagram)
      setImmediate(this.#deliver)
    }
    this.buffer.set(message, this.count * largestDatagram)
    this.lengths[this.count] = message.length
    this.peers[this.count] = peer
    this.count++
    if (this.count === slots) this.#deliver()
  }

  readonly #deliver = (): void => {
    const { count } = this
    this.count = 0
    if (count === 0 || this.closed) return
    this.counters.received += count
    this.counters.batches++
    this.handler.onBatch(this, count)
  }

  send(peer: UdpAddress, buffer: Uint8Array, start: number, limit: number, segmentSize: number, ecn: number): number {
    checkSend(buffer, start, limit, segmentSize, ecn)
    if (this.closed || !(peer instanceof Address)) return 0
    const taken = this.enqueue(peer, buffer, start, limit, segmentSize)
    this.counters.sendCalls += taken
    if (this.waiting > 256) this.blocked = true
    return taken
  }
}

/** UDP by `dgram` alone: where there are no calls for batches, or no `node:ffi`. */
export class DgramUdp implements Udp {
  readonly batches = false

  address(host: string, port: number): UdpAddress {
    return addresses.parse(host, port)
  }

  async bind(options: UdpOptions, handler: UdpHandler): Promise<UdpPort> {
    if (options.host !== undefined) return this.#bind(options.host, options, handler)
    try {
      return await this.#bind('::', options, handler)
    } catch (error) {
      if (!isWithoutIpv6(error)) throw error
      return this.#bind('0.0.0.0', options, handler)
    }
  }

  async #bind(host: string, options: UdpOptions, handler: UdpHandler): Promise<UdpPort> {
    const isIpv6 = host.includes(':')
    // Refuses what is no address, before anything is opened.
    addresses.parse(host, options.port ?? 0)
    const socket = addressSocket(isIpv6, options)
    try {
      await listening(socket, () => socket.bind({ port: options.port ?? 0, address: host, exclusive: true }))
    } catch (error) {
      const { errno, syscall } = error as NodeJS.ErrnoException
      throw errno === undefined || syscall === undefined ? error : systemError(-errno, syscall, host, options.port)
    }
    try {
      socket.setRecvBufferSize(options.receiveBufferSize ?? defaultBufferSize)
      socket.setSendBufferSize(options.sendBufferSize ?? defaultBufferSize)
    } catch {
      // The system's own size must do.
    }
    const port = new DgramPort(socket, isIpv6, options, handler)
    try {
      await port.open()
    } catch (error) {
      await port.close()
      throw error
    }
    return port
  }
}

export const defaultBufferSize: number = 2 * 2 ** 20

/** The machine has no IPv6. */
export function isWithoutIpv6(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL'
}
