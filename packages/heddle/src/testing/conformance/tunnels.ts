import assert from 'node:assert/strict'
import { CancelReason, requestHead, responseHead, type Head } from '../../http/index.ts'
import type { Side } from './side.ts'
import { assertReceived, assertWell, conformanceCase, type ConformanceCase, type Stage } from './stage.ts'

const requests: Record<string, Head> = {
  CONNECT: requestHead('CONNECT', '', 'target.test:443', ''),
  'CONNECT with a protocol': requestHead('CONNECT', 'http', 'origin.test', '/chat', ['x-a', 'b'], 'conformance'),
}

/** Opens a tunnel; both sides can send. */
function open(stage: Stage, request: Head): { client: Side; server: Side } {
  stage.serve = (side) => {
    side.on = { onHead: () => side.exchange.sendHead(responseHead(200, ['x-tunnel', 'yes']), false) }
  }
  const client = stage.request(request, false)
  stage.run()
  const server = stage.served
  assert.equal(client.head?.status, 200)
  assert.equal(client.ended, false)
  assert.equal(server.ended, false)
  return { client, server }
}

function casesOf(name: string, request: Head): ConformanceCase[] {
  return [
    conformanceCase(`${name}: bytes both ways, whatever they are`, (stage) => {
      const { client, server } = open(stage, request)
      const { head } = server
      assert.deepEqual(
        [head?.method, head?.authority, head?.path, head?.protocol],
        [request.method, request.authority, request.path, request.protocol],
      )
      const up = stage.world.random.bytes(300_000)
      const down = stage.world.random.bytes(300_000)
      client.send({ content: up })
      server.send({ content: down })
      stage.run()
      assertReceived(server, up)
      assertReceived(client, down)
      assertWell(client, server)
      assert.equal(client.sent, up.length)
      assert.equal(server.sent, down.length)
    }),
    ...(['client', 'server'] as const).map((first) =>
      conformanceCase(`${name}: half-close by the ${first} first`, (stage) => {
        const { client, server } = open(stage, request)
        const [one, other] = first === 'client' ? [client, server] : [server, client]
        one.send({ content: Buffer.from('last words') })
        stage.run()
        assertReceived(other, Buffer.from('last words'))
        assert.equal(one.closed, false)
        assert.equal(other.closed, false)
        const content = stage.world.random.bytes(200_000)
        other.send({ content, finish: 'open' })
        stage.run()
        stage.world.advance(5000)
        assert.equal(one.received, content.length)
        assert.equal(one.ended, false)
        other.exchange.sendData(Buffer.alloc(0), 0, 0, true)
        stage.run()
        assertReceived(one, content)
        assertWell(client, server)
      }),
    ),
    conformanceCase(`${name}: the server speaks first, right behind its answer`, (stage) => {
      stage.serve = (side) => {
        side.on = {
          onHead() {
            side.exchange.sendHead(responseHead(200), false)
            side.exchange.sendData(Buffer.from('welcome'), 0, 7, false)
          },
        }
      }
      const client = stage.request(request, false)
      stage.run()
      assert.equal(client.content.toString(), 'welcome')
      client.exchange.sendData(Buffer.alloc(0), 0, 0, true)
      stage.served.exchange.sendData(Buffer.alloc(0), 0, 0, true)
      stage.run()
      assertWell(client, stage.served)
    }),
    conformanceCase(`${name}: what is sent before the answer waits for it, the end too`, (stage) => {
      stage.serve = () => {}
      const content = stage.world.random.bytes(stage.world.random.length(200_000))
      const client = stage.request(request, false)
      client.send({ content })
      stage.run()
      const server = stage.served
      assert.equal(server.received, 0)
      server.exchange.sendHead(responseHead(200), false)
      server.send({ content: Buffer.from('bye') })
      stage.run()
      assertReceived(server, content)
      assertReceived(client, Buffer.from('bye'))
      assertWell(client, server)
    }),
    conformanceCase(`${name}: refused, with content that says why`, (stage) => {
      stage.serve = (side) => {
        // The tunnel's bytes will never come, and so neither will their end.
        side.discarded = true
        side.on = {
          onHead() {
            side.exchange.sendHead(responseHead(403, ['content-length', '2']), false)
            side.exchange.sendData(Buffer.from('no'), 0, 2, true)
          },
        }
      }
      const client = stage.request(request, false)
      stage.run()
      assert.equal(client.head?.status, 403)
      assertReceived(client, Buffer.from('no'))
      client.exchange.cancel(CancelReason.NoError)
      stage.run()
      stage.world.advance(120_000)
    }),
    conformanceCase(`${name}: a side that consumes nothing stops the other`, (stage) => {
      const { client, server } = open(stage, request)
      const content = stage.world.random.bytes(4_000_000)
      const [sender, receiver] = stage.world.random.chance(0.5) ? [client, server] : [server, client]
      receiver.autoConsume = false
      sender.send({ content, piece: 16_384 })
      stage.run()
      assert.ok(sender.blocked)
      assert.ok(receiver.received <= stage.protocol.receiveWindow + 65_536, `${receiver.received} received`)
      assert.ok(sender.givenLength <= stage.protocol.receiveWindow + 1_000_000)
      receiver.autoConsume = true
      receiver.exchange.consume(receiver.received)
      stage.run()
      assertReceived(receiver, content)
      receiver.exchange.sendData(Buffer.alloc(0), 0, 0, true)
      stage.run()
      assertWell(client, server)
    }),
    ...(['client', 'server'] as const).map((who) =>
      conformanceCase(`${name}: cancelled by the ${who}`, (stage) => {
        const { client, server } = open(stage, request)
        client.send({ content: Buffer.alloc(100_000), finish: 'open' })
        server.send({ content: Buffer.alloc(100_000), finish: 'open' })
        for (let steps = stage.world.random.length(50); steps > 0; steps--) stage.world.step()
        const [one, other] = who === 'client' ? [client, server] : [server, client]
        one.exchange.cancel(CancelReason.ConnectError)
        stage.run()
        stage.world.advance(120_000)
        assert.equal(one.error?.code, 'CANCELLED')
        assert.ok(other.closed && other.error !== undefined, 'the other side is told')
      }),
    ),
    ...(['client', 'server'] as const).map((who) =>
      conformanceCase(`${name}: discarded by the ${who}: nothing more is handed over, and sending goes on`, (stage) => {
        const { client, server } = open(stage, request)
        const [one, other] = who === 'client' ? [client, server] : [server, client]
        other.exchange.sendData(Buffer.from('seen'), 0, 4, false)
        stage.run()
        one.exchange.discard()
        other.send({ content: Buffer.alloc(50_000) })
        one.send({ content: Buffer.alloc(50_000) })
        stage.run()
        stage.world.advance(120_000)
        assert.equal(one.received, 4)
        // A version that can only drop the connection may cut the other direction short.
        assert.ok(other.closed && (other.received === 50_000 || other.error !== undefined))
      }),
    ),
    conformanceCase(`${name}: the connection is lost under it`, (stage) => {
      const { client, server } = open(stage, request)
      client.send({ content: Buffer.alloc(100_000), finish: 'open' })
      for (let steps = stage.world.random.length(50); steps > 0; steps--) stage.world.step()
      stage.pair.lose('reset')
      stage.run()
      stage.world.advance(120_000)
      assert.ok(client.error !== undefined)
      assert.ok(server.error !== undefined)
    }),
    conformanceCase(`${name}: stands while nothing is said, longer than any time limit of messages`, (stage) => {
      const { client, server } = open(stage, request)
      stage.world.advance(3_600_000)
      assert.equal(client.closed || server.closed, false)
      client.exchange.sendData(Buffer.from('still here'), 0, 10, true)
      server.exchange.sendData(Buffer.alloc(0), 0, 0, true)
      stage.run()
      assertReceived(server, Buffer.from('still here'))
      assertWell(client, server)
    }),
  ]
}

/** Tunnels: once open, an exchange is a pair of byte streams. */
export const tunnelCases: readonly ConformanceCase[] = Object.entries(requests).flatMap(([name, request]) => casesOf(name, request))
