import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../http/index.ts'
import { World, worldTest, type LinkOptions, type LinkSocket } from '../testing/index.ts'
import { pooledBytes } from './output.ts'
import { StreamDriver, type DriverOptions } from './tcp-driver.ts'
import { hashOf, TestEngine } from './test-engine.test.ts'

interface End {
  readonly engine: TestEngine
  readonly driver: StreamDriver
  readonly socket: LinkSocket
}

/** An engine on one end of a link; the other end is a bare socket. */
function oneEnd(world: World, link: LinkOptions = {}, options: DriverOptions = {}): End & { peer: LinkSocket } {
  const [socket, peer] = world.link(link)
  const engine = new TestEngine()
  const driver = new StreamDriver(socket, world, options)
  driver.attach(engine)
  return { engine, driver, socket, peer }
}

function collect(socket: LinkSocket): { bytes(): Buffer; events: string[] } {
  const chunks: Buffer[] = []
  const events: string[] = []
  socket.on('data', (chunk: Uint8Array) => chunks.push(Buffer.from(chunk)))
  for (const event of ['end', 'close'] as const) socket.on(event, () => events.push(event))
  socket.on('error', (error: NodeJS.ErrnoException) => events.push(error.code ?? 'error'))
  return { bytes: () => Buffer.concat(chunks), events }
}

test('120 sends in one turn are one write', () => {
  const world = new World()
  const { engine, driver, socket, peer } = oneEnd(world)
  const seen = collect(peer)
  world.run()
  for (let i = 0; i < 120; i++) engine.send(`${i},`)
  assert.equal(socket.writes, 0, 'nothing leaves before the turn is over')
  world.run()
  assert.equal(socket.writes, 1)
  assert.equal(driver.counters.writes, 1)
  assert.equal(driver.counters.bytesWritten, seen.bytes().length)
  assert.equal(seen.bytes().toString().split(',').length, 121)
})

test('answers to one read leave in one write at the end of its callback, without a batch of their own', () => {
  const world = new World()
  const { engine, socket, peer } = oneEnd(world)
  world.run()
  const { transmits } = engine
  let writesDuringRead = -1
  engine.onReceive = () => {
    for (let i = 0; i < 50; i++) engine.send('x')
    writesDuringRead = socket.writes
    world.tick(() => assert.equal(socket.writes, 1, 'written before anything else runs'))
  }
  peer.write(Buffer.from('question'))
  world.run()
  assert.equal(writesDuringRead, 0)
  assert.equal(socket.writes, 1)
  assert.equal(engine.transmits, transmits + 1)
})

test('dirt that comes up while the engine transmits leaves in the next turn', () => {
  const world = new World()
  const { engine, socket, peer } = oneEnd(world)
  const seen = collect(peer)
  world.run()
  let late: string | undefined = 'late'
  const transmit = engine.transmit.bind(engine)
  engine.transmit = (out, now) => {
    const more = transmit(out, now)
    const text = late
    late = undefined
    if (text !== undefined) engine.send(text)
    return more
  }
  engine.send('early ')
  world.run()
  assert.equal(seen.bytes().toString(), 'early late')
  assert.equal(socket.writes, 2)
})

test('a turn takes at most turnLimit bytes, and another connection has its turn in between', () => {
  const world = new World()
  const order: string[] = []
  const options = { turnLimit: 10_000 }
  const a = oneEnd(world, { capacity: 1e9, highWaterMark: 1e9 }, options)
  const b = oneEnd(world, { capacity: 1e9, highWaterMark: 1e9 }, options)
  const seen = collect(a.peer)
  collect(b.peer)
  world.run()
  a.engine.onTransmit = () => order.push('a')
  b.engine.onTransmit = () => order.push('b')
  const body = Buffer.alloc(35_000, 'z')
  a.engine.send(body)
  b.engine.send(body)
  world.run()
  assert.deepEqual(order.slice(0, 8), ['a', 'b', 'a', 'b', 'a', 'b', 'a', 'b'])
  assert.equal(a.socket.writes, 4)
  assert.equal(seen.bytes().length, 35_000)
})

test('turns grow while they leave at once, and begin anew after one that did not', () => {
  const world = new World()
  const { engine, socket, peer } = oneEnd(world, { capacity: 8_000_000, highWaterMark: 1e9 })
  const sizes: number[] = []
  const write = socket.write.bind(socket)
  socket.write = (chunk, callback) => {
    sizes.push(chunk.length)
    return write(chunk, callback)
  }
  world.run()
  const [kib, mib] = [1_024, 1_048_576]
  // The first write of a connection says nothing of the path yet.
  engine.send('hello')
  world.run()
  const seen = collect(peer)
  engine.send(Buffer.alloc(4 * mib))
  world.run()
  assert.deepEqual(sizes.splice(0), [5, 256 * kib, 512 * kib, mib, mib, mib, 256 * kib])
  // Nobody reads: the ninth MiB stays with us, and what follows goes in small turns again.
  peer.pause()
  engine.send(Buffer.alloc(10 * mib))
  world.run()
  const [whole, cut] = [sizes.slice(0, -1), sizes.at(-1)]
  assert.ok(whole.every((size) => size === mib) && cut === mib, sizes.join(' '))
  sizes.length = 0
  peer.resume()
  world.run()
  assert.ok(sizes.length >= 16 && sizes.every((size) => size <= 64 * kib), sizes.join(' '))
  sizes.length = 0
  engine.send(Buffer.alloc(2 * mib))
  world.run()
  assert.deepEqual(sizes, [64 * kib, 256 * kib, 512 * kib, mib, 192 * kib])
  assert.equal(seen.bytes().length, 16 * mib + 5)
  // What all may have one turn of is one turn of the usual size.
  const fresh = oneEnd(world, { capacity: 8_000_000, highWaterMark: 1e9 }, { turnLimit: 100_000 })
  collect(fresh.peer)
  fresh.engine.send(Buffer.alloc(1_000_000))
  world.run()
  assert.equal(fresh.socket.writes, 11)
})

test('while the socket is backed up the engine is told that there is no room, and goes on when it drained', () => {
  const world = new World()
  const { engine, socket, peer } = oneEnd(world, { capacity: 50_000 }, { turnLimit: 100_000, highWater: 20_000 })
  peer.pause()
  world.run()
  const body = Buffer.alloc(400_000, 'q')
  engine.send(body)
  world.run()
  assert.equal(socket.writableLength, 65_536, 'one turn, of which the kernel took a part')
  const { transmits } = engine
  engine.send('more')
  world.run()
  // It has to know that its bytes wait, for its time limit; but it gets rid of none.
  assert.equal(engine.transmits, transmits + 1)
  assert.equal(socket.writableLength, 65_536)
  const seen = collect(peer)
  peer.resume()
  world.run()
  assert.equal(seen.bytes().length, 400_004)
  assert.equal(engine.queue.length, 0)
})

worldTest('bytes stay identical while earlier ones are in flight, and every buffer comes back', { seeds: 30 }, (world) => {
  const { random } = world
  const { engine, driver, peer } = oneEnd(
    world,
    {
      writes: random.chance(0.5) ? 'late' : 'sync',
      bandwidth: random.integer(100, 100_000),
      capacity: random.integer(1000, 300_000),
    },
    { highWater: random.integer(1000, 200_000), turnLimit: random.integer(5000, 400_000) },
  )
  const seen = collect(peer)
  const sent: Buffer[] = []
  for (let i = 0; i < 60; i++) {
    world.after(random.integer(0, 40), () => {
      const size = random.chance(0.8) ? random.integer(1, 3000) : random.integer(1, 150_000)
      const bytes = Buffer.alloc(size)
      for (let at = 0; at < size; at++) bytes[at] = (at * 7 + i) & 0xff
      sent.push(bytes)
      engine.send(bytes)
    })
  }
  world.run()
  assert.equal(hashOf(seen.bytes()), hashOf(...sent))
  assert.equal((driver as unknown as { output: { buffer: Buffer } }).output.buffer.length, 0, 'an idle connection pins no buffer')
})

test('buffers go back to the pool, so a second run needs no new ones', () => {
  const run = (): number => {
    const world = new World()
    const { engine, peer } = oneEnd(world, { writes: 'late', bandwidth: 1000 })
    collect(peer)
    for (let i = 0; i < 40; i++) world.after(i, () => engine.send(Buffer.alloc(30_000)))
    world.run()
    return pooledBytes()
  }
  const once = run()
  assert.ok(once > 0)
  assert.equal(run(), once)
})

test('wantsInput stops and continues reading', () => {
  const world = new World()
  const { engine, socket, peer } = oneEnd(world)
  engine.onReceive = () => {
    engine.wantsInput = false
  }
  world.run()
  peer.write(Buffer.from('one'))
  world.run()
  assert.ok(socket.isPaused())
  peer.write(Buffer.from('two'))
  world.run()
  assert.equal(engine.text, 'one')
  engine.wantsInput = true
  engine.onDirty()
  world.run()
  assert.equal(engine.text, 'onetwo')
})

test('an engine that wants no input at first gets none', () => {
  const world = new World()
  const [socket, peer] = world.link()
  const engine = new TestEngine()
  engine.wantsInput = false
  new StreamDriver(socket, world).attach(engine)
  peer.write(Buffer.from('early'))
  world.run()
  assert.deepEqual(engine.calls, [])
  engine.wantsInput = true
  engine.onDirty()
  world.run()
  assert.equal(engine.text, 'early')
})

test('closing "end" sends FIN behind the bytes and goes on reading', () => {
  const world = new World()
  const { engine, socket, peer } = oneEnd(world)
  const seen = collect(peer)
  engine.send('last words')
  engine.closing = 'end'
  world.run()
  assert.equal(seen.bytes().toString(), 'last words')
  assert.deepEqual(seen.events, ['end'])
  peer.write(Buffer.from('answer'))
  world.run()
  assert.equal(engine.text, 'answer')
  engine.onEnd = () => {
    engine.closing = 'close'
  }
  peer.end()
  world.run()
  assert.ok(socket.destroyed)
  assert.deepEqual(seen.events, ['end', 'close'])
  assert.deepEqual(engine.calls, ['receive 6', 'end', 'error NETWORK_ERROR'])
  assert.equal(world.armed, 0)
})

test('the peer may half-close and still get its answer', () => {
  const world = new World()
  const { engine, peer } = oneEnd(world)
  const seen = collect(peer)
  engine.onEnd = () => world.after(50, () => engine.send('answer'))
  peer.write(Buffer.from('question'))
  peer.end()
  world.run()
  assert.deepEqual(engine.calls, ['receive 8', 'end'])
  assert.equal(seen.bytes().toString(), 'answer')
})

test('closing "close" sends everything, then FIN, and lets the socket go; later input is dropped', () => {
  const world = new World()
  const { engine, socket, peer } = oneEnd(world, { bandwidth: 100, capacity: 3000 })
  const seen = collect(peer)
  engine.send(Buffer.alloc(20_000, 'b'))
  engine.closing = 'close'
  world.advance(5)
  peer.write(Buffer.from('too late'))
  world.run()
  assert.equal(seen.bytes().length, 20_000)
  assert.deepEqual(seen.events, ['end'])
  assert.ok(socket.destroyed)
  assert.deepEqual(engine.calls, ['error NETWORK_ERROR'])
  assert.equal(world.armed, 0)
})

test('a peer that never reads the last bytes is left after closeTimeout', () => {
  const world = new World()
  const { engine, socket, peer } = oneEnd(world, { capacity: 1000 }, { closeTimeout: 7000 })
  peer.pause()
  engine.send(Buffer.alloc(20_000))
  engine.closing = 'close'
  world.advance(6900)
  assert.ok(!socket.destroyed)
  world.advance(200)
  assert.ok(socket.destroyed)
  assert.equal(world.armed, 0)
})

test('a peer that never reads is left after closeTimeout even if the socket is backed up', () => {
  const world = new World()
  const { engine, socket, peer } = oneEnd(world, { capacity: 1000 }, { closeTimeout: 7000, highWater: 20_000 })
  peer.pause()
  engine.send(Buffer.alloc(50_000))
  world.run()
  engine.closing = 'close'
  engine.onDirty()
  world.advance(6900)
  assert.ok(!socket.destroyed)
  world.advance(200)
  assert.ok(socket.destroyed)
  assert.equal(world.armed, 0)
})

test('a peer that reads the last bytes slowly gets them all', () => {
  const world = new World()
  const { engine, socket, peer } = oneEnd(
    world,
    { capacity: 1000, bandwidth: 1 },
    { closeTimeout: 7000, highWater: 20_000, turnLimit: 5000 },
  )
  const seen = collect(peer)
  engine.send(Buffer.alloc(50_000))
  engine.closing = 'close'
  engine.onDirty()
  world.advance(30_000)
  assert.ok(!socket.destroyed)
  world.advance(30_000)
  assert.equal(seen.bytes().length, 50_000)
  assert.deepEqual(seen.events.slice(0, 1), ['end'])
  peer.end()
  world.advance(10_000)
  assert.ok(socket.destroyed)
  assert.equal(world.armed, 0)
})

test('closing "reset" drops the connection at once, even a backed-up one', () => {
  for (const backlog of [0, 300_000]) {
    const world = new World()
    const { engine, socket, peer } = oneEnd(world, { capacity: 1000 })
    const seen = collect(peer)
    if (backlog > 0) {
      peer.pause()
      engine.send(Buffer.alloc(backlog))
    }
    world.run()
    const { transmits } = engine
    engine.closing = 'reset'
    engine.onDirty()
    world.run()
    assert.ok(socket.destroyed)
    assert.ok(engine.transmits > transmits, 'handlers were told')
    peer.resume()
    world.run()
    assert.ok(seen.events.includes('ECONNRESET'), seen.events.join())
    assert.deepEqual(engine.calls, ['error NETWORK_ERROR'])
    assert.equal(world.armed, 0)
  }
})

test('a reset by the peer becomes PEER_RESET, once', () => {
  const world = new World()
  const { engine, peer } = oneEnd(world)
  engine.deadline = world.now() + 60_000
  world.run()
  peer.resetAndDestroy()
  world.run()
  assert.deepEqual(engine.calls, ['error PEER_RESET'])
  assert.equal((engine.error?.cause as NodeJS.ErrnoException | undefined)?.code, 'ECONNRESET')
  engine.send('nobody there')
  world.run()
  assert.equal(world.armed, 0)
})

test('a socket that somebody destroys becomes NETWORK_ERROR', () => {
  const world = new World()
  const { engine, socket } = oneEnd(world)
  world.run()
  socket.destroy()
  world.run()
  assert.deepEqual(engine.calls, ['error NETWORK_ERROR'])
})

test('attaching to a socket that is gone already tells the engine', () => {
  const world = new World()
  const [socket] = world.link()
  socket.destroy()
  world.run()
  const engine = new TestEngine()
  engine.deadline = world.now() + 1000
  new StreamDriver(socket, world).attach(engine)
  assert.deepEqual(engine.calls, [], 'not while attach runs')
  world.run()
  assert.deepEqual(engine.calls, ['error NETWORK_ERROR'])
  assert.equal(world.armed, 0)
})

test('deadlines expire on time, and moving one later arms nothing', () => {
  const world = new World()
  const { engine, peer } = oneEnd(world)
  let armings = 0
  const set = world.set.bind(world)
  world.set = (alarm, deadline) => {
    armings++
    set(alarm, deadline)
  }
  const expiries: number[] = []
  engine.onExpire = (now) => {
    expiries.push(now)
    engine.deadline = Infinity
  }
  engine.onReceive = () => {
    engine.deadline = world.now() + 1000
  }
  const start = world.now()
  for (let i = 0; i < 50; i++) world.after(i * 10, () => peer.write(Buffer.from('x')))
  world.run({ until: start + 5000 })
  // The last byte arrives at 491.
  assert.deepEqual(expiries, [start + 1491])
  assert.equal(armings, 2)
  engine.deadline = world.now() + 500
  engine.onDirty()
  world.run()
  engine.deadline = world.now() + 10
  engine.onDirty()
  const before = world.now()
  world.advance(600)
  assert.equal(expiries[1], before + 10, 'an earlier deadline counts')
  assert.equal(expiries.length, 2)
})

test('an engine that does not move its deadline does not spin', () => {
  const world = new World()
  const { engine } = oneEnd(world)
  engine.onExpire = () => {}
  engine.deadline = world.now()
  engine.onDirty()
  world.advance(10)
  const expiries = engine.calls.length
  assert.ok(expiries >= 9 && expiries <= 11, `${expiries}`)
})

test('what an expiry sends leaves in one write', () => {
  const world = new World()
  const { engine, socket, peer } = oneEnd(world)
  const seen = collect(peer)
  engine.deadline = world.now() + 5
  engine.onExpire = () => {
    engine.deadline = Infinity
    engine.send('408')
    engine.send(' bye')
    engine.closing = 'close'
  }
  world.advance(100)
  assert.equal(seen.bytes().toString(), '408 bye')
  assert.equal(socket.writes, 1)
  assert.deepEqual(seen.events, ['end'])
})

for (const where of ['receive', 'receiveEnd', 'transmit', 'expire', 'receiveError'] as const) {
  test(`an engine that throws in ${where} loses its connection only, and the bug is told`, () => {
    const world = new World()
    const bugs: unknown[] = []
    const { engine, socket, peer } = oneEnd(world, {}, { onBug: (error) => bugs.push(error) })
    const other = oneEnd(world)
    world.run()
    const bug = new Error('a bug')
    engine[where] = () => {
      throw bug
    }
    if (where === 'receive') peer.write(Buffer.from('x'))
    else if (where === 'receiveEnd') peer.end()
    else if (where === 'receiveError') peer.resetAndDestroy()
    else {
      engine.deadline = world.now()
      engine.onDirty()
    }
    other.peer.write(Buffer.from('fine'))
    world.advance(100)
    assert.deepEqual(bugs, [bug])
    assert.ok(socket.destroyed)
    assert.equal(other.engine.text, 'fine')
    assert.ok(!other.socket.destroyed)
    if (where !== 'receiveError') assert.deepEqual(engine.calls, ['error HANDLER_FAILED'])
    assert.equal(world.armed, 0)
  })
}

test('a report that throws does not matter', () => {
  const world = new World()
  const { engine, socket } = oneEnd(
    world,
    {},
    {
      onBug: () => {
        throw new Error('the report is broken too')
      },
    },
  )
  engine.transmit = () => {
    throw new Error('a bug (this warning belongs to a test)')
  }
  engine.onDirty()
  world.run()
  assert.ok(socket.destroyed)
})

test('counters may be shared', () => {
  const world = new World()
  const counters = { writes: 0, bytesRead: 0, bytesWritten: 0 }
  const ends = [oneEnd(world, {}, { counters }), oneEnd(world, {}, { counters })]
  for (const { engine, peer } of ends) {
    engine.send('12345')
    peer.write(Buffer.from('123'))
  }
  world.run()
  assert.deepEqual(counters, { writes: 2, bytesRead: 6, bytesWritten: 10 })
})

test('a driver takes one engine', () => {
  const { driver } = oneEnd(new World())
  assert.throws(() => driver.attach(new TestEngine()), UsageError)
})

test('detach leaves the socket to somebody else', () => {
  const world = new World()
  const { engine, driver, socket, peer } = oneEnd(world)
  const seen = collect(peer)
  engine.deadline = world.now() + 1000
  engine.onDirty()
  world.run()
  engine.onReceive = () => world.tick(() => driver.detach())
  peer.write(Buffer.from('first'))
  world.run()
  assert.equal(world.armed, 0)
  assert.ok(socket.isPaused())
  peer.write(Buffer.from('second'))
  engine.send('unheard')
  world.run()
  const next = new TestEngine()
  new StreamDriver(socket, world).attach(next)
  next.send('hello')
  world.run()
  assert.equal(engine.text, 'first')
  assert.equal(next.text, 'second')
  assert.equal(seen.bytes().toString(), 'hello')
  peer.resetAndDestroy()
  world.run()
  assert.deepEqual(engine.calls, ['receive 5'])
})
