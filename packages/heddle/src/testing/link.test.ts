import assert from 'node:assert/strict'
import { createServer, connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { test } from 'node:test'
import { worldTest } from './seeds.ts'
import type { LinkSocket } from './link-socket.ts'
import type { LinkOptions } from './link.ts'
import { World } from './world.ts'

/** What both kinds of socket have; the twin test runs the same story on either. */
type AnySocket = Socket | LinkSocket
type Story = (a: AnySocket, b: AnySocket, log: string[], pause: () => Promise<void>) => Promise<void>

function watch(name: string, socket: AnySocket, log: string[]): void {
  const emitter = socket as Socket
  emitter.on('end', () => log.push(`${name} end`))
  emitter.on('finish', () => log.push(`${name} finish`))
  emitter.on('drain', () => log.push(`${name} drain`))
  emitter.on('error', (error) => log.push(`${name} error ${(error as NodeJS.ErrnoException).code}`))
  emitter.on('close', () => log.push(`${name} close`))
}

function read(name: string, socket: AnySocket, log: string[]): void {
  ;(socket as Socket).on('data', (chunk) => log.push(`${name} data ${String(chunk)}`))
}

const stories: Record<string, Story> = {
  'half-close one way, then the other': async (a, b, log, pause) => {
    read('a', a, log)
    read('b', b, log)
    a.write(Buffer.from('ping'), () => log.push('a written'))
    a.end()
    await pause()
    b.write(Buffer.from('pong'))
    await pause()
    b.end()
    await pause()
  },
  'a write that fits: length 0 at once, the callback later': async (a, b, log, pause) => {
    read('b', b, log)
    const accepted = a.write(Buffer.from('x'), () => log.push('a written'))
    log.push(`accepted ${accepted}, length ${a.writableLength}`)
    await pause()
    a.destroy()
    await pause()
    b.destroy()
    await pause()
  },
  'a write at the high water mark is refused and followed by drain': async (a, b, log, pause) => {
    ;(b as Socket).on('data', () => {})
    const accepted = a.write(Buffer.alloc(65_536), () => log.push('a written'))
    log.push(`accepted ${accepted}`)
    await pause()
    a.destroy()
    b.destroy()
    await pause()
  },
  'a paused socket sees no FIN until it reads': async (a, b, log, pause) => {
    read('b', b, log)
    b.pause()
    a.write(Buffer.from('late'))
    a.end()
    await pause()
    log.push('resuming')
    b.resume()
    await pause()
    b.end()
    read('a', a, log)
    await pause()
  },
  'a reset: an error, then close': async (a, b, log, pause) => {
    read('a', a, log)
    read('b', b, log)
    a.resetAndDestroy()
    await pause()
  },
  'destroying with unread data is a reset': async (a, b, log, pause) => {
    read('a', a, log)
    a.write(Buffer.from('unread'))
    await pause()
    b.destroy()
    await pause()
  },
  'writing to a peer that is gone ends in a reset': async (a, b, log, pause) => {
    read('a', a, log)
    read('b', b, log)
    b.destroy()
    await pause()
    a.write(Buffer.from('1'))
    await pause()
    await pause()
    log.push(`destroyed ${a.destroyed}`)
    a.destroy()
    await pause()
  },
  'write after destroy fails in the callback only': async (a, b, log, pause) => {
    read('b', b, log)
    a.destroy()
    const accepted = a.write(Buffer.from('x'), (error) => log.push(`failed ${(error as NodeJS.ErrnoException).code}`))
    log.push(`accepted ${accepted}`)
    await pause()
    b.destroy()
    await pause()
  },
  'write after end is an error': async (a, b, log, pause) => {
    read('b', b, log)
    read('a', a, log)
    a.end()
    await pause()
    a.write(Buffer.from('x'), (error) => log.push(`failed ${(error as NodeJS.ErrnoException).code}`))
    await pause()
    b.destroy()
    await pause()
  },
  'destroy twice closes once': async (a, b, log, pause) => {
    read('b', b, log)
    a.destroy()
    a.destroy()
    await pause()
    b.end()
    b.end()
    await pause()
  },
}

async function onLink(story: Story): Promise<string[]> {
  const world = new World({ seed: 1 })
  const [a, b] = world.link()
  const log: string[] = []
  watch('a', a, log)
  watch('b', b, log)
  await story(a, b, log, async () => {
    await world.settle()
  })
  return log
}

async function onLoopback(story: Story): Promise<string[]> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const a = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const [[b]] = (await Promise.all([once(server, 'connection'), once(a, 'connect')])) as [[Socket], unknown]
  // pauseOnConnect left the server's socket explicitly paused: the stories begin as a fresh socket does.
  ;(b as unknown as { _readableState: { flowing: boolean | null } })._readableState.flowing = null
  const log: string[] = []
  watch('a', a, log)
  watch('b', b, log)
  await story(a, b, log, () => new Promise((resolve) => setTimeout(resolve, 15)))
  a.destroy()
  b.destroy()
  server.close()
  return log
}

for (const [name, story] of Object.entries(stories)) {
  test(`a link behaves as a TCP socket does: ${name}`, async () => {
    const [link, loopback] = await Promise.all([onLink(story), onLoopback(story)])
    assert.ok(link.length > 0)
    // Events of the two ends are not ordered against each other on a real network.
    const of = (log: string[], end: string): string[] => log.filter((line) => !line.startsWith(end === 'a' ? 'b ' : 'a '))
    assert.deepEqual(of(link, 'a'), of(loopback, 'a'))
    assert.deepEqual(of(link, 'b'), of(loopback, 'b'))
  })
}

/** Sends `chunks` from one end and returns what arrived, as the pieces it came in. */
function transfer(world: World, options: LinkOptions, chunks: Buffer[]): Buffer[] {
  const [a, b] = world.link(options)
  const got: Buffer[] = []
  b.on('data', (chunk: Uint8Array) => got.push(Buffer.from(chunk)))
  for (const chunk of chunks) a.write(chunk)
  a.end()
  world.run()
  assert.equal(b.readableEnded, true)
  return got
}

worldTest('every byte arrives once and in order, whatever the link', { seeds: 50 }, (world) => {
  const { random } = world
  const chunks = Array.from({ length: random.integer(1, 20) }, () => random.bytes(random.length(30_000)))
  const splits = random.pick(['none', 'random', 'bytewise'] as const)
  if (splits === 'bytewise') chunks.length = 1
  const options: LinkOptions = {
    splits,
    delay: random.integer(0, 20),
    jitter: random.pick([0, 5]),
    bandwidth: random.pick([Infinity, 1000]),
    capacity: random.pick([1000, 65_536, 262_144]),
    writes: random.pick(['sync', 'late'] as const),
  }
  const got = transfer(world, options, chunks)
  assert.deepEqual(Buffer.concat(got), Buffer.concat(chunks))
  if (splits === 'bytewise') assert.ok(got.every((piece) => piece.length === 1))
})

test('the same seed cuts and delays the same way', () => {
  const cuts = (seed: number): number[] => {
    const world = new World({ seed })
    return transfer(world, { splits: 'random', jitter: 5 }, [Buffer.alloc(10_000), Buffer.alloc(5000)]).map((piece) => piece.length)
  }
  assert.deepEqual(cuts(4), cuts(4))
  assert.notDeepEqual(cuts(4), cuts(5))
})

test('delay and bandwidth set the time of arrival', () => {
  const world = new World({ start: 0 })
  const [a, b] = world.link({ delay: 30, bandwidth: 100 })
  const arrivals: number[] = []
  b.on('data', () => arrivals.push(world.now()))
  a.write(Buffer.alloc(1000))
  a.write(Buffer.alloc(500))
  world.run()
  assert.deepEqual(arrivals, [40, 45])
})

test('a receiver that does not read stops the sender at the capacity', () => {
  const world = new World()
  const [a, b] = world.link({ capacity: 10_000 })
  b.pause()
  const log: string[] = []
  a.on('drain', () => log.push('drain'))
  assert.equal(
    a.write(Buffer.alloc(8000), () => log.push('first')),
    true,
  )
  assert.equal(a.writableLength, 0)
  a.write(Buffer.alloc(8000), () => log.push('second'))
  assert.equal(a.write(Buffer.alloc(60_000)), false)
  assert.equal(a.writableLength, 68_000)
  world.run()
  assert.deepEqual(log, ['first'])
  let got = 0
  b.on('data', (chunk: Uint8Array) => {
    got += chunk.length
  })
  b.resume()
  world.run()
  assert.equal(got, 76_000)
  assert.equal(a.writableLength, 0)
  assert.deepEqual(log, ['first', 'second', 'drain'])
})

test('with late writes a chunk changed after write is seen changed, and is released only by its callback', () => {
  const world = new World()
  const [a, b] = world.link({ writes: 'late' })
  const got: string[] = []
  b.on('data', (chunk: Uint8Array) => got.push(Buffer.from(chunk).toString()))
  const chunk = Buffer.from('good')
  a.write(chunk)
  assert.equal(a.writableLength, 4)
  chunk.write('evil')
  world.run()
  assert.deepEqual(got, ['evil'])
})

test('a chunk kept after the data listener returned is overwritten', () => {
  const world = new World()
  const [a, b] = world.link()
  let kept: Uint8Array = Buffer.alloc(0)
  b.on('data', (chunk: Uint8Array) => {
    kept = chunk
  })
  a.write(Buffer.from('abc'))
  world.run()
  assert.deepEqual([...kept], [0xdb, 0xdb, 0xdb])
})

test('a connection lost after so many bytes delivers exactly those, then resets both ends', () => {
  for (const splits of ['none', 'random', 'bytewise'] as const) {
    const world = new World()
    const [a, b] = world.link({ loseAt: { bytes: 5 }, splits })
    const log: string[] = []
    let got = ''
    b.on('data', (chunk: Uint8Array) => {
      got += Buffer.from(chunk).toString()
    })
    a.on('data', () => {})
    watch('a', a, log)
    watch('b', b, log)
    a.write(Buffer.from('12345678'))
    world.run()
    assert.equal(got, '12345')
    assert.deepEqual(log.toSorted(), ['a close', 'a error ECONNRESET', 'b close', 'b error ECONNRESET'])
  }
})

test('a connection lost in silence says nothing to either end', () => {
  const world = new World({ start: 0 })
  const [a, b] = world.link({ loseAt: { instant: 50 }, loss: 'silence' })
  const log: string[] = []
  read('b', b, log)
  watch('a', a, log)
  watch('b', b, log)
  world.after(40, () => a.write(Buffer.from('before')))
  world.after(60, () => a.write(Buffer.from('after')))
  world.after(70, () => a.end())
  world.advance(100_000)
  assert.deepEqual(log, ['b data before', 'a finish'])
})

test('an end that may not be half open answers FIN with FIN', () => {
  const world = new World()
  const [a, b] = world.link({ allowHalfOpen: false })
  const log: string[] = []
  a.on('data', () => {})
  b.on('data', () => {})
  watch('a', a, log)
  watch('b', b, log)
  a.end()
  world.run()
  assert.deepEqual(log, ['a finish', 'b end', 'b finish', 'b close', 'a end', 'a close'])
})

test('a reset overtakes what had not left yet', () => {
  const world = new World()
  const [a, b] = world.link({ bandwidth: 1 })
  let got = 0
  const log: string[] = []
  b.on('data', (chunk: Uint8Array) => {
    got += chunk.length
  })
  watch('b', b, log)
  for (let i = 0; i < 10; i++) a.write(Buffer.alloc(10))
  world.after(25, () => a.resetAndDestroy())
  world.run()
  assert.equal(got, 20)
  assert.deepEqual(log, ['b error ECONNRESET', 'b close'])
})
