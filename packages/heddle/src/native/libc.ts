import { getSystemErrorName } from 'node:util'
import type { NativeLibrary } from './ffi.ts'

/** Linux's numbers, the same on all of its 64-bit architectures that Node runs on. */
export const Linux = {
  AF_INET: 2,
  AF_INET6: 10,
  /** SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC */
  datagramSocket: 0x8_0802,
  SOL_SOCKET: 1,
  SO_SNDBUF: 7,
  SO_RCVBUF: 8,
  SO_REUSEPORT: 15,
  IPPROTO_IP: 0,
  IP_TOS: 1,
  IP_MTU_DISCOVER: 10,
  IP_RECVTOS: 13,
  IPPROTO_IPV6: 41,
  IPV6_MTU_DISCOVER: 23,
  IPV6_V6ONLY: 26,
  IPV6_RECVTCLASS: 66,
  IPV6_TCLASS: 67,
  /** Never fragment, and leave finding out the path's limit to us. */
  PMTUDISC_PROBE: 3,
  SOL_UDP: 17,
  UDP_SEGMENT: 103,
  MSG_TRUNC: 0x20,
  MSG_DONTWAIT: 0x40,
} as const

/** Linux's errors that mean something to a UDP port. */
export const Errno = {
  EINTR: 4,
  EIO: 5,
  EAGAIN: 11,
  EINVAL: 22,
  ENOSYS: 38,
  EMSGSIZE: 90,
  EAFNOSUPPORT: 97,
  EADDRNOTAVAIL: 99,
  ECONNREFUSED: 111,
} as const

/** The C library's sockets, as functions: pointers are addresses; −1 is an error, told by `errno`. */
export interface SocketCalls {
  socket(domain: number, type: number, protocol: number): number
  bind(fd: number, address: bigint, size: number): number
  setsockopt(fd: number, level: number, name: number, value: bigint, size: number): number
  close(fd: number): number
  sendmmsg(fd: number, messages: bigint, count: number, flags: number): number
  recvmmsg(fd: number, messages: bigint, count: number, flags: number, timeout: bigint): number
}

/** Sockets of Linux's C library, with this thread's `errno`. Throws where a function is missing. */
export class LibC {
  readonly calls: SocketCalls
  readonly #errno: Int32Array

  constructor({ ffi, library }: NativeLibrary, nodeVersion: string) {
    const [major = 0, minor = 0] = nodeVersion.split('.').map(Number)
    // As in evp.ts: a parameter of type `function` makes the call cheaper.
    const address = major > 26 || (major === 26 && minor >= 12) ? 'function' : 'pointer'
    const { __errno_location: errnoLocation, ...calls } = library.getFunctions({
      socket: { arguments: ['int32', 'int32', 'int32'], return: 'int32' },
      bind: { arguments: ['int32', 'pointer', 'uint32'], return: 'int32' },
      setsockopt: { arguments: ['int32', 'int32', 'int32', 'pointer', 'uint32'], return: 'int32' },
      close: { arguments: ['int32'], return: 'int32' },
      sendmmsg: { arguments: ['int32', address, 'uint32', 'int32'], return: 'int32' },
      recvmmsg: { arguments: ['int32', address, 'uint32', 'int32', 'pointer'], return: 'int32' },
      __errno_location: { arguments: [], return: 'pointer' },
    })
    this.calls = calls as SocketCalls
    // The thread's own: it stays where it is for as long as the thread lives.
    this.#errno = new Int32Array(ffi.toArrayBuffer((errnoLocation as () => bigint)(), 4, false))
  }

  /** Why the call before failed: to be asked for at once. */
  get errno(): number {
    return this.#errno[0]!
  }
}

/** The error that Node would make of it; one about a port says that it is UDP's, for that of TCP has the same number. */
export function systemError(errno: number, syscall: string, host?: string, port?: number): NodeJS.ErrnoException {
  const code = errno > 0 ? getSystemErrorName(-errno) : 'UNKNOWN'
  const where = host === undefined ? '' : ` ${host}${port === undefined ? '' : `:${port} (UDP)`}`
  return Object.assign(new Error(`${syscall} ${code}${where}`), {
    errno: -errno,
    code,
    syscall,
    ...(host === undefined ? {} : { address: host }),
    ...(port === undefined ? {} : { port }),
  })
}
