import assert from 'node:assert/strict'
import { test } from 'node:test'
import { World } from 'heddle/testing'
import { worldServer, type WorldServer } from './target.ts'

const host = 'Host: origin.test\r\n'
const upgrade = `GET /chat HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: echo\r\n\r\n`
const switching = /HTTP\/1\.1 101 [^\r]*\r\n(?:[^\r]+\r\n)*\r\n/
const tunnelServer = (): Promise<WorldServer> => worldServer(new World(), { upgrades: ['echo'] })

test('half-open tunnels: a client that ends its side gets the rest, and then nothing is left', async () => {
  const { world, server, connect, close } = await tunnelServer()
  for (let i = 0; i < 100; i++) {
    const { peer } = connect()
    peer.send(upgrade)
    peer.want('the tunnel opens', switching)
    peer.send('hello').end()
    peer.want('the echo', 'hello')
    peer.wantClose('the other side ends too', 'end')
  }
  world.run()
  assert.deepEqual([server.stats().connections, server.stats().exchanges], [0, 0])
  await close()
})

test('a tunnel whose client reads nothing does not fill the memory', async () => {
  const { world, server, connect, close } = await tunnelServer()
  const { peer, socket } = connect()
  peer.send(upgrade)
  peer.want('the tunnel opens', switching)
  socket.pause()
  const chunk = Buffer.alloc(65_536)
  for (let i = 0; i < 200; i++) peer.send(chunk)
  world.advance(10_000)
  const { bytesRead } = server.stats()
  assert.ok(bytesRead < 2_000_000, `${bytesRead} bytes were read`)
  world.advance(120_000)
  assert.equal(server.stats().connections, 0, 'a peer that takes nothing is dropped')
  socket.destroy()
  await close()
})

test('tunnels whose clients reset, at any step, leave nothing', async () => {
  const { world, server, connect, close } = await tunnelServer()
  for (let i = 0; i < 300; i++) {
    const { peer } = connect()
    peer.send(upgrade).send('x'.repeat(world.random.length(100_000)))
    for (let steps = world.random.integer(0, 30); steps > 0; steps--) world.step()
    peer.reset()
  }
  world.advance(1000)
  assert.deepEqual([server.stats().connections, server.stats().exchanges], [0, 0])
  await close()
})

test('bytes behind an upgrade that is refused or not offered are not taken for a tunnel', async () => {
  const { asked, connect, close } = await worldServer(new World())
  const { peer } = connect()
  peer.send(upgrade).send(`GET /next HTTP/1.1\r\n${host}\r\n`)
  const ok = /HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)*\r\n0\n/
  peer.want('an ordinary answer', ok)
  peer.want('and the next request is a request', ok)
  assert.deepEqual(asked, ['/chat', '/next'])
  peer.end()
  await close()
})

test('close ends tunnels at its deadline', async () => {
  const { world, server, connect } = await tunnelServer()
  const { peer } = connect()
  peer.send(upgrade)
  peer.want('the tunnel opens', switching)
  await world.complete(server.close({ deadline: 1000 }))
  assert.equal(server.stats().connections, 0)
  assert.equal(world.armed, 0)
})
