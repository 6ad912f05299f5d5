import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { NetworkError, PeerError } from '../http/index.ts'
import { Client } from './index.ts'

const here = import.meta.url

/** Answers the first part of a response, and breaks off when asked for more. */
async function breakingServer(): Promise<{ url: string; sockets: Set<Socket>; close(): void }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nonly this'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}/`, sockets, close: () => server.close() }
}

test('a fetch that fails tells which functions of the program awaited it, each its own', { timeout: 20_000 }, async () => {
  const { url, close } = await breakingServer()
  close()
  await using client = new Client()
  async function loadUser(): Promise<unknown> {
    return await client.fetch(url)
  }
  async function loadOrders(): Promise<unknown> {
    return await client.fetch(url)
  }
  const outcomes = await Promise.allSettled([loadUser(), loadOrders()])
  const [user, orders] = outcomes.map((outcome) => (outcome as PromiseRejectedResult).reason as Error)
  assert.ok(user instanceof NetworkError && orders instanceof NetworkError)
  assert.match(user.stack ?? '', /^NetworkError: no connection to .*\n +at async loadUser /)
  assert.match(orders.stack ?? '', /^NetworkError: no connection to .*\n +at async loadOrders /)
  assert.ok(user.stack?.includes(here))
})

test('content that is cut tells who read it, before or after it happened', { timeout: 20_000 }, async () => {
  const { url, sockets, close } = await breakingServer()
  await using client = new Client()
  async function readText(): Promise<void> {
    const response = await client.fetch(url)
    const text = response.text()
    for (const socket of sockets) socket.destroy()
    await text
  }
  async function readLate(): Promise<void> {
    const response = await client.fetch(url)
    const failed = response.trailers.catch(() => {})
    for (const socket of sockets) socket.destroy()
    await failed
    await response.bytes()
  }
  for (const read of [readText, readLate]) {
    const error = await read().catch((reason: unknown) => reason)
    assert.ok(error instanceof PeerError, String(error))
    assert.match(error.stack ?? '', new RegExp(`at (async )?${read.name} `))
  }
  close()
})

test('the reason of a signal is passed on untouched', { timeout: 20_000 }, async () => {
  const { url, sockets, close } = await breakingServer()
  await using client = new Client()
  const reason = new Error('enough')
  const { stack } = reason
  const controller = new AbortController()
  const fetched = client.fetch(url, { signal: controller.signal })
  controller.abort(reason)
  await assert.rejects(fetched, (error) => error === reason && reason.stack === stack)
  for (const socket of sockets) socket.destroy()
  close()
})
