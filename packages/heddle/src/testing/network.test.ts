import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HeddleError } from '../http/index.ts'
import type { dial as realDial, listen as realListen, DialOptions, DialTarget } from '../io/index.ts'
import type { WorldConnection } from './network.ts'
import { World } from './world.ts'

interface Outcome {
  error?: HeddleError | undefined
  connection?: WorldConnection | undefined
  at?: number
}

function dial(world: World, target: DialTarget, options: Partial<DialOptions> = {}): Outcome {
  const outcome: Outcome = {}
  world.network.dial(target, { clock: world, ...options }, (error, connection) => {
    assert.equal(outcome.at, undefined, 'done is called once')
    Object.assign(outcome, { error, connection, at: world.now() })
  })
  assert.equal(outcome.at, undefined, 'done is never called before dial returned')
  return outcome
}

test('a client takes it as its dialler', () => {
  const dialler: typeof realDial = new World().network.dial
  assert.equal(typeof dialler, 'function')
})

test('a connection stands after one round trip, with TLS after two; both ends know their addresses', () => {
  const world = new World({ start: 0 })
  const accepted: WorldConnection[] = []
  const listener = world.network.listen('origin.test', 80, (connection) => accepted.push(connection), { link: { delay: 10 } })
  world.network.listen('secure.test', 443, (connection) => accepted.push(connection), { link: { delay: 10 }, tls: {} })
  const plain = dial(world, { host: 'origin.test', port: 80 })
  const secure = dial(world, { host: 'secure.test', port: 443 }, { tls: { alpn: ['h2', 'http/1.1'] } })
  world.run()
  assert.deepEqual([plain.at, secure.at], [20, 40])
  assert.equal(listener.accepted, 1)
  const [there] = accepted
  assert.deepEqual(plain.connection?.info.remote, there?.info.local)
  assert.deepEqual(plain.connection?.info.local, there?.info.remote)
  assert.equal(plain.connection?.info.remote.port, 80)
  assert.equal(plain.connection?.alpn, undefined)
  assert.equal(secure.connection?.alpn, 'http/1.1')
  assert.equal(accepted[1]?.info.tls?.serverName, 'secure.test')
  let got = ''
  there?.socket.on('data', (chunk: Uint8Array) => {
    got += Buffer.from(chunk).toString()
  })
  plain.connection?.socket.write(Buffer.from('hello'))
  world.run()
  assert.equal(got, 'hello')
})

test('unknown names, closed ports, stopped listeners, wrong protocols and black holes fail as dial does', () => {
  const world = new World({ start: 0 })
  const stopped = world.network.listen('origin.test', 81, () => {})
  stopped.stop()
  world.network.listen('origin.test', 80, () => {})
  world.network.listen('secure.test', 443, () => {}, { tls: { alpn: ['h2'] } })
  world.network.blackHole('hole.test', 80)
  const outcomes = [
    dial(world, { host: 'nowhere.test', port: 80 }),
    dial(world, { host: 'origin.test', port: 81 }),
    dial(world, { path: '/no/socket' }),
    dial(world, { host: 'origin.test', port: 80 }, { tls: {} }),
    dial(world, { host: 'secure.test', port: 443 }, { tls: {} }),
    dial(world, { host: 'hole.test', port: 80 }, { connectTimeout: 3000 }),
  ]
  world.advance(10_000)
  assert.deepEqual(
    outcomes.map(({ error }) => error?.code),
    ['DNS_FAILED', 'CONNECT_FAILED', 'CONNECT_FAILED', 'TLS_FAILED', 'TLS_FAILED', 'CONNECT_TIMEOUT'],
  )
  assert.ok(outcomes.every(({ error }) => error?.unprocessed === true))
  assert.equal(outcomes[5]?.at, 3000)
  assert.equal(world.armed, 0)
})

test('a dial that was cancelled tells nothing and leaves nothing', () => {
  const world = new World()
  const listener = world.network.listen('origin.test', 80, () => {})
  const attempt = world.network.connect('origin.test', 80, () => assert.fail('cancelled'))
  attempt.cancel()
  world.run()
  assert.deepEqual([listener.accepted, world.armed], [0, 0])
})

test('Unix sockets are dialled by path; a plain client on a TLS port is dropped', () => {
  const world = new World()
  world.network.listenPath('/run/app.sock', ({ socket }) => socket.write(Buffer.from('hi')))
  world.network.listen('secure.test', 443, () => assert.fail('no handshake'), { tls: {} })
  const unix = dial(world, { path: '/run/app.sock' })
  const plain = dial(world, { host: 'secure.test', port: 443 })
  world.run()
  assert.equal(unix.connection?.info.remote.address, '/run/app.sock')
  let lost = ''
  plain.connection?.socket.on('error', (error: Error) => {
    lost = error.message
  })
  plain.connection?.socket.resume()
  world.run()
  assert.match(lost, /ECONNRESET/)
})

test('a server takes it as its listener: counts, the limit, stop and destroyConnections', async () => {
  const world = new World()
  const listen: typeof realListen = world.network.serve
  const accepted: string[] = []
  const listener = await listen({
    clock: world,
    hostname: 'origin.test',
    maxConnections: 2,
    onConnection: ({ info, socket }) => {
      accepted.push(info.local.address)
      socket.resume()
    },
  })
  const { port } = listener.address
  const other = await listen({ clock: world, hostname: 'origin.test', onConnection: () => {} })
  assert.notEqual(other.address.port, port)
  const outcomes = [1, 2, 3].map(() => dial(world, { host: 'origin.test', port }))
  world.run()
  for (const { connection } of outcomes) {
    connection?.socket.on('error', () => {})
    connection?.socket.resume()
  }
  world.run()
  assert.deepEqual([accepted.length, listener.connections, listener.counters.accepted, listener.counters.refused], [2, 2, 2, 1])
  assert.equal(outcomes[2]?.connection?.socket.destroyed, true)
  await listener.stop()
  const late = dial(world, { host: 'origin.test', port })
  world.run()
  assert.equal(late.error?.code, 'CONNECT_FAILED')
  assert.equal(listener.connections, 2)
  listener.destroyConnections()
  world.run()
  assert.equal(listener.connections, 0)
})

test('a throw in onConnection drops that connection and is reported', async () => {
  const world = new World()
  const reported: unknown[] = []
  await world.network.serve({
    clock: world,
    path: '/run/x.sock',
    onConnection: () => {
      throw new Error('no')
    },
    onError: (error) => reported.push(error),
  })
  const outcome = dial(world, { path: '/run/x.sock' })
  outcome.connection?.socket.resume()
  world.run()
  outcome.connection?.socket.resume()
  world.run()
  assert.equal(outcome.connection?.socket.readableEnded, true)
  assert.match(String(reported[0]), /no/)
})
