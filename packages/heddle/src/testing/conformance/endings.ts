import assert from 'node:assert/strict'
import { CancelReason, HeddleError, responseHead, UsageError, type ExchangeHandler } from '../../http/index.ts'
import type { SendPlan, Side } from './side.ts'
import { assertReceived, assertWell, conformanceCase, get, post, whenReceived, type ConformanceCase, type Stage } from './stage.ts'

const ends: readonly (SendPlan['finish'] & {})[] = ['last', 'apart', ['x-trailer', '1']]

/**
 * Begins an upload of 150 kB that is answered by a download of 150 kB with 1xx and trailers, and lets
 * it run for a number of steps that the seed chooses: it stops in any phase, the end included.
 */
function begin(stage: Stage): Side {
  const { random } = stage.world
  stage.serve = (side) =>
    whenReceived(side, () => {
      side.exchange.sendHead(responseHead(103), false)
      side.exchange.sendHead(responseHead(200), false)
      side.send({ content: Buffer.alloc(150_000, 0x64), finish: random.pick(ends) })
    })
  const client = stage.open()
  if (random.chance(0.9)) {
    client.exchange.sendHead(post(), false)
    client.send({ content: Buffer.alloc(150_000, 0x75), finish: random.pick(ends) })
  }
  for (let steps = random.length(300); steps > 0; steps--) if (!stage.world.step()) break
  return client
}

/** Nobody may have got bytes or an end that were not sent. */
function assertHonest(stage: Stage, client: Side): void {
  const server = stage.sides.find(({ role }) => role === 'server')
  for (const [receiver, sender, octet] of [
    [server, client, 0x75],
    [client, server, 0x64],
  ] as const) {
    if (receiver === undefined) continue
    assert.ok(receiver.received <= (sender?.givenLength ?? 0), 'no more arrived than was sent')
    assert.ok(receiver.content.every((byte) => byte === octet))
    if (receiver.ended && receiver.head?.status !== 408) {
      assert.equal(receiver.received, receiver.head?.status === 200 || receiver.role === 'server' ? 150_000 : receiver.received)
    }
  }
}

const cancels: ConformanceCase[] = (['client', 'server'] as const).map((role) =>
  conformanceCase(`cancel in any phase by the ${role}`, (stage) => {
    const client = begin(stage)
    const server = stage.sides.find((side) => side.role === 'server')
    const side = role === 'client' ? client : server
    if (side !== undefined && !side.closed) {
      const reason = stage.world.random.pick([CancelReason.Cancelled, CancelReason.InternalError, CancelReason.Refused])
      side.exchange.cancel(reason)
      side.exchange.cancel(reason)
      assert.equal(side.exchange.sendData(Buffer.from('x'), 0, 1, false), false)
      assert.equal(side.closed, false, 'onClose comes in a later run of the engine')
      stage.run()
      assert.ok(side.closed)
      assert.equal(side.error?.code, reason === CancelReason.InternalError ? 'HANDLER_FAILED' : 'CANCELLED')
    } else if (role === 'server') client.exchange.cancel(CancelReason.Cancelled)
    stage.run()
    stage.world.advance(120_000)
    assertHonest(stage, client)
  }),
)

const losses: ConformanceCase[] = (['reset', 'silence'] as const).map((loss) =>
  conformanceCase(`the peer vanishes in any phase: ${loss}`, (stage) => {
    const client = begin(stage)
    if (client.calls.length === 0 && stage.sides.length === 1 && client.givenLength === 0) client.exchange.sendHead(get(), true)
    stage.pair.lose(loss)
    stage.run()
    stage.world.advance(1_000_000)
    assertHonest(stage, client)
    assert.equal(stage.clientConnection.closed, true)
    assert.equal(stage.serverConnection.closed, true)
  }),
)

const callbacks = ['onHead', 'onData', 'onTrailers', 'onSent', 'onClose'] as const
const throwing: ConformanceCase[] = (['client', 'server'] as const).flatMap((role) =>
  callbacks.map((callback) =>
    conformanceCase(`a handler that throws in ${callback} ends its exchange and nothing else (${role})`, (stage) => {
      const fail: Partial<ExchangeHandler> = {
        [callback]: () => {
          throw new Error('the handler fails')
        },
      }
      const content = Buffer.alloc(50_000, 1)
      stage.serve = (side) => {
        whenReceived(side, () => {
          side.exchange.sendHead(responseHead(200), false)
          side.send({ content, finish: ['x-trailer', '1'] })
        })
        if (role === 'server') side.on = { ...side.on, ...fail }
      }
      const client = stage.open()
      if (role === 'client') client.on = fail
      client.exchange.sendHead(post(), false)
      client.send({ content, finish: ['x-trailer', '1'] })
      stage.run()
      stage.world.advance(120_000)
      const side = role === 'client' ? client : stage.served
      assert.ok(side.closed)
      if (callback !== 'onClose') assert.equal(side.error?.code, 'HANDLER_FAILED')
    }),
  ),
)

const early: ConformanceCase[] = [
  ...[1000, 100_000, 5_000_000].map((size) =>
    conformanceCase(`an answer before the request's ${size} bytes were read, the rest discarded`, (stage) => {
      stage.serve = (side) => {
        side.autoConsume = false
        side.on = {
          onHead() {
            side.exchange.discard()
            side.exchange.sendHead(responseHead(413, ['content-length', '4']), false)
            side.exchange.sendData(Buffer.from('much'), 0, 4, true)
          },
        }
      }
      const client = stage.request(post(), false)
      client.send({ content: Buffer.alloc(size) })
      stage.run()
      stage.world.advance(120_000)
      assert.equal(client.head?.status, 413, 'the answer arrives whatever becomes of the content')
      assertReceived(client, Buffer.from('much'))
      assert.equal(stage.served.received, 0)
      if (size <= 100_000) assertWell(client, stage.served)
    }),
  ),
  conformanceCase('an answer before the request was read, which is read all the same', (stage) => {
    const content = stage.world.random.bytes(300_000)
    stage.serve = (side) => {
      side.on = { onHead: () => side.exchange.sendHead(responseHead(200), true) }
    }
    const client = stage.request(post(), false)
    client.send({ content })
    stage.run()
    assertReceived(client, Buffer.alloc(0))
    assertReceived(stage.served, content)
    assertWell(client, stage.served)
  }),
  ...[0, 1000, 100_000, 5_000_000].map((size) =>
    conformanceCase(`a response of ${size} bytes that the client discards`, (stage) => {
      stage.serve = (side) =>
        whenReceived(side, () => {
          side.exchange.sendHead(responseHead(200), false)
          side.send({ content: Buffer.alloc(size) })
        })
      const client = stage.open()
      client.on = { onHead: () => client.exchange.discard() }
      client.exchange.sendHead(get(), true)
      stage.run()
      stage.world.advance(120_000)
      assert.equal(client.received, 0)
      assert.ok(client.closed && stage.served.closed)
      if (size === 0) assertWell(client, stage.served)
    }),
  ),
  conformanceCase('discard before the head: the head still comes, the content does not', (stage) => {
    stage.serve = (side) =>
      whenReceived(side, () => {
        side.exchange.sendHead(responseHead(200, ['content-length', '3']), false)
        side.exchange.sendData(Buffer.from('abc'), 0, 3, true)
      })
    const client = stage.request(get(), true)
    client.exchange.discard()
    stage.run()
    assert.equal(client.head?.status, 200)
    assert.equal(client.received, 0)
    assert.ok(client.closed)
  }),
]

const unwanted: ConformanceCase = conformanceCase('discard before the head of a large response: it is not read to its end', (stage) => {
  stage.serve = (side) =>
    whenReceived(side, () => {
      side.exchange.sendHead(responseHead(200, ['content-length', '20000000']), false)
      side.send({ content: Buffer.alloc(20_000_000), piece: 16_384 })
    })
  const client = stage.request(get(), true)
  client.exchange.discard()
  stage.run()
  assert.equal(client.head?.status, 200)
  assert.ok(client.closed && stage.served.closed)
  assert.ok(stage.served.givenLength < 5_000_000, `${stage.served.givenLength} bytes were sent for nobody`)
})

const shutdowns: ConformanceCase[] = (['client', 'server'] as const).map((role) =>
  conformanceCase(`shutdown by the ${role} lets the open exchange finish, then the connection closes`, (stage) => {
    const content = stage.world.random.bytes(100_000)
    let response: Side | undefined
    stage.serve = (side) =>
      whenReceived(side, () => {
        response = side
      })
    const client = stage.request(post(), false)
    stage.run()
    stage.pair[role].shutdown()
    stage.run()
    if (role === 'client') assert.equal(stage.maybeOpen(), undefined, 'nothing new is opened')
    client.send({ content })
    stage.run()
    assert.ok(response !== undefined)
    response.exchange.sendHead(responseHead(200), false)
    response.send({ content })
    stage.run()
    assertReceived(client, content)
    assertReceived(stage.served, content)
    assertWell(client, stage.served)
    stage.world.advance(1000)
    assert.equal(stage.pair.client.openable, 0)
    assert.ok(stage.clientConnection.closed, 'the client is told that the connection closed')
    assert.ok(stage.serverConnection.closed, 'the server is told that the connection closed')
    assert.equal(stage.clientConnection.error, undefined)
    assert.equal(stage.serverConnection.error, undefined)
    if (role === 'server') assert.ok(stage.clientConnection.lines.includes('draining'), 'the client is told to use another connection')
  }),
)

const misuse: ConformanceCase[] = [
  conformanceCase('an owner that throws in onExchange loses that exchange, and nothing else is called', (stage) => {
    stage.serve = () => {
      throw new Error('the owner fails')
    }
    const client = stage.request(post(), false)
    client.send({ content: Buffer.alloc(1000) })
    stage.run()
    stage.world.advance(120_000)
    assert.ok(client.closed)
    assert.ok(client.error !== undefined || (client.head?.status ?? 0) >= 500, 'the client is told')
    const server = stage.sides.find(({ role }) => role === 'server')
    // Its handler was never handed over, so nobody can be told.
    assert.deepEqual(server?.calls, [])
    if (server !== undefined) server.closed = true
  }),
  conformanceCase('a handler may not shut down or abort its connection from inside, and is told so', (stage) => {
    const wrong: unknown[] = []
    stage.serve = (side) =>
      whenReceived(side, () => {
        for (const call of [() => stage.pair.server.shutdown(), () => stage.pair.server.abort(new HeddleError('SHUTDOWN', 'x'))]) {
          try {
            call()
          } catch (error) {
            wrong.push(error)
          }
        }
        side.exchange.sendHead(responseHead(200), true)
      })
    const client = stage.request(get(), true)
    stage.run()
    assert.equal(wrong.length, 2)
    assert.ok(wrong.every((error) => error instanceof UsageError))
    assertWell(client, stage.served)
  }),
  ...(['client', 'server'] as const).map((role) =>
    conformanceCase(`abort by the ${role} ends every exchange with its error, at once`, (stage) => {
      const client = begin(stage)
      const error = new HeddleError('SHUTDOWN', 'enough')
      const open = stage.sides.filter((side) => side.role === role && !side.closed)
      stage.pair[role].abort(error)
      stage.run()
      for (const side of open) assert.equal(side.error, error)
      assert.equal(stage.pair[role].openExchanges, 0)
      stage.world.advance(120_000)
      assertHonest(stage, client)
    }),
  ),
]

/** How exchanges end other than well. */
export const endingCases: readonly ConformanceCase[] = [...cancels, ...losses, ...throwing, ...early, unwanted, ...shutdowns, ...misuse]
