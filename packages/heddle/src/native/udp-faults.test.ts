import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type NativeLibrary, nativeLibrary } from './ffi.ts'
import { Errno } from './libc.ts'
import type { UdpHandler, UdpPort } from './types.ts'
import { openUdp } from './udp-ffi.ts'

/*
 * A system whose sendmmsg and recvmmsg fail as told: what comes of segmentation that a network card cannot do, of a full
 * socket, of sandboxes without these calls.
 */

const native = nativeLibrary()
const skip = 'unavailable' in native ? native.unavailable : process.platform === 'linux' ? false : 'batches are of Linux'

/** What a call shall do instead: fail with this error; 0: its own work. */
interface Faults {
  send: (count: number, isCut: boolean) => number
  receive: () => number
}

type Call = (...args: unknown[]) => number

/** The system, with faults: `errno` is ours too. */
function faulty({ ffi, library }: NativeLibrary, faults: Faults): NativeLibrary {
  const errno = new Int32Array(new ArrayBuffer(16))
  let real: Int32Array | undefined
  const told = (call: Call, fault: number, args: unknown[]): number => {
    if (fault !== 0) {
      errno[0] = fault
      return -1
    }
    const result = call(...args)
    if (result < 0) errno[0] = real![0]!
    return result
  }
  const getFunctions = (definitions: Parameters<typeof library.getFunctions>[0]): unknown => {
    const functions = library.getFunctions(definitions) as unknown as Record<string, Call>
    const location = functions['__errno_location']!() as unknown as bigint
    real = new Int32Array(ffi.toArrayBuffer(location, 4, false))
    return {
      ...functions,
      sendmmsg: (...args: unknown[]) => {
        // The first message's msg_controllen: 24 or 48 with a UDP_SEGMENT or an ECN field; these tests send without ECN.
        const isCut = ffi.getUint64(args[1] as bigint, 40) !== 0n
        return told(functions['sendmmsg']!, faults.send(args[2] as number, isCut), args)
      },
      recvmmsg: (...args: unknown[]) => told(functions['recvmmsg']!, faults.receive(), args),
      socket: (...args: unknown[]) => told(functions['socket']!, 0, args),
      bind: (...args: unknown[]) => told(functions['bind']!, 0, args),
      setsockopt: (...args: unknown[]) => told(functions['setsockopt']!, 0, args),
      __errno_location: () => ffi.getRawPointer(errno.buffer),
    }
  }
  return { ffi, library: { getFunctions } as unknown as NativeLibrary['library'] }
}

class Count implements UdpHandler {
  received: number[] = []
  writable = 0
  errors: string[] = []

  onBatch(port: UdpPort, count: number): void {
    for (let i = 0; i < count; i++) this.received.push(port.buffer[port.offset(i)]!)
  }

  onWritable(): void {
    this.writable++
  }

  onError(_port: UdpPort, error: NodeJS.ErrnoException): void {
    this.errors.push(error.code!)
  }

  async until(what: string, condition: () => boolean): Promise<void> {
    for (let tries = 0; !condition(); tries++) {
      assert.ok(tries < 5000, `waited in vain: ${what}`)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
}

interface Stage {
  readonly faults: Faults
  readonly calls: string[]
  readonly sender: UdpPort
  readonly sent: Count
  readonly receiver: UdpPort
  readonly got: Count
  /** Sends `count` datagrams of 100 octets, numbered from 0. */
  send(count: number): number
  [Symbol.asyncDispose](): Promise<void>
}

async function stage(): Promise<Stage> {
  const calls: string[] = []
  const faults: Faults = { send: () => 0, receive: () => 0 }
  const udp = openUdp(
    faulty(native as NativeLibrary, {
      send: (count, isCut) => {
        calls.push(`${count}${isCut ? ' cut' : ''}`)
        return faults.send(count, isCut)
      },
      receive: () => faults.receive(),
    }),
  )
  assert.equal(udp.batches, true)
  const sent = new Count()
  const got = new Count()
  const sender = await udp.bind({ host: '127.0.0.1' }, sent)
  const receiver = await udp.bind({ host: '127.0.0.1' }, got)
  return {
    faults,
    calls,
    sender,
    sent,
    receiver,
    got,
    send: (count) => {
      const octets = new Uint8Array(count * 100)
      for (let i = 0; i < count; i++) octets[i * 100] = i
      return sender.send(receiver.local, octets, 0, octets.length, 100, 0)
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([sender.close(), receiver.close()])
    },
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

for (const [name, errno] of [
  ['EIO', Errno.EIO],
  ['EINVAL', Errno.EINVAL],
] as const) {
  test(`${name} at segmentation: never again, and nothing is lost`, { skip }, async () => {
    const s = await stage()
    try {
      s.faults.send = (_, isCut) => (isCut ? errno : 0)
      assert.equal(s.send(10), 10)
      assert.equal(s.send(3), 3)
      assert.deepEqual(s.calls, ['1 cut', '10', '3'])
      await s.got.until('all', () => s.got.received.length === 13)
      assert.deepEqual(s.got.received, [...upTo(10), ...upTo(3)])
      assert.equal(s.sender.counters.dropped, 0)
    } finally {
      await s[Symbol.asyncDispose]()
    }
  })
}

test('EMSGSIZE at segmentation: these datagrams go one by one, the next are cut again', { skip }, async () => {
  const s = await stage()
  try {
    s.faults.send = (_, isCut) => (isCut ? Errno.EMSGSIZE : 0)
    assert.equal(s.send(5), 5)
    s.faults.send = () => 0
    assert.equal(s.send(5), 5)
    assert.deepEqual(s.calls, ['1 cut', '5', '1 cut'])
    await s.got.until('all', () => s.got.received.length === 10)
  } finally {
    await s[Symbol.asyncDispose]()
  }
})

for (const [name, errno] of [
  ['EAGAIN', Errno.EAGAIN],
  ['ENOSYS', Errno.ENOSYS],
] as const) {
  test(`${name}: datagrams wait, in order, and the port says when it is over`, { skip }, async () => {
    const s = await stage()
    try {
      s.faults.send = () => errno
      assert.equal(s.send(20), 20)
      assert.equal(s.sender.blocked, true)
      // What is sent nevertheless goes behind.
      s.faults.send = () => 0
      const before = s.calls.length
      assert.equal(s.send(5), 5)
      assert.equal(s.calls.length, before)
      assert.equal(s.sent.writable, 0)
      await s.sent.until('writable', () => s.sent.writable === 1)
      assert.equal(s.sender.blocked, false)
      await s.got.until('all', () => s.got.received.length === 25)
      assert.deepEqual(s.got.received, [...upTo(20), ...upTo(5)])
      assert.equal(s.sender.counters.sent, 25)
    } finally {
      await s[Symbol.asyncDispose]()
    }
  })
}

test('the waiting line is bounded: what goes beyond is dropped and counted', { skip }, async () => {
  const s = await stage()
  try {
    s.faults.send = () => Errno.EAGAIN
    let taken = 0
    for (let i = 0; i < 10; i++) taken += s.send(200)
    assert.equal(taken, 1024)
    assert.equal(s.sender.counters.dropped, 2000 - 1024)
    await s.sent.until('writable', () => s.sent.writable === 1)
  } finally {
    await s[Symbol.asyncDispose]()
  }
})

test('a port that is closed while datagrams wait says nothing anymore', { skip }, async () => {
  const s = await stage()
  s.faults.send = () => Errno.EAGAIN
  assert.equal(s.send(20), 20)
  await s[Symbol.asyncDispose]()
  await new Promise(setImmediate)
  assert.equal(s.sent.writable, 0)
  assert.deepEqual(s.sent.errors, [])
})

test('EINTR: once more', { skip }, async () => {
  const s = await stage()
  try {
    let interrupts = 2
    s.faults.send = () => (interrupts-- > 0 ? Errno.EINTR : 0)
    let receives = 2
    s.faults.receive = () => (receives-- > 0 ? Errno.EINTR : 0)
    assert.equal(s.send(4), 4)
    await s.got.until('all', () => s.got.received.length === 4)
  } finally {
    await s[Symbol.asyncDispose]()
  }
})

test('any other error costs what it is about, and is told later, once', { skip }, async () => {
  const s = await stage()
  try {
    const refuses = [1, 1, 0]
    s.faults.send = () => refuses.shift() ?? 0
    // Not cut: a message is a datagram.
    assert.equal(s.send(1), 0)
    assert.equal(s.send(1), 0)
    assert.deepEqual(s.sent.errors, [])
    assert.equal(s.send(2), 2)
    await s.sent.until('the error', () => s.sent.errors.length > 0)
    assert.deepEqual(s.sent.errors, ['EPERM'])
    assert.equal(s.sender.counters.dropped, 2)
    await s.got.until('both', () => s.got.received.length === 2)
  } finally {
    await s[Symbol.asyncDispose]()
  }
})

test('without recvmmsg, datagrams still come', { skip }, async () => {
  const s = await stage()
  try {
    s.faults.receive = () => Errno.ENOSYS
    assert.equal(s.send(10), 10)
    await s.got.until('all', () => s.got.received.length === 10)
    assert.deepEqual(s.got.received, upTo(10))
  } finally {
    await s[Symbol.asyncDispose]()
  }
})
