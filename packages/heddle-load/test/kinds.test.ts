import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { fieldValue, responseHead } from 'heddle/http'
import type { Server, ServeOptions } from 'heddle/server'
import { worldTest, type World } from 'heddle/testing'
import { acceptWebSocket, type SocketHandler } from 'heddle/websocket'
import { load, near } from './rig.ts'
import { answer, echo, grpcAnswer, rawServer, type Answer, type Asked } from './servers.ts'

const few = { seeds: 3 }

function start(world: World, answers: Answer, options: Partial<ServeOptions> = {}, sockets?: SocketHandler): Promise<Server> {
  return world.complete(
    rawServer(answers, { clock: world, listen: world.network.serve, hostname: 'origin.test', port: 80, ...options }, sockets),
  )
}

worldTest('a request is sent as it was said', few, async (world) => {
  const asked: Asked[] = []
  const server = await start(world, (exchange, one) => {
    asked.push(one)
    answer(exchange, 200, 'ok')
  })
  const headers = { 'X-One': ['a', 'b'], Host: 'elsewhere.test', 'user-agent': 'me' }
  const result = await load(world, { url: 'http://ada:l%C3%B6ve@origin.test/p?q=1', method: 'PUT', headers, body: 'héllo', count: 1 })
  equal(result.requests.succeeded, 1)
  const [{ head, body }] = asked as [Asked]
  deepEqual([head.method, head.path, head.authority, body.toString()], ['PUT', '/p?q=1', 'elsewhere.test', 'héllo'])
  const authorization = `Basic ${Buffer.from('ada:löve').toString('base64')}`
  deepEqual(head.fields, ['x-one', 'a', 'x-one', 'b', 'user-agent', 'me', 'authorization', authorization, 'content-length', '6'])
  deepEqual([result.bytes.sent, result.bytes.received], [6, 2])
  await load(world, { bodySize: 100_000, count: 1, protocol: 'h2' })
  const last = asked.at(-1) as Asked
  deepEqual([last.head.method, last.body.length, last.protocol], ['POST', 100_000, 'h2'])
  match(fieldValue(last.head.fields, 'user-agent') ?? '', /^heddle-load\/\d/)
  await load(world, { method: 'POST', count: 1 })
  equal(fieldValue((asked.at(-1) as Asked).head.fields, 'content-length'), '0')
  await world.complete(server.close())
})

worldTest('statuses are counted, and are a success or not', few, async (world) => {
  let count = 0
  const statuses = [200, 404, 503, 302]
  const server = await start(world, (exchange) => {
    exchange.sendHead(responseHead(103, ['link', '</x>']), false)
    answer(exchange, statuses[count++ % 4] as number, 'x')
  })
  const usual = await load(world, { count: 40, connections: 4 })
  deepEqual(usual.statuses, { 200: 10, 302: 10, 404: 10, 503: 10 })
  deepEqual([usual.requests.succeeded, usual.requests.rejected, usual.requests.failed], [20, 20, 0])
  // They were answered, so it is known how long that took.
  ok(usual.latency.p99 !== null)
  const own = await load(world, { count: 40, accept: [404, '5xx'], failIf: ['status.5xx>0', 'status.404>10', 'errors>50%'] })
  deepEqual([own.requests.succeeded, own.requests.rejected], [20, 20])
  deepEqual(
    own.thresholds.map(({ failed }) => failed),
    [true, false, false],
  )
  await world.complete(server.close())
})

worldTest('gRPC: a framed message, and success is grpc-status 0', few, async (world) => {
  const asked: Asked[] = []
  let answers = grpcAnswer(0, 'hello')
  const server = await start(world, (exchange, one) => {
    asked.push(one)
    answers(exchange, one)
  })
  const options = { url: 'http://origin.test/pkg.Greeter/SayHello', kind: 'grpc', count: 20, connections: 2, streams: 5 } as const
  const good = await load(world, { ...options, body: Uint8Array.of(10, 1, 97) })
  deepEqual([good.requests.succeeded, good.grpcStatuses, good.protocols], [20, { 0: 20 }, { h2: 20 }])
  const [{ head, body }] = asked as [Asked]
  deepEqual([head.method, head.path, [...body]], ['POST', '/pkg.Greeter/SayHello', [0, 0, 0, 0, 3, 10, 1, 97]])
  deepEqual([fieldValue(head.fields, 'content-type'), fieldValue(head.fields, 'te')], ['application/grpc', 'trailers'])
  answers = grpcAnswer(14)
  const bad = await load(world, options)
  deepEqual([bad.requests.rejected, bad.grpcStatuses, bad.statuses], [20, { 14: 20 }, { 200: 20 }])
  answers = (exchange) => answer(exchange, 200, 'no gRPC at all')
  const strange = await load(world, options)
  deepEqual([strange.requests.rejected, strange.grpcStatuses], [20, { '-1': 20 }])
  await world.complete(server.close())
})

for (const protocol of ['h1', 'h2'] as const) {
  const streams = protocol === 'h2' ? 5 : 1

  worldTest(`WebSocket over ${protocol}: so many sockets, so many messages on each`, few, async (world) => {
    const server = await start(world, (exchange) => answer(exchange, 404, ''))
    const options = { url: 'ws://origin.test/echo', protocol, connections: 2, streams, inFlight: 3 } as const
    const closed = await load(world, { ...options, body: 'hello', warmup: 100, duration: 1_000 })
    equal(closed.connectionsOpened, 2)
    deepEqual(closed.protocols, { [protocol]: closed.requests.due })
    // Three at a time on each socket, 2 ms each.
    near(closed.perSecond, 2 * streams * 3 * 500, 0.02, 'rate')
    near(closed.latency.p99, 2, 0.01, 'p99')
    equal(closed.requests.succeeded, closed.requests.due)
    deepEqual([closed.bytes.sent, closed.bytes.received], [5 * closed.requests.due, 5 * closed.requests.due])
    const open = await load(world, { ...options, rate: 1_000, bodySize: 1_000, warmup: 100, count: 500 })
    deepEqual([open.requests.due, open.requests.succeeded], [500, 500])
    await world.complete(server.close())
    world.advance(10_000)
    equal(world.armed, 0, 'alarms left behind')
  })

  worldTest(`WebSocket over ${protocol}: an echo that is late ends its socket, and another is opened`, few, async (world) => {
    let messages = 0
    const server = await start(
      world,
      (exchange) => answer(exchange, 404, ''),
      {},
      {
        onMessage(socket, buffer, from, limit, binary) {
          if (++messages % 10 !== 0) echo.onMessage(socket, buffer, from, limit, binary)
        },
      },
    )
    const options = { url: 'ws://origin.test/', protocol, connections: 1, streams, timeout: 200, count: 100 } as const
    const { requests, errors } = await load(world, options)
    deepEqual([requests.due, requests.failed, requests.succeeded], [100, 10, 90])
    deepEqual(Object.keys(errors), ['TOTAL_TIMEOUT'])
    await world.complete(server.close())
  })

  worldTest(`WebSocket over ${protocol}: a server that closes loses what is under way, and is asked again`, few, async (world) => {
    let messages = 0
    const server = await start(
      world,
      (exchange) => answer(exchange, 404, ''),
      {},
      {
        onMessage(socket, buffer, from, limit, binary) {
          if (++messages % 20 === 0) socket.close(1000, 'enough')
          else echo.onMessage(socket, buffer, from, limit, binary)
        },
      },
    )
    const { requests, errors } = await load(world, { url: 'ws://origin.test/', protocol, connections: 1, streams, count: 100 })
    deepEqual([requests.due, requests.succeeded + requests.failed], [100, 100])
    ok(requests.failed >= 4, `${requests.failed} failed`)
    deepEqual(Object.keys(errors), ['PEER_CLOSED'])
    await world.complete(server.close())
  })
}

worldTest('WebSocket: another message than was sent is an error, unless any will do', few, async (world) => {
  const server = await start(
    world,
    (exchange) => answer(exchange, 404, ''),
    {},
    {
      onMessage(socket) {
        socket.post('something else')
      },
    },
  )
  const same = await load(world, { url: 'ws://origin.test/', count: 10 })
  deepEqual([same.requests.rejected, same.errors['ECHO_DIFFERS']?.count], [10, 10])
  const any = await load(world, { url: 'ws://origin.test/', count: 10, echo: 'any' })
  deepEqual([any.requests.succeeded, any.errors], [10, {}])
  await world.complete(server.close())
})

worldTest('WebSocket: who is refused is told why, and gives up', few, async (world) => {
  const server = await start(world, (exchange) => answer(exchange, 403, 'go away'), { websocket: false })
  const { requests, unopened, gaveUp } = await load(world, { url: 'ws://origin.test/', duration: 60_000 })
  equal(requests.due, 0)
  match(unopened['HANDSHAKE_FAILED']?.message ?? '', /403/)
  match(gaveUp ?? '', /403/)
  await world.complete(server.close())
})

worldTest('WebSocket: asks for another host than it connects to, as who the URL says', few, async (world) => {
  const hosts: string[] = []
  const server = await start(world, () => {}, {
    onExchange: (exchange) => ({
      onHead(head) {
        hosts.push(head.authority, fieldValue(head.fields, 'authorization') ?? '')
        exchange.sendHead(responseHead(404), true)
      },
      onData() {},
      onTrailers() {},
      onSent() {},
      onPriority() {},
      onClose() {},
    }),
  })
  await load(world, { url: 'ws://a:b@origin.test/', headers: { host: 'other.test' }, connections: 1, duration: 100 })
  deepEqual(hosts.slice(0, 2), ['other.test', 'Basic YTpi'])
  await world.complete(server.close())
})

worldTest('WebSocket: a server that does not answer the Close is not waited for', few, async (world) => {
  const server = await start(
    world,
    (exchange) => answer(exchange, 404, ''),
    {},
    {
      onMessage(socket, buffer, from, limit, binary) {
        echo.onMessage(socket, buffer, from, limit, binary)
        socket.pause()
      },
    },
  )
  const before = world.now()
  const { requests } = await load(world, { url: 'ws://origin.test/', count: 3, connections: 3 })
  equal(requests.succeeded, 3)
  ok(world.now() - before < 2_000, `${world.now() - before} ms`)
  await world.complete(server.close({ deadline: 0 }))
})

worldTest('WebSocket: what is due while no socket is open waits for the next one', few, async (world) => {
  const server = await start(world, (exchange) => answer(exchange, 404, ''))
  let second: Server | undefined
  world.after(550, () => void server.close({ deadline: 0 }))
  world.after(1_000, () => {
    void rawServer(() => {}, { clock: world, listen: world.network.serve, hostname: 'origin.test', port: 80 }).then(
      (made) => (second = made),
    )
  })
  const options = { url: 'ws://origin.test/', rate: 10, arrivals: 'uniform', connections: 1, inFlight: 3, duration: 3_000 } as const
  const { requests, latency, unopened } = await load(world, options)
  deepEqual([requests.due, requests.succeeded], [30, 30])
  ok(latency.max !== null && latency.max > 350 && latency.max < 1_500, `${latency.max} ms`)
  ok((unopened['CONNECT_FAILED']?.count ?? 0) > 0, JSON.stringify(unopened))
  await world.complete((second as Server).close({ deadline: 0 }))
})

worldTest('WebSocket: subprotocols are asked for by their header', few, async (world) => {
  const offers: string[] = []
  const server = await start(world, () => {}, {
    onExchange: (exchange) => ({
      onHead(head) {
        offers.push(fieldValue(head.fields, 'sec-websocket-protocol') ?? '')
        const socket = acceptWebSocket(exchange, head, { protocol: 'chat.v1' })
        if (socket !== undefined) socket.handler = echo
      },
      onData() {},
      onTrailers() {},
      onSent() {},
      onPriority() {},
      onClose() {},
    }),
  })
  const headers = { 'Sec-WebSocket-Protocol': 'chat.v2, chat.v1' }
  const { requests } = await load(world, { url: 'ws://origin.test/', headers, count: 5, connections: 1 })
  deepEqual([requests.succeeded, offers], [5, ['chat.v2, chat.v1']])
  await world.complete(server.close({ deadline: 0 }))
})
