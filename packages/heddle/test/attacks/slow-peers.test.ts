import assert from 'node:assert/strict'
import { test } from 'node:test'
import { World, type ScriptedPeer } from 'heddle/testing'
import { worldServer } from './target.ts'

const host = 'Host: origin.test\r\n'
const head = /HTTP\/1\.1 (\d{3}) [^\r]*\r\n(?:[^\r]+\r\n)*\r\n/

/** Sends `text` a byte at a time, one every `pause` ms, until the other side closes. */
function trickle(world: World, peer: ScriptedPeer, text: string, pause: number): void {
  const next = (at: number): void => {
    if (at >= text.length || peer.closedBy !== 'no') return
    peer.send(text.slice(at, at + 1))
    world.after(pause, () => next(at + 1))
  }
  next(0)
}

test('slowloris: a head that comes byte by byte is cut after 10 s with 408, however steadily it comes', async () => {
  const { world, asked, connect, close } = await worldServer(new World({ start: 0 }))
  const { peer } = connect()
  const start = world.now()
  trickle(world, peer, `GET / HTTP/1.1\r\n${host}X-A: ${'a'.repeat(5000)}\r\n\r\n`, 500)
  world.run({ until: start + 9900 })
  assert.equal(peer.received.length, 0)
  world.run({ until: start + 10_500 })
  assert.match(peer.received.toString('latin1'), /^HTTP\/1\.1 408 /)
  world.advance(2000)
  assert.notEqual(peer.closedBy, 'no')
  assert.deepEqual(asked, [])
  await close()
})

test('a connection that says nothing at all is closed', async () => {
  const { world, server, connect, close } = await worldServer(new World())
  const { peer } = connect()
  world.advance(61_000)
  assert.notEqual(peer.closedBy, 'no')
  assert.equal(server.stats().connections, 0)
  await close()
})

test('2,000 slow heads at once: every one is cut, and a good client is served meanwhile', async () => {
  const { world, server, asked, connect, close } = await worldServer(new World())
  const peers = Array.from({ length: 2000 }, () => connect().peer)
  for (const peer of peers) trickle(world, peer, `GET /slow HTTP/1.1\r\n${host}X-A: ${'a'.repeat(5000)}\r\n\r\n`, 3000)
  const good = connect().peer
  for (let second = 0; second < 15; second++) {
    good.send(`GET /good HTTP/1.1\r\n${host}\r\n`)
    world.advance(1000)
    good.want('the good client is served', head)
    good.want('with content', '0\n')
  }
  assert.equal(server.stats().connections, 1)
  assert.ok(peers.every((peer) => peer.received.toString('latin1').startsWith('HTTP/1.1 408 ')))
  assert.deepEqual(new Set(asked), new Set(['/good']))
  good.end()
  await close()
})

test('slow body: content that stops is given up after 30 s with 408', async () => {
  for (const framing of ['Content-Length: 10', 'Transfer-Encoding: chunked']) {
    const { world, connect, close } = await worldServer(new World())
    const { peer } = connect()
    peer.send(`POST / HTTP/1.1\r\n${host}${framing}\r\n\r\n3\r\nabc`)
    world.advance(29_500)
    peer.wantIdle(`${framing}: it may still come`)
    world.advance(1000)
    assert.match(peer.want(`${framing}: given up`, head).toString('latin1'), / 408 /)
    world.advance(2000)
    assert.notEqual(peer.closedBy, 'no')
    await close()
  }
})

test('an idle connection is kept for 60 s after its last answer, and no longer', async () => {
  const { world, connect, close } = await worldServer(new World())
  const { peer } = connect()
  world.advance(5000)
  peer.send(`GET / HTTP/1.1\r\n${host}\r\n`)
  peer.want('an answer', head)
  peer.want('its content', '0\n')
  world.advance(59_000)
  peer.wantIdle('it may ask again')
  world.advance(1500)
  peer.wantClose('it did not', 'end')
  peer.end()
  await close()
})

test('unread content that trickles in behind the answer is read for half a second, then the connection closes', async () => {
  const { world, server, connect, close } = await worldServer(new World())
  const { peer } = connect()
  peer.send(`POST /size/10 HTTP/1.1\r\n${host}Content-Length: 100000\r\n\r\n`)
  trickle(world, peer, 'x'.repeat(100_000), 100)
  peer.world.run({ until: world.now() + 100 })
  assert.match(peer.received.toString('latin1'), / 200 /)
  world.advance(2000)
  assert.equal(server.stats().connections, 0)
  assert.notEqual(peer.closedBy, 'no')
  await close()
})

test('slow reader: a client that reads nothing is dropped after 60 s, and its content is not produced meanwhile', async () => {
  const { world, server, connect, close } = await worldServer(new World())
  const { peer, socket } = connect()
  socket.pause()
  peer.send(`GET /size/100000000 HTTP/1.1\r\n${host}\r\n`)
  world.advance(55_000)
  const { bytesWritten, connections } = server.stats()
  assert.equal(connections, 1)
  assert.ok(bytesWritten < 2_000_000, `${bytesWritten} bytes were produced for nobody`)
  world.advance(10_000)
  assert.equal(server.stats().connections, 0)
  socket.destroy()
  await close()
})

test('slow reader: a client that keeps reading a little is served to the end', async () => {
  const { world, server, connect, close } = await worldServer(new World())
  const { peer, socket } = connect({ capacity: 60_000 })
  socket.pause()
  peer.send(`GET /size/1000000 HTTP/1.1\r\n${host}\r\n`)
  // What the pipe holds, every 25 s, for several minutes: each piece comes within the time limit, the whole does not.
  let rounds = 0
  for (; peer.received.length < 1_000_000 && rounds < 50; rounds++) {
    world.advance(25_000)
    const before = peer.received.length
    socket.resume()
    while (peer.received.length < before + 60_000 && world.step());
    socket.pause()
  }
  assert.ok(rounds > 10, `${rounds} rounds`)
  assert.ok(peer.received.length > 1_000_000, `${peer.received.length} bytes came`)
  assert.equal(server.stats().exchanges, 0)
  socket.resume()
  peer.end()
  await close()
})

test('clients that ask and vanish leave nothing behind', async () => {
  const { world, server, connect, close } = await worldServer(new World())
  for (let i = 0; i < 300; i++) {
    const { peer, socket } = connect()
    peer.send(
      i % 3 === 0
        ? `GET /size/1000000 HTTP/1.1\r\n${host}\r\n`
        : i % 3 === 1
          ? `POST / HTTP/1.1\r\n${host}Content-Length: 9\r\n\r\nx`
          : 'GE',
    )
    for (let steps = world.random.integer(0, 10); steps > 0; steps--) world.step()
    // Gone without FIN or RST, as when a cable is pulled.
    socket.link.lose(i % 2 === 0 ? 'silence' : 'reset')
  }
  world.advance(200_000)
  const { connections, exchanges, deadlines } = server.stats()
  assert.deepEqual([connections, exchanges, deadlines], [0, 0, 0])
  await close()
})

test('a client that half-closes gets its answer, then the connection ends', async () => {
  const { world, connect, close } = await worldServer(new World())
  const { peer } = connect()
  peer.send(`GET /size/100000 HTTP/1.1\r\n${host}\r\n`).end()
  peer.want('the head', head)
  peer.want('the content', (received) => (received.length >= 100_000 ? 100_000 : -1))
  world.advance(2000)
  peer.wantClose('nothing more can come', 'end')
  await close()
})
