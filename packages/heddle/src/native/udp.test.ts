import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { describe, test } from 'node:test'
import { nativeLibrary } from './ffi.ts'
import { largestDatagram, type Udp, type UdpAddress, type UdpHandler, type UdpOptions, type UdpPort } from './types.ts'
import { openUdp } from './udp-ffi.ts'

const native = nativeLibrary()
const unavailable = 'unavailable' in native ? native.unavailable : process.platform === 'linux' ? undefined : 'batches are of Linux'
const hasIpv6 = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'))

interface Received {
  readonly octets: Uint8Array
  readonly ecn: number
  readonly from: UdpAddress
}

/** Keeps what comes, and lets a test wait for it. */
class Recorder implements UdpHandler {
  readonly received: Received[] = []
  readonly errors: NodeJS.ErrnoException[] = []
  writable = 0
  batches = 0
  onEach: ((port: UdpPort) => void) | undefined
  #wake: () => void = () => {}

  onBatch(port: UdpPort, count: number): void {
    this.batches++
    for (let i = 0; i < count; i++) {
      const octets = port.buffer.slice(port.offset(i), port.offset(i) + port.length(i))
      this.received.push({ octets, ecn: port.ecn(i), from: port.peer(i) })
    }
    this.onEach?.(port)
    this.#wake()
  }

  onWritable(): void {
    this.writable++
    this.#wake()
  }

  onError(_port: UdpPort, error: NodeJS.ErrnoException): void {
    this.errors.push(error)
    this.#wake()
  }

  async until(what: string, condition: () => boolean): Promise<void> {
    for (let tries = 0; !condition(); tries++) {
      assert.ok(tries < 2000, `waited in vain: ${what}`)
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      // A datagram of the loopback comes without delay: the timer is for what never comes.
      const timer = setTimeout(resolve, 20)
      await promise
      clearTimeout(timer)
    }
  }
}

async function bind(udp: Udp, options: UdpOptions): Promise<{ port: UdpPort; seen: Recorder }> {
  const seen = new Recorder()
  return { port: await udp.bind(options, seen), seen }
}

/** Datagrams that can be told apart: each is full of its own number. */
function numbered(sizes: readonly number[]): Uint8Array {
  return Buffer.concat(sizes.map((size, index) => Buffer.alloc(size, index + 1)))
}

test('on Linux x64 with a Node that has node:ffi, datagrams go in batches', () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (process.platform === 'linux' && process.arch === 'x64' && (major > 26 || (major === 26 && minor >= 9)))
    assert.equal(unavailable, undefined)
  assert.equal(openUdp('unavailable' in native ? undefined : native).batches, unavailable === undefined)
  assert.equal(openUdp(undefined).batches, false)
})

describe('dgram', () => {
  suite(openUdp(undefined))

  test('a sender is told to wait, and when it may go on', async () => {
    const server = await bind(openUdp(undefined), { host: '127.0.0.1' })
    const client = await bind(openUdp(undefined), { host: '127.0.0.1' })
    client.port.send(server.port.local, new Uint8Array(200 * 100), 0, 20_000, 100, 0)
    assert.equal(client.port.blocked, false)
    assert.equal(client.port.send(server.port.local, new Uint8Array(200 * 100), 0, 20_000, 100, 0), 200)
    assert.equal(client.port.blocked, true)
    assert.equal(client.seen.writable, 0)
    await client.seen.until('writable', () => client.seen.writable === 1)
    assert.equal(client.port.blocked, false)
    await client.port.close()
    await server.port.close()
  })
})
describe('batches', { skip: unavailable ?? false }, () => {
  if ('unavailable' in native) return
  suite(openUdp(native))
  batches(openUdp(native))
})

function suite(udp: Udp): void {
  for (const [name, host] of [
    ['IPv4', '127.0.0.1'],
    ['IPv6', '::1'],
  ] as const) {
    test(`${name}: there and back`, { skip: host === '::1' && !hasIpv6 }, async () => {
      const server = await bind(udp, { host })
      const client = await bind(udp, { host })
      assert.equal(server.port.local.host, host)
      assert.notEqual(server.port.local.port, 0)
      assert.equal(client.port.send(server.port.local, Buffer.from('..hello..'), 2, 7, 1200, 0), 1)
      await server.seen.until('hello', () => server.seen.received.length === 1)
      const [hello] = server.seen.received
      assert.equal(Buffer.from(hello!.octets).toString(), 'hello')
      assert.equal(hello!.from.key, client.port.local.key)
      assert.ok(hello!.from.equals(client.port.local))
      assert.equal(server.port.send(hello!.from, Buffer.from('welcome'), 0, 7, 1200, 0), 1)
      await client.seen.until('welcome', () => client.seen.received.length === 1)
      assert.equal(client.seen.received[0]!.from.key, server.port.local.key)
      await Promise.all([server.port.close(), client.port.close()])
    })
  }

  test('a port without a host hears both families, and IPv4 addresses look like IPv4', { skip: !hasIpv6 }, async () => {
    const server = await bind(udp, {})
    assert.equal(server.port.local.host, '::')
    for (const host of ['127.0.0.1', '::1']) {
      const client = await bind(udp, { host })
      client.port.send(udp.address(host, server.port.local.port), Buffer.from('ask'), 0, 3, 1200, 0)
      await server.seen.until(host, () => server.seen.received.length > 0)
      const { from } = server.seen.received.pop()!
      assert.equal(from.key, client.port.local.key)
      assert.equal(from.family, host === '::1' ? 6 : 4)
      server.port.send(from, Buffer.from('answer'), 0, 6, 1200, 0)
      await client.seen.until('answer', () => client.seen.received.length === 1)
      await client.port.close()
    }
    await server.port.close()
  })

  test('IPv6 only: no IPv4', { skip: !hasIpv6 }, async () => {
    const server = await bind(udp, { host: '::', ipv6Only: true })
    // The same port is still to be had.
    const other = await bind(udp, { host: '0.0.0.0', port: server.port.local.port })
    assert.equal(other.port.local.port, server.port.local.port)
    await Promise.all([server.port.close(), other.port.close()])
  })

  for (const segmentation of [true, false]) {
    test(`many datagrams, the last one short, ${segmentation ? 'cut by the kernel where it can' : 'one by one'}`, async () => {
      const server = await bind(udp, { host: '127.0.0.1' })
      const client = await bind(udp, { host: '127.0.0.1', segmentation })
      const sizes = [...Array.from({ length: 199 }, () => 1200), 33]
      const octets = numbered(sizes)
      const taken = client.port.send(server.port.local, octets, 0, octets.length, 1200, 2)
      // The caller's buffer is its own again.
      octets.fill(0)
      assert.equal(taken, 200)
      await server.seen.until('all', () => server.seen.received.length >= 200)
      assert.deepEqual(
        server.seen.received.map(({ octets: { length } }) => length),
        sizes,
      )
      for (const [index, { octets: got }] of server.seen.received.entries()) assert.ok(got.every((octet) => octet === index + 1))
      assert.equal(client.port.counters.sent, 200)
      assert.equal(client.port.counters.dropped, 0)
      assert.equal(server.port.counters.received, 200)
      await Promise.all([server.port.close(), client.port.close()])
    })
  }

  test('a datagram that is too large is lost without a word, and the others are not', async () => {
    const server = await bind(udp, { host: '127.0.0.1' })
    const client = await bind(udp, { host: '127.0.0.1' })
    const octets = new Uint8Array(65_507)
    client.port.send(server.port.local, octets, 0, largestDatagram + 1, 65_000, 0)
    client.port.send(server.port.local, octets, 0, largestDatagram, largestDatagram, 0)
    await server.seen.until('the one that fits', () => server.seen.received.length > 0)
    assert.deepEqual(
      server.seen.received.map((datagram) => datagram.octets.length),
      [largestDatagram],
    )
    await Promise.all([server.port.close(), client.port.close()])
  })

  test('nobody listens: a connected port is told', async () => {
    const gone = await bind(udp, { host: '127.0.0.1' })
    const { local } = gone.port
    await gone.port.close()
    const client = await bind(udp, { host: '127.0.0.1', remote: local })
    client.port.send(local, new Uint8Array(10), 0, 10, 1200, 0)
    await client.seen.until('the error', () => client.seen.errors.length > 0)
    assert.equal(client.seen.errors[0]!.code, 'ECONNREFUSED')
    // And it lives on.
    const back = await bind(udp, { host: '127.0.0.1', port: local.port })
    client.port.send(local, new Uint8Array(11), 0, 11, 1200, 0)
    await back.seen.until('a datagram', () => back.seen.received.length > 0)
    back.port.send(client.port.local, new Uint8Array(12), 0, 12, 1200, 0)
    await client.seen.until('the answer', () => client.seen.received.length > 0)
    await Promise.all([client.port.close(), back.port.close()])
  })

  test('a connected port hears nobody else', async () => {
    const server = await bind(udp, { host: '127.0.0.1' })
    const stranger = await bind(udp, { host: '127.0.0.1' })
    const client = await bind(udp, { host: '127.0.0.1', remote: server.port.local })
    stranger.port.send(client.port.local, Buffer.from('stranger'), 0, 8, 1200, 0)
    server.port.send(client.port.local, Buffer.from('server'), 0, 6, 1200, 0)
    await client.seen.until('the server', () => client.seen.received.length > 0)
    assert.deepEqual(
      client.seen.received.map(({ octets }) => Buffer.from(octets).toString()),
      ['server'],
    )
    await Promise.all([server.port.close(), stranger.port.close(), client.port.close()])
  })

  test('closing while receiving: nothing comes behind it', async () => {
    const server = await bind(udp, { host: '127.0.0.1' })
    const client = await bind(udp, { host: '127.0.0.1' })
    let closed: Promise<void> | undefined
    server.seen.onEach = (port) => {
      closed = port.close()
    }
    for (let i = 0; i < 5; i++) client.port.send(server.port.local, new Uint8Array(12_000), 0, 12_000, 100, 0)
    await server.seen.until('the first batch', () => closed !== undefined)
    await closed
    assert.equal(server.seen.batches, 1)
    assert.ok(server.seen.received.length <= 64)
    const { length } = server.seen.received
    client.port.send(server.port.local, new Uint8Array(100), 0, 100, 100, 0)
    await client.port.close()
    await server.port.close()
    assert.equal(server.seen.received.length, length)
    assert.equal(server.port.send(client.port.local, new Uint8Array(10), 0, 10, 10, 0), 0)
    server.port.ref()
    server.port.unref()
  })

  test('a port that is taken, and what is no address', async () => {
    const server = await bind(udp, { host: '127.0.0.1' })
    const { port } = server.port.local
    const message = `bind EADDRINUSE 127.0.0.1:${port} (UDP)`
    await assert.rejects(bind(udp, { host: '127.0.0.1', port }), {
      code: 'EADDRINUSE',
      syscall: 'bind',
      address: '127.0.0.1',
      port,
      message,
    })
    await assert.rejects(bind(udp, { host: '192.0.2.1' }), { code: 'EADDRNOTAVAIL' })
    await assert.rejects(bind(udp, { host: '127.0.0.1', remote: udp.address('::1', 443) }), Error)
    await assert.rejects(bind(udp, { host: '127.0.0.1', remote: udp.address('127.0.0.1', 0) }), Error)
    await assert.rejects(bind(udp, { host: 'localhost' }), RangeError)
    await assert.rejects(bind(udp, { host: '127.0.0.1', port: 65_536 }), RangeError)
    assert.throws(() => udp.address('::1::', 1), RangeError)
    await server.port.close()
  })

  test('several ports on one address, if all want it', { skip: process.platform !== 'linux' }, async () => {
    const one = await bind(udp, { host: '127.0.0.1', reusePort: true })
    const other = await bind(udp, { host: '127.0.0.1', reusePort: true, port: one.port.local.port })
    await assert.rejects(bind(udp, { host: '127.0.0.1', port: one.port.local.port }), { code: 'EADDRINUSE' })
    await Promise.all([one.port.close(), other.port.close()])
  })

  test('arguments that would reach beyond the buffer are refused', async () => {
    const client = await bind(udp, { host: '127.0.0.1' })
    const { local } = client.port
    const buffer = new Uint8Array(100)
    for (const [start, limit, segmentSize, ecn] of [
      [0, 101, 50, 0],
      [-1, 10, 50, 0],
      [50, 10, 50, 0],
      [0, NaN, 50, 0],
      [0, 100, 0, 0],
      [0, 100, 1.5, 0],
      [0, 100, 65_508, 0],
      [0, 100, 50, 4],
      [0, 100, 50, -1],
    ] as const) {
      assert.throws(() => client.port.send(local, buffer, start, limit, segmentSize, ecn), RangeError)
    }
    assert.equal(client.port.send(local, buffer, 10, 10, 50, 0), 0)
    await client.port.close()
  })

  test('an address that cannot be sent to costs a datagram and an error, not the port', async () => {
    const client = await bind(udp, { host: '127.0.0.1' })
    client.port.send(udp.address('2001:db8::1', 1), new Uint8Array(10), 0, 10, 10, 0)
    await client.seen.until('an error', () => client.seen.errors.length > 0)
    client.port.send(client.port.local, new Uint8Array(10), 0, 10, 10, 0)
    await client.seen.until('its own datagram', () => client.seen.received.length > 0)
    await client.port.close()
  })

  test('ports come and go, and leave no descriptor behind', { skip: process.platform !== 'linux' }, async () => {
    const round = async (): Promise<void> => {
      const { port } = await bind(udp, { host: '127.0.0.1' })
      await port.close()
      await assert.rejects(bind(udp, { host: '192.0.2.1' }))
      await new Promise(setImmediate)
    }
    await round()
    const before = readdirSync('/proc/self/fd').length
    for (let i = 0; i < 50; i++) await round()
    assert.equal(readdirSync('/proc/self/fd').length, before)
  })
}

function batches(udp: Udp): void {
  test('many datagrams are few calls', async () => {
    for (const [segmentation, calls] of [
      [true, 1],
      [false, 2],
    ] as const) {
      const server = await bind(udp, { host: '127.0.0.1' })
      const client = await bind(udp, { host: '127.0.0.1', segmentation })
      client.port.send(server.port.local, new Uint8Array(128 * 1000), 0, 128_000, 1000, 0)
      assert.equal(client.port.counters.sendCalls, calls)
      await server.seen.until('all', () => server.seen.received.length === 128)
      assert.ok(server.port.counters.batches < 16, `${server.port.counters.batches} batches`)
      await Promise.all([server.port.close(), client.port.close()])
    }
  })

  for (const [host, to] of [
    ['127.0.0.1', '127.0.0.1'],
    ['::1', '::1'],
    ['::', '127.0.0.1'],
    ['::', '::1'],
  ] as const) {
    for (const connected of [false, true]) {
      for (const segmentation of [true, false]) {
        test(
          `ECN from ${host} to ${to}${connected ? ', connected' : ''}${segmentation ? ', cut' : ''}`,
          { skip: !hasIpv6 && host.includes(':') },
          async () => {
            const server = await bind(udp, { host })
            const peer = udp.address(to, server.port.local.port)
            const client = await bind(udp, { host, segmentation, remote: connected ? peer : undefined })
            for (const ecn of [0, 1, 2, 3]) {
              server.seen.received.length = 0
              client.port.send(peer, new Uint8Array(400), 0, 400, 100, ecn)
              await server.seen.until('four', () => server.seen.received.length === 4)
              // The first of a wake-up is read by Node, which does not tell; each other one is as sent.
              const told = server.seen.received.map((datagram) => datagram.ecn).filter((field) => field !== -1)
              assert.ok(told.length > 0)
              assert.ok(
                told.every((field) => field === ecn),
                `${told}`,
              )
            }
            await Promise.all([server.port.close(), client.port.close()])
          },
        )
      }
    }
  }

  for (const segmentation of [true, false]) {
    test(`what the interface cannot carry is lost (EMSGSIZE)${segmentation ? ', cut' : ''}`, { skip: !hasIpv6 }, async () => {
      const server = await bind(udp, { host: '::1' })
      const client = await bind(udp, { host: '::1', segmentation })
      // With the headers 65,548 octets: more than the loopback's MTU of 65,536.
      assert.equal(client.port.send(server.port.local, new Uint8Array(65_500), 0, 65_500, 65_500, 0), 0)
      assert.equal(client.port.counters.dropped, 1)
      assert.equal(client.port.send(server.port.local, new Uint8Array(3000), 0, 3000, 1000, 0), 3)
      await server.seen.until('three', () => server.seen.received.length === 3)
      assert.equal(client.seen.errors.length, 0)
      await Promise.all([server.port.close(), client.port.close()])
    })
  }
}
