import { deepEqual, equal, ok } from 'node:assert/strict'
import { ScriptedPeer, socketTransport, worldTest, type LinkSocket, type World } from 'heddle/testing'
import { get, message, ok as okResponse, post } from './messages.ts'
import { clusterConfig, Rig, routeConfig } from './rig.ts'

/** What a client may do once it is connected. */
const requests: readonly (() => string)[] = [
  () => get('/plain'),
  () => post('x'.repeat(5_000)),
  () => message(['PUT / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'], `1000\r\n${'y'.repeat(0x1000)}\r\n0\r\nX-T: 1\r\n\r\n`),
  () => message(['POST / HTTP/1.1', 'Host: a', 'Content-Length: 300000'], 'z'.repeat(150_000)),
  () =>
    message([
      'GET / HTTP/1.1',
      'Host: a',
      'Connection: upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
    ]),
  () => get('/1') + get('/2') + get('/3'),
  () => message(['POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'], '5\r\nhello\r\nbroken'),
  () => 'GET / HTTP/1.1\r\nHost: a\r\nbroken head\r\n\r\n',
  () => message(['HEAD / HTTP/1.1', 'Host: a', 'Connection: close']),
  () => message(['POST / HTTP/1.1', 'Host: a', 'Content-Length: 4', 'Expect: 100-continue']),
]

/** What an upstream may do with whatever came. */
const answers: readonly ((world: World, socket: LinkSocket) => void)[] = [
  (_world, socket) => void socket.write(Buffer.from(okResponse('x'.repeat(3_000)))),
  (_world, socket) =>
    void socket.write(Buffer.from(message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n'))),
  (_world, socket) => void socket.write(Buffer.from(message(['HTTP/1.1 200 OK', 'Content-Length: 100'], 'too little'))),
  (_world, socket) => void socket.end(),
  (_world, socket) => void socket.resetAndDestroy(),
  (_world, socket) => void socket.write(Buffer.from(message(['HTTP/1.1 103 Early Hints']) + okResponse())),
  (_world, socket) => void socket.write(Buffer.from(okResponse() + okResponse('unasked'))),
  (_world, socket) => void socket.write(Buffer.from(message(['HTTP/1.1 413 Content Too Large', 'Content-Length: 0', 'Connection: close']))),
  (_world, socket) => void socket.write(Buffer.from(message(['HTTP/1.1 200 OK'], 'until the end'))),
  (_world, socket) => void socket.write(Buffer.from('nonsense\r\n\r\n')),
  (world, socket) => {
    socket.write(Buffer.from(message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n')))
    world.after(world.random.integer(1, 400), () => void socket.write(Buffer.from('5\r\nworld\r\n0\r\n\r\n')))
  },
  () => {},
]

worldTest('whoever leaves whenever: one record for each request, and nothing stays behind', { seeds: 150 }, async (world) => {
  const { random } = world
  const rig = await Rig.make(world, {
    routes: [routeConfig({ tunnelIdleTimeout: 400, timeout: random.pick([Infinity, 300]), retry: { attempts: random.integer(0, 3) } })],
    clusters: [
      clusterConfig({
        endpoints: [1, 2, 3].map((last) => ({ host: `10.0.0.${last}`, port: 8080 })),
        maxConnectionsPerEndpoint: random.integer(1, 4),
        maxWaiting: random.integer(1, 20),
        connectTimeout: 200,
        headTimeout: 500,
        bodyTimeout: 500,
        idleTimeout: random.pick([10, 1_000]),
        ejection: { consecutiveFailures: random.pick([0, 3]), baseTime: 50, maxTime: 200, maxShare: 0.7 },
      }),
    ],
    listener: { limits: { bodyTimeout: 700, headTimeout: 700, idleTimeout: 1_000, sendTimeout: 700 } as never },
    clientLink: { splits: 'random', jitter: random.integer(0, 3), capacity: random.pick([4_096, 262_144]) },
  })
  for (const last of [1, 2, 3]) {
    if (last === 3 && random.chance(0.3)) {
      world.network.blackHole('10.0.0.3', 8080)
      continue
    }
    world.network.listen(
      `10.0.0.${last}`,
      8080,
      ({ socket }) => {
        socket.on('error', (() => {}) as never)
        socket.on('data', (() => {
          if (random.chance(0.6)) world.after(random.length(100), () => random.pick(answers)(world, socket))
        }) as never)
        if (random.chance(0.1)) world.after(random.length(200), () => socket.resetAndDestroy())
      },
      { link: { splits: 'random', jitter: random.integer(0, 3) } },
    )
  }
  const clients: LinkSocket[] = []
  for (let i = 0; i < 12; i++) {
    world.after(random.length(300), () => {
      world.network.connect('gateway', 80, (_error, connection) => {
        if (connection === undefined) return
        const { socket } = connection
        clients.push(socket)
        const peer = new ScriptedPeer(world, socketTransport(socket))
        peer.send(random.pick(requests)())
        if (random.chance(0.3)) world.after(random.length(200), () => socket.resetAndDestroy())
        if (random.chance(0.2)) world.after(random.length(200), () => socket.end())
        if (random.chance(0.3))
          world.after(random.length(500), () => !socket.destroyed && !socket.writableEnded && socket.write(Buffer.from(get('/again'))))
        if (random.chance(0.1)) {
          socket.pause()
          world.after(random.length(500), () => socket.resume())
        }
      })
    })
  }
  world.advance(20_000)
  for (const client of clients) client.destroy()
  world.advance(20_000)
  equal(rig.records.length, rig.started)
  deepEqual(rig.leftovers(), [])
  for (const record of rig.records) {
    ok(record.duration >= 0 && record.attempts <= 4, JSON.stringify(record))
    ok(record.status >= 200 || record.status === 0 || record.status === 101, JSON.stringify(record))
    ok(record.status !== 0 || record.reason !== '', JSON.stringify(record))
  }
  const stats = rig.cluster.stats()
  equal(stats.connections, 0, 'idle connections were closed')
  equal(rig.server.stats().connections, 0)
  const done = Promise.all([rig.server.close(), rig.cluster.close()])
  await world.complete(done)
  equal(world.armed, 0, 'no alarm is armed')
})

const okResponseWithVia = /HTTP\/1\.1 200 OK\r\n[^]*hello$/

/** What an upload of `size` bytes carries: every place in it can be told from the others. */
function contentOf(size: number): string {
  let content = ''
  for (let i = 0; content.length < size; i++) content += `<${i}>`
  return content.slice(0, size)
}

/** One chunked request or `Content-Length: 0`, complete at the end of `text`; undefined while it is not. */
function uploadIn(text: string): string | undefined {
  const at = text.indexOf('\r\n\r\n') + 4
  if (at < 4) return undefined
  if (!/\r\ntransfer-encoding: chunked\r\n/.test(text.slice(0, at))) return ''
  let content = ''
  for (let from = at; ;) {
    const line = text.indexOf('\r\n', from)
    if (line < 0) return undefined
    const size = Number.parseInt(text.slice(from, line), 16)
    if (size === 0) return text.endsWith('\r\n\r\n') ? content : undefined
    content += text.slice(line + 2, line + 2 + size)
    from = line + 2 + size + 2
  }
}

// What is to leave at the end of a turn leaves only after more input has come: what a loop with much to do looks like.
worldTest(
  'a busy loop, and a connection that closes just when an upload begins on it: nothing of it is lost',
  { seeds: 60 },
  async (world) => {
    const { random } = world
    const tasks: (() => void)[] = []
    world.soon = (task) => {
      if (tasks.push(task) === 1) world.after(random.integer(0, 4), () => tasks.splice(0).forEach((run) => run()))
    }
    const rig = await Rig.make(world, { clusters: [clusterConfig({ headTimeout: 2_000 })] })
    const uploads: string[] = []
    let kept: LinkSocket | undefined
    world.network.listen('10.0.0.1', 8080, ({ socket }) => {
      let text = ''
      socket.on('error', (() => {}) as never)
      socket.on('data', ((piece: Uint8Array) => {
        text += Buffer.from(piece).toString('latin1')
        const content = uploadIn(text)
        if (content === undefined) return
        if (text.startsWith('PUT')) uploads.push(content)
        text = ''
        kept = socket
        socket.write(Buffer.from(okResponse()))
      }) as never)
    })
    const chunk = (content: string): string => `${content.length.toString(16)}\r\n${content}\r\n`
    for (let round = 0; round < 8; round++) {
      const client = rig.client().send(get('/warm'))
      world.advance(100)
      client.want('the answer that leaves a connection behind', okResponseWithVia)
      const content = contentOf(random.pick([10, 40_000, 65_000, 70_000, 200_000]))
      const cut = random.integer(0, Math.min(content.length, 60_000))
      client.send(message(['PUT /file HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'], cut > 0 ? chunk(content.slice(0, cut)) : ''))
      world.after(random.length(4), () => kept?.end())
      world.after(random.length(8), () => client.send(`${cut < content.length ? chunk(content.slice(cut)) : ''}0\r\n\r\n`))
      world.advance(1_000)
      const { status, reason } = rig.records.at(-1) ?? {}
      equal(rig.records.length, 2 * round + 2, 'the upload ended')
      ok(status === 200 || status === 502, `${status} ${reason}`)
      // Those the upstream may have acted on are refused; what it takes for complete is so.
      for (const upload of uploads.splice(0)) ok(upload === content, `${upload.length} of ${content.length} bytes arrived`)
      client.end()
      world.advance(100)
    }
    deepEqual(rig.leftovers(), [])
  },
)
