import assert from 'node:assert/strict'
import { CancelReason, responseHead } from '../../http/index.ts'
import type { Side } from './side.ts'
import { assertReceived, assertWell, conformanceCase, get, post, whenReceived, type ConformanceCase, type Stage } from './stage.ts'

/** Room for what waits between a sender that was told false and a receiver: buffers of engine and link, both ways once. */
const between = 1_000_000
const large = 6_000_000

/** Sends `large` bytes to a receiver that consumes nothing, and returns both sides once the sender stands still. */
function stall(stage: Stage, direction: 'up' | 'down', content: Buffer): { sender: Side; receiver: Side } {
  stage.serve = (side) => {
    side.autoConsume = direction === 'down'
    whenReceived(side, () => {
      side.exchange.sendHead(responseHead(200), false)
      side.send({ content: direction === 'down' ? content : Buffer.from('done'), piece: 16_384 })
    })
  }
  const client = stage.request(direction === 'up' ? post() : get(), direction === 'down')
  client.autoConsume = direction === 'up'
  if (direction === 'up') client.send({ content, piece: 16_384 })
  stage.run()
  const [sender, receiver] = direction === 'up' ? [client, stage.served] : [stage.served, client]
  assert.ok(sender.blocked, 'the sender was told to wait')
  const { receiveWindow } = stage.protocol
  assert.ok(receiver.received <= receiveWindow + 65_536, `the receiver got ${receiver.received} bytes without consuming any`)
  assert.ok(receiver.received >= Math.min(receiveWindow / 2, 16_384), 'the window is used')
  assert.ok(sender.givenLength <= receiveWindow + between, `${sender.givenLength} bytes were taken from the sender`)
  return { sender, receiver }
}

/** Lets the receiver take whatever comes from now on. */
function letFlow(receiver: Side): void {
  receiver.autoConsume = true
  receiver.exchange.consume(receiver.received)
}

const directions = ['up', 'down'] as const

/** Back pressure: a receiver that does not consume stops the sender, and every blocked writer is woken. */
export const flowCases: readonly ConformanceCase[] = [
  ...directions.map((direction) =>
    conformanceCase(`a receiver that consumes nothing stops the sender (${direction}); consuming wakes it`, (stage) => {
      const { random } = stage.world
      const content = random.bytes(large)
      const { sender, receiver } = stall(stage, direction, content)
      // Consumes in pieces of any size, at any time after they came.
      let credited = 0
      while (credited < content.length) {
        assert.ok(receiver.received > credited, `the sender goes on: ${credited} of ${content.length} consumed`)
        const count = random.integer(1, receiver.received - credited)
        receiver.exchange.consume(count)
        credited += count
        if (credited === receiver.received || random.chance(0.7)) stage.run()
        assert.ok(receiver.received - credited <= stage.protocol.receiveWindow + 65_536)
      }
      stage.run()
      assertReceived(receiver, content)
      assertWell(sender, receiver)
      assert.equal(sender.sent, content.length)
      assert.ok(sender.blocks > 1)
    }),
  ),
  ...directions.map((direction) =>
    conformanceCase(`a blocked sender is let go when the receiver cancels (${direction})`, (stage) => {
      const { sender, receiver } = stall(stage, direction, Buffer.alloc(large))
      receiver.exchange.cancel(CancelReason.Cancelled)
      stage.run()
      assert.ok(sender.closed && sender.error !== undefined)
      assert.ok(receiver.closed && receiver.error?.code === 'CANCELLED')
    }),
  ),
  ...directions.map((direction) =>
    conformanceCase(`a blocked sender can cancel (${direction})`, (stage) => {
      const { sender, receiver } = stall(stage, direction, Buffer.alloc(large))
      sender.exchange.cancel(CancelReason.Cancelled)
      stage.run()
      assert.equal(sender.error?.code, 'CANCELLED')
      // A receiver that does not read may see the end only once it reads.
      letFlow(receiver)
      stage.world.advance(120_000)
      assert.ok(receiver.closed && receiver.error !== undefined)
    }),
  ),
  ...directions.map((direction) =>
    conformanceCase(`a blocked sender is let go when the receiver discards (${direction})`, (stage) => {
      const { sender, receiver } = stall(stage, direction, Buffer.alloc(large))
      receiver.exchange.discard()
      if (receiver.role === 'server') receiver.exchange.sendHead(responseHead(200), true)
      stage.run()
      stage.world.advance(120_000)
      assert.ok(sender.closed)
      assert.ok(receiver.closed)
    }),
  ),
  ...directions.map((direction) =>
    conformanceCase(`a blocked sender is let go when the connection is lost (${direction})`, (stage) => {
      const { sender, receiver } = stall(stage, direction, Buffer.alloc(large))
      stage.pair.lose('reset')
      stage.run()
      letFlow(receiver)
      stage.world.advance(600_000)
      assert.ok(sender.closed && sender.error !== undefined)
      assert.ok(receiver.closed && receiver.error !== undefined)
    }),
  ),
  ...directions.map((direction) =>
    conformanceCase(
      `a sender whose peer takes nothing gives up (${direction})`,
      (stage) => {
        const { sender, receiver } = stall(stage, direction, Buffer.alloc(large))
        stage.world.advance(4000)
        assert.equal(sender.closed, false)
        stage.world.advance(3000)
        assert.equal(sender.error?.code, 'SEND_TIMEOUT')
        letFlow(receiver)
        stage.world.advance(120_000)
        assert.ok(receiver.closed && receiver.error !== undefined)
      },
      {
        clientLimits: { sendTimeout: 5000, responseTimeout: 1_000_000, bodyTimeout: 1_000_000 },
        serverLimits: { sendTimeout: 5000, bodyTimeout: 1_000_000 },
      },
    ),
  ),
  conformanceCase('a sender is never told false for content that leaves at once', (stage) => {
    const client = stage.request(post(), false)
    for (let i = 0; i < 20; i++) {
      assert.equal(client.exchange.sendData(Buffer.alloc(1000), 0, 1000, false), true)
      stage.run()
    }
    client.exchange.sendData(Buffer.alloc(0), 0, 0, true)
    stage.run()
    assertReceived(stage.served, Buffer.alloc(20_000))
    assertWell(client, stage.served)
  }),
]
