import type { RemoteInfo, Socket } from 'node:dgram'
import type { NativeLibrary } from './ffi.ts'
import { Errno, LibC, Linux, systemError } from './libc.ts'
import { Memory } from './memory.ts'
import { largestDatagram, type Udp, type UdpAddress, type UdpHandler, type UdpOptions, type UdpPort } from './types.ts'
import { Address } from './udp-address.ts'
import { defaultBufferSize, DgramUdp, isWithoutIpv6 } from './udp-dgram.ts'
import { messageCount, ReceiveRing, SendList, writeSockaddr } from './udp-messages.ts'
import { addresses, addressSocket, checkSend, listening, SocketPort } from './udp-port.ts'

/** Datagrams that the kernel cuts one buffer into at most: UDP_MAX_SEGMENTS of all kernels that have it. */
const largestSegmentCount = 64
/** Octets of one buffer that is to be cut: below what a UDP length over IPv4 or IPv6 can say. */
const largestCut = 65_000
/** Calls for one event; `dgram` makes up to 32 events of one turn, and what is left then waits for the next. */
const roundsPerTurn = 2

/** What the ports of a thread share: a call is over before the next one starts. */
class Calls {
  readonly libc: LibC
  readonly ring: ReceiveRing
  readonly list: SendList
  readonly scratch: Memory

  constructor(native: NativeLibrary) {
    this.libc = new LibC(native, process.versions.node)
    this.ring = new ReceiveRing(native)
    this.list = new SendList(native)
    this.scratch = new Memory(native.ffi, 64)
  }

  /** False: the system does not know the option, or not this value. */
  setOption(fd: number, level: number, name: number, value: number): boolean {
    this.scratch.view.setInt32(0, value, true)
    return this.libc.calls.setsockopt(fd, level, name, this.scratch.pointer, 4) === 0
  }
}

/**
 * A port whose descriptor is ours: `dgram` holds it, wakes us and takes the first datagram, without its ECN field; the
 * others are received and sent many a call.
 */
class BatchPort extends SocketPort {
  readonly sendsEcn = true
  readonly waitingWhenWritable = 0
  readonly isIpv6: boolean
  readonly fd: number
  readonly calls: Calls
  /** UDP_SEGMENT is worth a try. */
  segmentation: boolean

  constructor(socket: Socket, fd: number, isIpv6: boolean, calls: Calls, options: UdpOptions, handler: UdpHandler) {
    super(socket, options, handler)
    this.isIpv6 = isIpv6
    this.fd = fd
    this.calls = calls
    this.segmentation = options.segmentation ?? true
    socket.on('message', (message, from) => {
      this.#onMessage(message, from)
    })
  }

  get buffer(): Uint8Array {
    return this.calls.ring.buffer
  }

  offset(index: number): number {
    return index * largestDatagram
  }

  length(index: number): number {
    return this.calls.ring.lengths[index]!
  }

  ecn(index: number): number {
    return this.calls.ring.ecns[index]!
  }

  peer(index: number): UdpAddress {
    return this.calls.ring.peers[index]!
  }

  #onMessage(message: Buffer, from: RemoteInfo): void {
    if (this.closed) return
    const { ring, libc } = this.calls
    let first = 0
    if (message.length <= largestDatagram) {
      const peer = addresses.parse(from.address, from.port)
      // Somebody else's may have come before the socket was connected.
      if (this.remote === undefined || this.remote.equals(peer)) {
        ring.buffer.set(message)
        ring.lengths[0] = message.length
        ring.ecns[0] = -1
        ring.peers[0] = peer
        first = 1
      }
    }
    for (let round = 0; round < roundsPerTurn; round++) {
      const room = messageCount - first
      const came = libc.calls.recvmmsg(this.fd, ring.prepare(first), room, Linux.MSG_DONTWAIT, 0n)
      const errno = came < 0 ? libc.errno : 0
      const count = came > 0 ? ring.take(first, came, addresses, this.remote) : first
      first = 0
      if (count > 0) {
        this.counters.received += count
        this.counters.batches++
        this.handler.onBatch(this, count)
        // The descriptor may be somebody else's by now.
        if (this.closed) return
      }
      if (errno === Errno.ECONNREFUSED) this.report(systemError(errno, 'recvmmsg'))
      if (came < room && errno !== Errno.EINTR && errno !== Errno.ECONNREFUSED) return
    }
  }

  send(peer: UdpAddress, buffer: Uint8Array, start: number, limit: number, segmentSize: number, ecn: number): number {
    checkSend(buffer, start, limit, segmentSize, ecn)
    if (this.closed || !(peer instanceof Address)) return 0
    if (peer.family === 6 && !this.isIpv6) {
      this.#drop(Errno.EAFNOSUPPORT, Math.ceil((limit - start) / segmentSize))
      return 0
    }
    // What waits goes first.
    if (this.blocked) return this.enqueue(peer, buffer, start, limit, segmentSize)
    const { list, libc } = this.calls
    const { counters } = this
    const to = this.remote ?? peer
    let wasRefused = false
    let cuts = this.segmentation
    let taken = 0
    for (let at = start; at < limit;) {
      const perMessage =
        cuts && limit - at > segmentSize ? Math.max(1, Math.min(largestSegmentCount, Math.floor(largestCut / segmentSize))) : 1
      const isCut = perMessage > 1
      const listed = list.fill(
        to,
        this.remote !== undefined,
        this.isIpv6,
        buffer,
        at,
        limit,
        perMessage * segmentSize,
        isCut ? segmentSize : 0,
        ecn,
      )
      const done = libc.calls.sendmmsg(this.fd, list.messages, listed, Linux.MSG_DONTWAIT)
      if (done > 0) {
        counters.sendCalls++
        for (let i = 0; i < done; i++) {
          const count = Math.ceil(list.sizes[i]! / segmentSize)
          at += list.sizes[i]!
          taken += count
          counters.sent += count
        }
        continue
      }
      const { errno } = libc
      if (errno === Errno.EINTR) continue
      if (errno === Errno.EAGAIN || errno === Errno.ENOSYS) {
        this.blocked = true
        return taken + this.enqueue(peer, buffer, at, limit, segmentSize)
      }
      if (isCut && (errno === Errno.EINVAL || errno === Errno.EIO || errno === Errno.EMSGSIZE)) {
        // Too large for the interface says nothing about cutting; the others do: the interface or the kernel cannot.
        if (errno !== Errno.EMSGSIZE) this.segmentation = false
        cuts = false
        continue
      }
      if (errno === Errno.ECONNREFUSED && !wasRefused) {
        // The answer to an earlier datagram: this one was not even tried.
        wasRefused = true
        this.report(systemError(errno, 'sendmmsg'))
        continue
      }
      // The first message of the list is what failed.
      const lost = list.sizes[0]!
      at += lost
      this.#drop(errno, Math.ceil(lost / segmentSize))
    }
    return taken
  }

  #drop(errno: number, count: number): void {
    this.counters.dropped += count
    if (errno !== Errno.EMSGSIZE) this.report(systemError(errno, 'sendmmsg'))
  }
}

/** UDP of Linux, many datagrams a call. */
class BatchUdp implements Udp {
  readonly batches = true
  readonly #calls: Calls

  constructor(native: NativeLibrary) {
    this.#calls = new Calls(native)
  }

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
    const address = addresses.parse(host, options.port ?? 0)
    const isIpv6 = host.includes(':')
    const fd = this.#descriptor(address, isIpv6, options)
    const socket = addressSocket(isIpv6, options)
    try {
      await listening(socket, () => socket.bind({ fd, exclusive: true }))
    } catch (error) {
      this.#calls.libc.calls.close(fd)
      throw error
    }
    // From here on the descriptor is the socket's, which closes it.
    const port = new BatchPort(socket, fd, isIpv6, this.#calls, options, handler)
    try {
      await port.open()
    } catch (error) {
      await port.close()
      throw error
    }
    return port
  }

  /** A bound socket of the system's. */
  #descriptor(address: Address, isIpv6: boolean, options: UdpOptions): number {
    const { libc, scratch } = this.#calls
    const { calls } = libc
    const fd = calls.socket(isIpv6 ? Linux.AF_INET6 : Linux.AF_INET, Linux.datagramSocket, 0)
    if (fd < 0) throw systemError(libc.errno, 'socket', address.host, address.port)
    const set = (level: number, name: number, value: number): boolean => this.#calls.setOption(fd, level, name, value)
    if (isIpv6) {
      set(Linux.IPPROTO_IPV6, Linux.IPV6_V6ONLY, options.ipv6Only === true ? 1 : 0)
      set(Linux.IPPROTO_IPV6, Linux.IPV6_RECVTCLASS, 1)
      set(Linux.IPPROTO_IPV6, Linux.IPV6_MTU_DISCOVER, Linux.PMTUDISC_PROBE)
    }
    // For IPv4 packets of an IPv6 socket too. RFC 9000 §14: datagrams are not fragmented.
    set(Linux.IPPROTO_IP, Linux.IP_RECVTOS, 1)
    set(Linux.IPPROTO_IP, Linux.IP_MTU_DISCOVER, Linux.PMTUDISC_PROBE)
    set(Linux.SOL_SOCKET, Linux.SO_RCVBUF, options.receiveBufferSize ?? defaultBufferSize)
    set(Linux.SOL_SOCKET, Linux.SO_SNDBUF, options.sendBufferSize ?? defaultBufferSize)
    const shares = options.reusePort !== true || set(Linux.SOL_SOCKET, Linux.SO_REUSEPORT, 1)
    let errno = shares ? 0 : libc.errno
    if (shares) {
      const size = writeSockaddr(scratch.view, 0, address, isIpv6)
      if (calls.bind(fd, scratch.pointer, size) !== 0) errno = libc.errno
    }
    if (errno === 0) return fd
    calls.close(fd)
    throw systemError(errno, 'bind', address.host, address.port)
  }
}

/** The best UDP that is to be had here. */
export function openUdp(native: NativeLibrary | undefined): Udp {
  if (native === undefined || process.platform !== 'linux') return new DgramUdp()
  try {
    return new BatchUdp(native)
  } catch {
    // A C library without one of the functions.
    return new DgramUdp()
  }
}
