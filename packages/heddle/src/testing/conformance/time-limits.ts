import assert from 'node:assert/strict'
import { responseHead } from '../../http/index.ts'
import { assertWell, conformanceCase, get, post, whenReceived, type ConformanceCase } from './stage.ts'

/** Time limits: each runs out when it should, not before, and tells both sides. */
export const timeLimitCases: readonly ConformanceCase[] = [
  conformanceCase(
    'no answer in time',
    (stage) => {
      stage.serve = () => {}
      const client = stage.request(get(), true)
      stage.run()
      stage.world.advance(2900 - 200)
      assert.equal(client.closed, false)
      stage.world.advance(500)
      assert.equal(client.error?.code, 'HEAD_TIMEOUT')
      stage.world.advance(1000)
      assert.ok(stage.served.closed && stage.served.error !== undefined, 'the server is told')
    },
    { clientLimits: { responseTimeout: 3000 } },
  ),
  conformanceCase(
    'an answer that comes slowly but comes is no time-out',
    (stage) => {
      const { world } = stage
      stage.serve = (side) =>
        whenReceived(side, () => {
          side.exchange.sendHead(responseHead(200), false)
          for (let i = 1; i <= 10; i++) world.after(i * 1500, () => void side.exchange.sendData(Buffer.from('x'), 0, 1, i === 10))
        })
      const client = stage.request(get(), true)
      stage.run()
      assert.equal(client.received, 10)
      assertWell(client, stage.served)
    },
    { clientLimits: { responseTimeout: 3000, bodyTimeout: 2000 } },
  ),
  conformanceCase(
    'content of the answer stops coming',
    (stage) => {
      stage.serve = (side) =>
        whenReceived(side, () => {
          side.exchange.sendHead(responseHead(200), false)
          side.send({ content: Buffer.alloc(1000), finish: 'open' })
        })
      const client = stage.request(get(), true)
      stage.run()
      assert.equal(client.received, 1000)
      stage.world.advance(1900 - 200)
      assert.equal(client.closed, false)
      stage.world.advance(500)
      assert.equal(client.error?.code, 'BODY_TIMEOUT')
      stage.world.advance(1000)
      assert.ok(stage.served.closed && stage.served.error !== undefined, 'the server is told')
    },
    { clientLimits: { bodyTimeout: 2000 } },
  ),
  conformanceCase(
    'content of the request stops coming',
    (stage) => {
      const client = stage.request(post(), false)
      client.send({ content: Buffer.alloc(1000), finish: 'open' })
      stage.run()
      const server = stage.served
      stage.world.advance(1900 - 200)
      assert.equal(server.closed, false)
      stage.world.advance(500)
      assert.equal(server.error?.code, 'BODY_TIMEOUT')
      stage.world.advance(10_000)
      assert.ok(client.closed, 'the client is told')
      assert.ok(client.error !== undefined || client.head?.status === 408)
    },
    { serverLimits: { bodyTimeout: 2000 } },
  ),
  conformanceCase(
    'content that is not wanted yet is not late',
    (stage) => {
      stage.serve = (side) => {
        side.autoConsume = false
        whenReceived(side, () => side.exchange.sendHead(responseHead(200), true))
      }
      const client = stage.request(post(), false)
      client.send({ content: Buffer.alloc(1_000_000) })
      stage.run()
      stage.world.advance(30_000)
      const server = stage.served
      assert.equal(server.error?.code, undefined)
      assert.equal(server.closed, false)
      server.autoConsume = true
      server.exchange.consume(server.received)
      stage.run()
      assertWell(client, server)
    },
    { serverLimits: { bodyTimeout: 2000 }, clientLimits: { sendTimeout: 1_000_000, responseTimeout: 1_000_000 } },
  ),
  conformanceCase(
    'an idle connection is closed in peace',
    (stage) => {
      const client = stage.request(get(), true)
      stage.run()
      assertWell(client, stage.served)
      stage.world.advance(4900 - 200)
      assert.equal(stage.clientConnection.closed, false)
      stage.world.advance(2000)
      assert.equal(stage.clientConnection.closed, true)
      assert.equal(stage.serverConnection.closed, true)
      assert.equal(stage.clientConnection.error?.code ?? 'IDLE_TIMEOUT', 'IDLE_TIMEOUT')
      assert.equal(stage.serverConnection.error?.code ?? 'IDLE_TIMEOUT', 'IDLE_TIMEOUT')
    },
    { clientLimits: { idleTimeout: 5000 }, serverLimits: { idleTimeout: 5000 } },
  ),
]
