import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { HeddleError } from '../http/index.ts'
import { startClient, startRawServer } from './fetch-server.test.ts'

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

/** Answers the first request of each connection; what becomes of the second one is the test's matter. */
function answersOnce(second: (socket: Socket, head: string) => void): (socket: Socket) => void {
  return (socket) => {
    let requests = 0
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1')
      if (!/ HTTP\/1\.1\r\n/.test(text)) return
      if (++requests === 1) socket.write(ok)
      else second(socket, text)
    })
  }
}

const failed = (error: unknown): boolean => error instanceof HeddleError && /PEER_CLOSED|PEER_RESET|MESSAGE_TRUNCATED/.test(error.code)

test('a kept-alive connection that dies under an idempotent request is replaced unseen', async (t) => {
  for (const die of [
    (socket: Socket) => socket.destroy(),
    (socket: Socket) => socket.end(),
    (socket: Socket) => socket.resetAndDestroy(),
  ]) {
    const { url, connections } = await startRawServer(t, answersOnce(die))
    const client = startClient(t)
    for (const init of [{}, { method: 'PUT', body: 'again' }, { method: 'DELETE' }, {}]) {
      assert.equal(await (await client.fetch(url, init)).text(), 'ok')
    }
    assert.equal(connections(), 4)
  }
})

test('what is not idempotent is not sent again', async (t) => {
  const { url, connections } = await startRawServer(
    t,
    answersOnce((socket) => socket.destroy()),
  )
  const client = startClient(t)
  await (await client.fetch(url)).text()
  await assert.rejects(client.fetch(url, { method: 'POST', body: 'once' }), failed)
  assert.equal(connections(), 1)
})

test('a stream is not sent again', async (t) => {
  const { url, connections } = await startRawServer(
    t,
    answersOnce((socket) => socket.destroy()),
  )
  const client = startClient(t)
  await (await client.fetch(url)).text()
  const body = new Blob(['once']).stream()
  await assert.rejects(client.fetch(url, { method: 'PUT', body, duplex: 'half' }), failed)
  assert.equal(connections(), 1)
})

test('once a byte of a response has come, nothing is sent again', async (t) => {
  for (const beginning of ['H', 'HTTP/1.1 200 OK\r\nx:', 'HTTP/1.1 103 Early Hints\r\n\r\n']) {
    const { url, connections } = await startRawServer(
      t,
      answersOnce((socket) => socket.write(beginning, () => setTimeout(() => socket.destroy(), 5))),
    )
    const client = startClient(t)
    await (await client.fetch(url)).text()
    await assert.rejects(client.fetch(url), failed, beginning)
    assert.equal(connections(), 1, beginning)
  }
})

test('a fresh connection that dies is no reason to try again', async (t) => {
  const { url, connections } = await startRawServer(t, (socket) => socket.once('data', () => socket.destroy()))
  const client = startClient(t)
  await assert.rejects(client.fetch(url), failed)
  assert.equal(connections(), 1)
})

test('after two retries it is enough', async (t) => {
  let died = 0
  const first: Socket[] = []
  const { url } = await startRawServer(t, (socket) => {
    let requests = 0
    socket.on('data', () => {
      if (++requests === 2) {
        died++
        socket.destroy()
        return
      }
      // Five at once, so that five connections are kept, each of which dies under its second request.
      first.push(socket)
      if (first.length >= 5) for (const waiting of first.splice(0)) waiting.write(ok)
    })
  })
  const client = startClient(t, { maxConnectionsPerOrigin: 5 })
  await Promise.all(Array.from({ length: 5 }, async () => (await client.fetch(url)).text()))
  await assert.rejects(client.fetch(url), failed)
  assert.deepEqual([died, client.stats().retries], [3, 2])
})

test('retries: 0 turns it off', async (t) => {
  const { url } = await startRawServer(
    t,
    answersOnce((socket) => socket.destroy()),
  )
  const client = startClient(t)
  await (await client.fetch(url)).text()
  await assert.rejects(client.fetch(url, { retries: 0 }), failed)
})
