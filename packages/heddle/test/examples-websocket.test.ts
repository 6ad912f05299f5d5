import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from 'heddle'
import { connect, HandshakeError, type Closed, type Socket } from 'heddle/websocket'
import { run } from './run-example.ts'

test('chat', { timeout: 30_000 }, async () => {
  let last: Promise<Closed> | undefined
  await run('websocket-chat', async (url) => {
    const address = `${url.replace('http', 'ws')}/chat`
    assert.match(await (await fetch(url)).text(), /new WebSocket/)
    assert.equal((await fetch(`${url}/chat`)).status, 426)
    const foreign: unknown = await connect(address, { origin: 'https://evil.example' }).catch((error: unknown) => error)
    assert.ok(foreign instanceof HandshakeError && foreign.status === 403)

    // One over each version.
    const client = new Client({ h2c: true, protocols: ['h2'] })
    const ada = await connect(address, { protocols: ['lines'] })
    const bob = await connect(address, { protocols: ['lines'], client, origin: url })
    assert.deepEqual([ada.version, bob.version, ada.protocol], ['h1', 'h2', 'lines'])
    const read = async (socket: Socket, count: number): Promise<unknown[]> => {
      const messages: unknown[] = []
      while (messages.length < count) messages.push(await socket.read())
      return messages
    }
    assert.deepEqual(await read(ada, 2), ['somebody came, 1 are here', 'somebody came, 2 are here'])
    assert.deepEqual(await read(bob, 1), ['somebody came, 2 are here'])
    await ada.write('hello')
    await bob.write('hello yourself')
    assert.deepEqual([await bob.read(), await ada.read()], ['hello', 'hello yourself'])
    await bob.write(new Uint8Array(1))
    assert.deepEqual([(await bob.closed).code, (await bob.closed).reason], [1003, 'lines of text, please'])
    assert.match((await ada.read()) as string, /^somebody left \(\d+\), 1 are here$/)
    await client.close()
    last = ada.closed
  })
  // Whoever is left when the server stops is told.
  assert.equal((await last)?.code, 1001)
})

test('echo', { timeout: 30_000 }, () =>
  run('websocket-echo', async (url, lines) => {
    const socket = await connect(url)
    assert.equal(socket.extensions, 'permessage-deflate')
    for (const message of ['short', 'long '.repeat(100_000), new Uint8Array([1, 2, 3])]) {
      await socket.write(message)
      assert.deepEqual(await socket.read(), message)
    }
    socket.close(4000)
    assert.equal((await socket.closed).wasClean, true)
    assert.equal((await lines.next()).value, 'closed 4000')
    const lost = await connect(url)
    lost.abort()
    assert.match((await lines.next()).value as string, /^lost: /)
  }),
)
