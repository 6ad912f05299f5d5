import assert from 'node:assert/strict'
import { test } from 'node:test'
import { worldTest } from '../testing/index.ts'
import { stage } from './hand-written-peer.test.ts'
import { versions, WebSocketStage } from './stage.test.ts'

const bad = [Number.NaN, -1, '50', null] as number[]
const refused = (deadline: unknown): object => ({
  code: 'USAGE',
  message: `deadline is a number of ms, 0 or more, or Infinity, and this is ${String(deadline)}`,
})

for (const version of versions) {
  worldTest(`${version}: a deadline that is none is refused before anything has begun`, { seeds: 1 }, async (world) => {
    const wsStage = new WebSocketStage(world, version)
    const [client, server] = wsStage.sockets()
    for (const deadline of bad) {
      await world.complete(assert.rejects(client.read({ deadline }), refused(deadline)))
      await world.complete(assert.rejects(client.write('not sent', { deadline }), refused(deadline)))
    }
    server.post('for the next read')
    assert.equal(await world.complete(client.read({ deadline: Infinity })), 'for the next read')
    // Longer than a timer of Node's can be.
    const read = server.read({ deadline: 2 ** 40 })
    await world.settle()
    await world.complete(client.write('sent', { deadline: 2 ** 40 }))
    assert.equal(await world.complete(read), 'sent')
    client.close(1000)
    await world.complete(Promise.all([client.closed, server.closed]))
    wsStage.finish()
  })

  worldTest(`${version}: a Ping's payload is the caller's again after the call`, { seeds: 1 }, async (world) => {
    const wsStage = new WebSocketStage(world, version)
    const [client, server] = wsStage.sockets()
    const payload = Buffer.from('ping')
    const answered = new Promise<number | undefined>((resolve) => client.ping(payload, resolve))
    payload.fill(0)
    assert.ok(((await world.complete(answered)) ?? -1) >= 0)
    client.close(1000)
    await world.complete(Promise.all([client.closed, server.closed]))
    wsStage.finish()
  })
}

test('the same while it is connecting', async () => {
  const { world, open } = stage()
  const webSocket = open()
  for (const deadline of bad) {
    await assert.rejects(webSocket.read({ deadline }), refused(deadline))
    await assert.rejects(webSocket.write('not sent', { deadline }), refused(deadline))
  }
  await world.complete(webSocket.opened)
  webSocket.abort()
  await world.complete(webSocket.closed)
})
