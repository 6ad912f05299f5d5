import assert from 'node:assert/strict'
import { worldTest } from '../testing/index.ts'
import { versions, WebSocketStage } from './stage.test.ts'

for (const version of versions) {
  worldTest(`${version}: messages go both ways and the end is agreed on`, { seeds: 5 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [client, server] = stage.sockets()
    assert.equal(client.version, version)
    client.post('hello')
    assert.equal(await world.complete(server.read()), 'hello')
    await world.complete(server.write(Uint8Array.of(1, 2, 3)))
    assert.deepEqual(await world.complete(client.read()), Uint8Array.of(1, 2, 3))
    client.close(1000, 'bye')
    assert.deepEqual(await world.complete(server.closed), { code: 1000, reason: 'bye', wasClean: true, error: undefined })
    assert.deepEqual(await world.complete(client.closed), { code: 1000, reason: '', wasClean: true, error: undefined })
    stage.finish()
  })
}
