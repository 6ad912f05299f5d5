import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import net, { type AddressInfo, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { Client } from './client.ts'
import type { ClientOptions } from './options.ts'

/** What fetch is tested against: Node's server on a port of its own, closed when the test ends. */
export interface TestServer {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string
  /** Connections accepted, ever. */
  readonly connections: () => number
  readonly server: http.Server
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void

export async function startServer(t: TestContext, answer: Answer): Promise<TestServer> {
  let connections = 0
  const server = http.createServer(answer)
  server.on('connection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections, server }
}

/** A server that says the bytes it is told to: `answer` gets every connection. */
export async function startRawServer(
  t: TestContext,
  answer: (socket: Socket, index: number) => void,
): Promise<{ url: string; connections: () => number }> {
  let connections = 0
  const sockets = new Set<Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    answer(socket, connections++)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections }
}

/** A client that is gone when the test ends. */
export function startClient(t: TestContext, options?: ClientOptions): Client {
  const client = new Client(options)
  t.after(() => client.destroy())
  return client
}

/** All content of a request. */
export async function contentOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** Waits until `value` has stayed the same for 100 ms, for 5 s at most. */
export async function still(value: () => number): Promise<void> {
  const deadline = performance.now() + 5_000
  for (let before = -1; before !== value(); await new Promise((resolve) => setTimeout(resolve, 100))) {
    if (performance.now() > deadline) throw new Error(`never still: ${value()}`)
    before = value()
  }
}

/** Waits until `condition` holds, for 5 s at most: for what the other end of a socket sees a little later. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 5_000
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
