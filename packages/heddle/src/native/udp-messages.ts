import type { NativeLibrary } from './ffi.ts'
import { Linux } from './libc.ts'
import { LastAddress, Memory } from './memory.ts'
import { largestDatagram } from './types.ts'
import { type Address, type AddressTable } from './udp-address.ts'

/*
 * The structures of Linux (glibc and musl) on 64-bit little-endian machines:
 *   mmsghdr   64  { msghdr, u32 len @56 }
 *   msghdr    56  { name @0, u32 namelen @8, iov @16, iovlen @24, control @32, controllen @40, i32 flags @48 }
 *   iovec     16  { base, len @8 }
 *   cmsghdr   16  { len, i32 level @8, i32 type @12 }, its data @16, the next one at a multiple of 8
 *   sockaddr_in  16  { u16 family, port (big-endian) @2, address @4 }
 *   sockaddr_in6 28  { u16 family, port (big-endian) @2, flow @4, address @8, u32 scope @24 }
 */

/** Messages of one call, in either direction. */
export const messageCount = 64
const mmsghdrSize = 64
const iovecSize = 16
const nameRoom = 32
const controlRoom = 64

/** Reads an address of the system's; undefined if it is of neither family. */
export function readSockaddr(view: DataView, at: number, table: AddressTable): Address | undefined {
  const family = view.getUint16(at, true)
  const port = view.getUint16(at + 2)
  if (family === Linux.AF_INET) return table.of(4, port, view.getUint32(at + 4), 0, 0, 0, 0)
  if (family !== Linux.AF_INET6) return undefined
  return table.ipv6(
    port,
    view.getUint32(at + 8),
    view.getUint32(at + 12),
    view.getUint32(at + 16),
    view.getUint32(at + 20),
    view.getUint32(at + 24, true),
  )
}

/** Writes an address as a socket of that family takes it; returns its size. */
export function writeSockaddr(view: DataView, at: number, address: Address, isIpv6: boolean): number {
  if (!isIpv6) {
    view.setUint16(at, Linux.AF_INET, true)
    view.setUint16(at + 2, address.port)
    view.setUint32(at + 4, address.a)
    view.setUint32(at + 8, 0)
    view.setUint32(at + 12, 0)
    return 16
  }
  const isMapped = address.family === 4
  view.setUint16(at, Linux.AF_INET6, true)
  view.setUint16(at + 2, address.port)
  view.setUint32(at + 4, 0)
  view.setUint32(at + 8, isMapped ? 0 : address.a)
  view.setUint32(at + 12, isMapped ? 0 : address.b)
  view.setUint32(at + 16, isMapped ? 0xffff : address.c)
  view.setUint32(at + 20, isMapped ? address.a : address.d)
  view.setUint32(at + 24, address.scope, true)
  return 28
}

/** Where a call receives: places for datagrams, who sent them and their ECN fields. A thread needs one: a batch is over when its call is. */
export class ReceiveRing {
  readonly memory: Memory
  readonly buffer: Uint8Array
  readonly peers: Address[]
  readonly ecns: Int8Array
  readonly lengths: Uint16Array
  readonly #view: DataView
  readonly #messages: number
  readonly #names: number
  readonly #controls: number

  constructor({ ffi }: NativeLibrary) {
    const size = messageCount * (mmsghdrSize + iovecSize + nameRoom + controlRoom + largestDatagram)
    const memory = new Memory(ffi, size)
    this.memory = memory
    this.#view = memory.view
    this.peers = []
    this.ecns = new Int8Array(messageCount)
    this.lengths = new Uint16Array(messageCount)
    // Datagrams come first: the offsets of a batch are multiples of their places' size.
    const data = memory.take(messageCount * largestDatagram)
    this.buffer = memory.bytes.subarray(data, messageCount * largestDatagram)
    this.#messages = memory.take(messageCount * mmsghdrSize)
    const iovecs = memory.take(messageCount * iovecSize)
    this.#names = memory.take(messageCount * nameRoom)
    this.#controls = memory.take(messageCount * controlRoom)
    for (let i = 0; i < messageCount; i++) {
      const message = this.#messages + i * mmsghdrSize
      const iovec = iovecs + i * iovecSize
      memory.writeAddress(message, memory.base + this.#names + i * nameRoom)
      memory.writeAddress(message + 16, memory.base + iovec)
      memory.words[(message + 24) >> 2] = 1
      memory.writeAddress(message + 32, memory.base + this.#controls + i * controlRoom)
      memory.writeAddress(iovec, memory.base + data + i * largestDatagram)
      memory.words[(iovec + 8) >> 2] = largestDatagram
    }
  }

  /** The messages from place `first` on, ready for a call. */
  prepare(first: number): bigint {
    const { words } = this.memory
    for (let i = first; i < messageCount; i++) {
      const message = (this.#messages + i * mmsghdrSize) >> 2
      words[message + 2] = nameRoom
      words[message + 10] = controlRoom
      words[message + 11] = 0
      words[message + 12] = 0
    }
    return this.memory.pointerTo(this.#messages + first * mmsghdrSize)
  }

  /**
   * Takes in what a call left in `count` places from `first` on. Those that were cut off, or that come from anybody but
   * `only`, are left out and the others move up. Returns how many places are filled.
   */
  take(first: number, count: number, table: AddressTable, only: Address | undefined): number {
    const { words } = this.memory
    let filled = first
    for (let i = first; i < first + count; i++) {
      const message = (this.#messages + i * mmsghdrSize) >> 2
      const length = words[message + 14]!
      if ((words[message + 12]! & Linux.MSG_TRUNC) !== 0 || length > largestDatagram) continue
      const peer = readSockaddr(this.#view, this.#names + i * nameRoom, table)
      if (peer === undefined || (only !== undefined && !only.equals(peer))) continue
      if (filled !== i) this.buffer.copyWithin(filled * largestDatagram, i * largestDatagram, i * largestDatagram + length)
      this.peers[filled] = peer
      this.ecns[filled] = this.#ecnOf(i, words[message + 10]!)
      this.lengths[filled] = length
      filled++
    }
    return filled
  }

  /** The ECN field in the control messages of a place; −1 if there is none. */
  #ecnOf(index: number, size: number): number {
    const view = this.#view
    const start = this.#controls + index * controlRoom
    const limit = start + Math.min(size, controlRoom)
    for (let at = start; at + 17 <= limit;) {
      const length = view.getUint32(at, true)
      if (length < 17) break
      const level = view.getInt32(at + 8, true)
      const type = view.getInt32(at + 12, true)
      if ((level === Linux.IPPROTO_IP && type === Linux.IP_TOS) || (level === Linux.IPPROTO_IPV6 && type === Linux.IPV6_TCLASS)) {
        return view.getUint8(at + 16) & 3
      }
      at += (length + 7) & ~7
    }
    return -1
  }
}

/** Where a call sends from: messages that point into the caller's buffer. A thread needs one. */
export class SendList {
  readonly memory: Memory
  /** Octets of each message that is on the list. */
  readonly sizes: Uint32Array
  readonly #addresses: LastAddress
  readonly #messages: number
  readonly #iovecs: number
  readonly #name: number
  /** Two control messages: UDP_SEGMENT, and behind it the ECN field. Either can stand alone. */
  readonly #segment: number
  readonly #ecn: number

  constructor({ ffi }: NativeLibrary) {
    const memory = new Memory(ffi, messageCount * (mmsghdrSize + iovecSize) + nameRoom + 64)
    this.memory = memory
    this.sizes = new Uint32Array(messageCount)
    this.#addresses = new LastAddress(ffi)
    this.#messages = memory.take(messageCount * mmsghdrSize)
    this.#iovecs = memory.take(messageCount * iovecSize)
    this.#name = memory.take(nameRoom)
    this.#segment = memory.take(48)
    this.#ecn = this.#segment + 24
    memory.view.setUint32(this.#segment, 18, true)
    memory.view.setInt32(this.#segment + 8, Linux.SOL_UDP, true)
    memory.view.setInt32(this.#segment + 12, Linux.UDP_SEGMENT, true)
    memory.view.setUint32(this.#ecn, 20, true)
    for (let i = 0; i < messageCount; i++) {
      memory.writeAddress(this.#messages + i * mmsghdrSize + 16, memory.base + this.#iovecs + i * iovecSize)
      memory.words[(this.#messages + i * mmsghdrSize + 24) >> 2] = 1
    }
  }

  get messages(): bigint {
    return this.memory.pointerTo(this.#messages)
  }

  /**
   * Lists `buffer[start, limit)` in messages of `messageSize` octets. A connected socket is not told the peer's name.
   * `segmentSize` 0: a message is a datagram. Returns how many messages are listed; they may not reach `limit`.
   */
  fill(
    peer: Address,
    isConnected: boolean,
    isIpv6: boolean,
    buffer: Uint8Array,
    start: number,
    limit: number,
    messageSize: number,
    segmentSize: number,
    ecn: number,
  ): number {
    const { memory, sizes } = this
    const { words, view } = memory
    const nameSize = isConnected ? 0 : writeSockaddr(view, this.#name, peer, isIpv6)
    const name = isConnected ? 0 : memory.base + this.#name
    if (segmentSize > 0) view.setUint16(this.#segment + 16, segmentSize, true)
    if (ecn > 0) {
      const isIpv6Packet = isIpv6 && peer.family === 6
      view.setInt32(this.#ecn + 8, isIpv6Packet ? Linux.IPPROTO_IPV6 : Linux.IPPROTO_IP, true)
      view.setInt32(this.#ecn + 12, isIpv6Packet ? Linux.IPV6_TCLASS : Linux.IP_TOS, true)
      view.setInt32(this.#ecn + 16, ecn, true)
    }
    const controlSize = (segmentSize > 0 ? 24 : 0) + (ecn > 0 ? 24 : 0)
    const control = controlSize === 0 ? 0 : memory.base + (segmentSize > 0 ? this.#segment : this.#ecn)
    const base = this.#addresses.of(buffer)
    let count = 0
    for (let at = start; at < limit && count < messageCount; at += messageSize, count++) {
      const message = this.#messages + count * mmsghdrSize
      const iovec = this.#iovecs + count * iovecSize
      const size = Math.min(messageSize, limit - at)
      sizes[count] = size
      memory.writeAddress(message, name)
      words[(message + 8) >> 2] = nameSize
      memory.writeAddress(message + 32, control)
      words[(message + 40) >> 2] = controlSize
      words[(message + 48) >> 2] = 0
      memory.writeAddress(iovec, base + at)
      words[(iovec + 8) >> 2] = size
    }
    return count
  }
}
