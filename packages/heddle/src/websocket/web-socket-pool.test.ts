/** WebSockets at both ends of the seeded world, over HTTP/1.1 connections and over the streams of one of HTTP/2. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from '../client/index.ts'
import { Response, serve, type Server } from '../server/index.ts'
import { World, worldTest, type LinkOptions } from '../testing/index.ts'
import { upgrade } from './upgrade.ts'
import { WebSocket } from './web-socket.ts'

interface Place {
  readonly world: World
  readonly client: Client
  readonly server: Server
  /** The server's ends. */
  readonly accepted: WebSocket[]
  open(): WebSocket
}

type Version = 'h1' | 'h2'

/** A server at `ws://h/` and a client that speaks `version` with it. */
async function place(world: World, version: Version, serverSide: (socket: WebSocket) => void, link: LinkOptions = {}): Promise<Place> {
  const accepted: WebSocket[] = []
  const server = await serve({
    clock: world,
    listen: world.network.serve,
    hostname: 'h',
    port: 80,
    websocket: true,
    onError: () => {},
    fetch(request) {
      if (request.headers.get('upgrade') === null) return new Response('page')
      const { response, socket } = upgrade(request, { limits: { closeTimeout: 300 } })
      accepted.push(socket)
      serverSide(socket)
      return response
    },
  })
  const client = new Client({
    clock: world,
    connect: (target, options, done) => world.network.connect('h', 'port' in target ? target.port : 0, done, link) ?? options,
    protocols: [version],
    h2c: version === 'h2',
  })
  const open = (): WebSocket => new WebSocket('ws://h/', { client, limits: { closeTimeout: 300 }, handshakeTimeout: 2000 })
  return { world, client, server, accepted, open }
}

async function assertGone({ world, client, server }: Place): Promise<void> {
  await world.complete(Promise.all([client.close(), server.close({ deadline: 1000 })]))
  await world.settle()
  const { streams, connections, waiting, timers } = client.stats()
  assert.deepEqual({ streams, connections, waiting, timers }, { streams: 0, connections: 0, waiting: 0, timers: 0 })
  assert.deepEqual([server.stats().exchanges, server.stats().connections, world.armed], [0, 0, 0])
}

for (const version of ['h1', 'h2'] as const) {
  test(`${version}: many at once, each with its own messages`, async () => {
    const set = await place(new World(), version, (socket) => {
      socket.onmessage = ({ data }) => socket.send(`${data} back`)
    })
    const { world, client, open } = set
    const heard: string[] = []
    const all = Array.from({ length: 30 }, (_, i) => {
      const webSocket = open()
      webSocket.onopen = () => webSocket.send(`${i}`)
      webSocket.onmessage = ({ data }) => {
        heard.push(String(data))
        webSocket.close(1000)
      }
      return webSocket
    })
    const ends = await world.complete(Promise.all(all.map(({ closed }) => closed)))
    assert.deepEqual(
      heard.toSorted((a, b) => Number.parseInt(a) - Number.parseInt(b)),
      Array.from({ length: 30 }, (_, i) => `${i} back`),
    )
    assert.ok(ends.every(({ code, wasClean }) => code === 1000 && wasClean))
    const { http1, http2 } = client.stats()
    assert.deepEqual([http1.dialled, http2.dialled], version === 'h1' ? [30, 0] : [0, 1])
    await assertGone(set)
  })

  test(`${version}: a day of silence ends nothing`, async () => {
    const set = await place(new World(), version, (socket) => {
      socket.onmessage = ({ data }) => socket.send(data as string)
    })
    const { world, open } = set
    const webSocket = open()
    await world.complete(webSocket.opened)
    world.advance(86_400_000)
    webSocket.send('still there?')
    assert.equal(await world.complete(webSocket.read()), 'still there?')
    webSocket.close()
    await assertGone(set)
  })

  test(`${version}: a client that closes tells every server 1001, and a server that closes tells every client`, async () => {
    for (const who of ['client', 'server'] as const) {
      const ends: string[] = []
      const set = await place(new World(), version, (socket) => {
        socket.onclose = ({ code }) => ends.push(`server ${code}`)
      })
      const { world, client, server, open } = set
      const all = [open(), open(), open()]
      await world.complete(Promise.all(all.map(({ opened }) => opened)))
      for (const webSocket of all) webSocket.onclose = ({ code, wasClean }) => ends.push(`client ${code} ${wasClean}`)
      await world.complete(who === 'client' ? client.close() : server.close())
      await world.settle()
      assert.deepEqual(ends.toSorted(), [...Array<string>(3).fill('client 1001 true'), ...Array<string>(3).fill('server 1001')], who)
      await assertGone(set)
    }
  })

  test(`${version}: a connection that is lost ends what was on it, with an error for each`, async () => {
    const set = await place(new World(), version, () => {})
    const { world, client, open } = set
    const all = [open(), open()]
    const errors: string[] = []
    for (const webSocket of all) webSocket.onerror = ({ message }) => errors.push(message)
    await world.complete(Promise.all(all.map(({ opened }) => opened)))
    client.destroy()
    const ends = await world.complete(Promise.all(all.map(({ closed }) => closed)))
    await world.settle()
    assert.deepEqual(
      ends.map(({ code, wasClean }) => `${code} ${wasClean}`),
      ['1006 false', '1006 false'],
    )
    assert.deepEqual(errors, Array<string>(2).fill('ws://h/: the client was destroyed'))
    await assertGone(set)
  })

  worldTest(`${version}: whatever both ends do, in any order: one end for each, and nothing is left`, { seeds: 60 }, async (world) => {
    const { random } = world
    const set = await place(world, version, (socket) => void (random.chance(0.5) && (socket.onmessage = () => {})), {
      delay: random.integer(0, 20),
    })
    const ends: WebSocket[] = []
    const promises: Promise<unknown>[] = []
    const clients = Array.from({ length: random.integer(1, 5) }, () => set.open())
    const act = (webSocket: WebSocket): void => {
      switch (random.integer(0, 9)) {
        case 0:
        case 1:
          return void promises.push(
            webSocket.write(random.chance(0.2) ? new Blob(['blob']) : 'x'.repeat(random.integer(0, 100_000))).catch(() => {}),
          )
        case 2:
          if (webSocket.readyState === WebSocket.OPEN) webSocket.send('sent')
          return
        case 3:
        case 4:
          return void promises.push(webSocket.read({ deadline: 500 }).catch(() => {}))
        case 5:
          if (webSocket.readyState === WebSocket.OPEN) webSocket.ping('ping', () => {})
          return
        case 6:
          return random.chance(0.15) ? webSocket.close(random.chance(0.5) ? 1000 : undefined, random.chance(0.5) ? '' : 'why') : undefined
        case 7:
          return random.chance(0.1) ? webSocket.abort() : undefined
        default:
          return void world.advance(random.integer(0, 30))
      }
    }
    for (const webSocket of clients) webSocket.addEventListener('close', () => ends.push(webSocket))
    for (let step = 0; step < 80; step++) {
      const all = [...clients, ...set.accepted]
      act(random.pick(all))
      if (random.chance(0.3)) await new Promise((resolve) => setImmediate(resolve))
    }
    if (random.chance(0.3)) set.client.destroy()
    for (const webSocket of clients) if (random.chance(0.5)) webSocket.close(1000)
    await assertGone(set)
    await world.complete(Promise.all([...promises, ...clients.map(({ closed }) => closed), ...set.accepted.map(({ closed }) => closed)]))
    await world.settle()
    assert.deepEqual([ends.length, new Set(ends).size], [clients.length, clients.length])
  })
}
