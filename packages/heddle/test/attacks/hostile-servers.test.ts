import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client, type ClientExchangeHandler, type ClientOptions } from 'heddle/client'
import { requestHead, type Exchange, type Head } from 'heddle/http'
import { Recording, ScriptedPeer, socketTransport, World, type LinkOptions, type WorldListener } from 'heddle/testing'

/** A recording that sends its request once a connection is there. */
class Ask extends Recording implements ClientExchangeHandler {
  readonly request: Head

  constructor(path: string, method = 'GET') {
    super()
    this.request = requestHead(method, 'http', 'origin.test', path)
  }

  onOpen(exchange: Exchange): void {
    this.exchange = exchange
    exchange.sendHead(this.request, true)
  }
}

interface Stage {
  readonly world: World
  readonly client: Client
  readonly listener: WorldListener
  /** The server's ends of the connections the client made, in order. */
  readonly peers: ScriptedPeer[]
  ask(path: string, method?: string): Ask
  /** Closes the client and sees that nothing is left. */
  close(): Promise<void>
}

function stage(options: ClientOptions = {}, link: LinkOptions = {}): Stage {
  const world = new World({ seed: 2 })
  const peers: ScriptedPeer[] = []
  const listener = world.network.listen('origin.test', 80, ({ socket }) => peers.push(new ScriptedPeer(world, socketTransport(socket))), {
    link,
  })
  const client = new Client({ clock: world, connect: world.network.dial, ...options })
  return {
    world,
    client,
    listener,
    peers,
    ask(path, method) {
      const ask = new Ask(path, method)
      client.exchange('http://origin.test', ask)
      world.run()
      return ask
    },
    async close() {
      await world.complete(client.close())
      world.run()
      assert.equal(world.armed, 0, 'no alarm is left')
    },
  }
}

const request = /GET \/[a-z]* HTTP\/1\.1\r\n(?:[^\r]+\r\n)*\r\n/
const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Asks once more: the answer must come over a connection of its own. */
function assertNotReused(stage: Stage): void {
  const { peers, world } = stage
  const before = peers.length
  const next = stage.ask('/next')
  assert.equal(peers.length, before + 1, 'another connection is opened')
  const peer = peers[before] as ScriptedPeer
  peer.want('the next request', request)
  peer.send(ok)
  world.run()
  assert.deepEqual([next.head?.status, next.content.toString(), next.error], [200, 'ok', undefined])
}

const malformed: Record<string, string> = {
  garbage: 'hello there, how are you?\r\n\r\n',
  'TLS alert': '\x15\x03\x01\x00\x02\x02\x46\r\n\r\n',
  'no status': 'HTTP/1.1 \r\n\r\n',
  'a status of two digits': 'HTTP/1.1 20 OK\r\n\r\n',
  'a status of four digits': 'HTTP/1.1 2000 OK\r\n\r\n',
  'a status with a sign': 'HTTP/1.1 +20 OK\r\n\r\n',
  'status 099': 'HTTP/1.1 099 OK\r\n\r\n',
  'HTTP/2.0': 'HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'two different lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok',
  'a negative length': 'HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok',
  'a length beyond 2^53': 'HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok',
  'length and chunked': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'chunked not last': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'an unknown coding': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok',
  'chunked in HTTP/1.0': 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'chunked in a 204': 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a space before the colon': 'HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok',
  'a folded line': 'HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\nok',
  'a bare LF': 'HTTP/1.1 200 OK\r\nX-A: b\nContent-Length: 2\r\n\r\nok',
  'a NUL': 'HTTP/1.1 200 OK\r\nX-A: \0\r\nContent-Length: 2\r\n\r\nok',
  '101 that nobody asked for': 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
  '101 field lines': `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(101)}\r\n`,
  'a section beyond 64 KiB': `HTTP/1.1 200 OK\r\n${`X-A: ${'a'.repeat(8000)}\r\n`.repeat(9)}\r\n`,
  'a line that never ends': `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(200_000)}`,
  'a reason that never ends': `HTTP/1.1 200 ${'a'.repeat(200_000)}`,
}
for (const [name, bytes] of Object.entries(malformed)) {
  test(`a malformed response fails its exchange, and the connection is not used again: ${name}`, async () => {
    for (const splits of ['none', 'bytewise'] as const) {
      if (splits === 'bytewise' && bytes.length > 1000) continue
      const scene = stage({}, { splits })
      const ask = scene.ask('/first')
      const [peer] = scene.peers
      peer?.want('the request', request)
      peer?.send(bytes)
      scene.world.run()
      assert.ok(ask.error?.code === 'PROTOCOL_ERROR' || ask.error?.code === 'FIELDS_TOO_LARGE', `${splits}: ${ask.lines.join(' | ')}`)
      assert.equal(ask.head, undefined)
      assert.notEqual(peer?.closedBy, 'no')
      assertNotReused(scene)
      await scene.close()
    }
  })
}

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const faultyBodies: Record<string, string> = {
  'a chunk size that is no number': `${chunked}x\r\nok\r\n0\r\n\r\n`,
  'a chunk longer than its size': `${chunked}1\r\nok\r\n0\r\n\r\n`,
  'a chunk size that wraps 2^64': `${chunked}10000000000000002\r\nok\r\n0\r\n\r\n`,
  'a bare LF behind a size': `${chunked}2\nok\r\n0\r\n\r\n`,
  'extensions beyond 4 KiB': `${chunked}2;${'x'.repeat(5000)}\r\nok\r\n0\r\n\r\n`,
  'a malformed trailer': `${chunked}2\r\nok\r\n0\r\nX : y\r\n\r\n`,
  'a trailer flood': `${chunked}2\r\nok\r\n0\r\n${'A: b\r\n'.repeat(101)}\r\n`,
}
for (const [name, bytes] of Object.entries(faultyBodies)) {
  test(`a faulty body is never completed: ${name}`, async () => {
    const scene = stage()
    const ask = scene.ask('/first')
    scene.peers[0]?.want('the request', request)
    scene.peers[0]?.send(bytes)
    scene.world.run()
    assert.equal(ask.head?.status, 200)
    assert.equal(ask.ended, false)
    assert.ok(ask.error !== undefined)
    assertNotReused(scene)
    await scene.close()
  })
}

test('a body cut short is an error, by length and by chunks, on FIN and on RST', async () => {
  for (const head of ['HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n', chunked]) {
    for (const how of ['end', 'reset'] as const) {
      const scene = stage()
      const ask = scene.ask('/first')
      const [peer] = scene.peers
      peer?.want('the request', request)
      peer?.send(`${head}2\r\nok`)
      scene.world.run()
      peer?.[how]()
      scene.world.run()
      assert.equal(ask.ended, false, `${head} ${how}`)
      assert.equal(ask.error?.code, how === 'end' ? 'MESSAGE_TRUNCATED' : 'PEER_RESET')
      assert.equal(ask.error.unprocessed, false)
      assertNotReused(scene)
      await scene.close()
    }
  }
})

test('an extra response is given to nobody: not with the first, not while idle', async () => {
  for (const early of [true, false]) {
    const scene = stage()
    const ask = scene.ask('/first')
    const [peer] = scene.peers
    peer?.want('the request', request)
    const forged = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged'
    if (early) peer?.send(ok + forged)
    else {
      peer?.send(ok)
      scene.world.run()
      peer?.send(forged)
    }
    scene.world.run()
    assert.equal(ask.content.toString(), 'ok')
    assert.equal(ask.error, undefined)
    assertNotReused(scene)
    await scene.close()
  }
})

test('a server that speaks before it is asked is not listened to', async () => {
  const scene = stage()
  scene.listener.stop()
  const peers: ScriptedPeer[] = []
  scene.world.network.listen('origin.test', 80, ({ socket }) => {
    const peer = new ScriptedPeer(scene.world, socketTransport(socket))
    if (peers.push(peer) === 1) peer.send('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged')
  })
  const ask = new Ask('/first')
  // The forged answer is there before the request has left.
  ask.onOpen = (exchange) => {
    ask.exchange = exchange
    scene.world.after(100, () => exchange.sendHead(ask.request, true))
  }
  scene.client.exchange('http://origin.test', ask)
  scene.world.run()
  assert.equal(ask.head, undefined)
  assert.equal(ask.error?.unprocessed, true)
  assert.notEqual(peers[0]?.closedBy, 'no')
  await scene.close()
})

test('a flood of 1xx responses ends the exchange', async () => {
  const scene = stage()
  const ask = scene.ask('/first')
  scene.peers[0]?.want('the request', request)
  scene.peers[0]?.send('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(10_000))
  scene.world.run()
  assert.equal(ask.informational.length, 100)
  assert.equal(ask.error?.code, 'PROTOCOL_ERROR')
  assert.notEqual(scene.peers[0]?.closedBy, 'no')
  await scene.close()
})

test('a head that never comes, or comes byte by byte, is a time-out', async () => {
  for (const trickles of [false, true]) {
    const scene = stage()
    const { world } = scene
    const ask = scene.ask('/first')
    const [peer] = scene.peers
    peer?.want('the request', request)
    const start = world.now()
    const trickle = (): void => {
      if (peer?.closedBy !== 'no' || world.now() > start + 200_000) return
      peer.send(peer.received.length === 0 && world.now() === start ? 'HTTP/1.1 200 OK\r\nX-A: ' : 'a')
      world.after(1000, trickle)
    }
    if (trickles) trickle()
    world.run({ until: start + 59_000 })
    assert.equal(ask.closed, false)
    world.run({ until: start + 62_000 })
    assert.equal(ask.error?.code, 'HEAD_TIMEOUT')
    await scene.close()
  }
})

test('an endless response that was cancelled is drained a little, then the connection is dropped', async () => {
  const scene = stage()
  const { world, client } = scene
  const ask = scene.ask('/first')
  const [peer] = scene.peers
  peer?.want('the request', request)
  peer?.send(chunked)
  const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
  let sent = 0
  const feed = (): void => {
    if (peer?.closedBy !== 'no') return
    sent += chunk.length
    peer.send(chunk)
    world.after(1, feed)
  }
  feed()
  world.advance(5)
  ask.exchange?.discard()
  world.advance(1000)
  assert.notEqual(peer?.closedBy, 'no')
  assert.ok(sent < 1_500_000, `${sent} bytes were taken`)
  assert.ok(ask.closed)
  const { drained, abandoned, abandonedBytes } = client.stats()
  assert.deepEqual([drained, abandoned], [0, 1])
  assert.ok(abandonedBytes < 600_000, `${abandonedBytes} bytes were drained`)
  await scene.close()
})

test('a client that reads slowly stops a server that sends fast', async () => {
  const scene = stage()
  const { world } = scene
  const ask = new Ask('/first')
  ask.autoConsume = false
  scene.client.exchange('http://origin.test', ask)
  world.run()
  const [peer] = scene.peers
  peer?.want('the request', request)
  peer?.send('HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n').send(Buffer.alloc(10_000_000))
  world.run()
  assert.ok(ask.received <= 131_072, `${ask.received} bytes were handed over`)
  ask.autoConsume = true
  ask.exchange?.consume(ask.received)
  world.run()
  assert.equal(ask.received, 10_000_000)
  assert.equal(ask.error, undefined)
  await scene.close()
})
