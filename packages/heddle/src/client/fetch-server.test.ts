import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import http2 from 'node:http2'
import net, { type AddressInfo, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { makeAuthority, makeCertificate } from '../testing/index.ts'
import { Client } from './client.ts'
import type { ClientOptions } from './options.ts'
import type { ClientProtocol } from './protocols.ts'

/** What fetch is tested against: Node's server on a port of its own, closed when the test ends. */
export interface TestServer {
  /** `http://127.0.0.1:PORT`; https where HTTP/2 is spoken. */
  readonly url: string
  /** Connections accepted, ever. */
  readonly connections: () => number
  readonly server: http.Server
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void

const authority = makeAuthority()
const { cert, key } = makeCertificate({ names: ['localhost'], ipAddresses: ['127.0.0.1'], ca: authority })

/** The tests that run over HTTP/2. */
const overHttp2 = new WeakSet<TestContext>()

/** The same test over each version: `startServer` and `startClient` know which one it is. */
export function testEach(name: string, run: (t: TestContext, protocol: ClientProtocol) => Promise<void>): void {
  void test(`${name} (h1)`, (t) => run(t, 'h1'))
  void test(`${name} (h2)`, (t) => {
    overHttp2.add(t)
    return run(t, 'h2')
  })
}

export async function startServer(t: TestContext, answer: Answer): Promise<TestServer> {
  if (overHttp2.has(t)) return startHttp2Server(t, answer)
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

async function startHttp2Server(t: TestContext, answer: Answer): Promise<TestServer> {
  let connections = 0
  let over = false
  const sessions = new Set<http2.ServerHttp2Session>()
  const server = http2.createSecureServer({ cert, key, maxSessionMemory: 1_000 }, answer as never)
  server.on('session', (session) => {
    connections++
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    if (over) session.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    over = true
    for (const session of sessions) session.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return { url: `https://127.0.0.1:${port}`, connections: () => connections, server: server as never }
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
  const client = new Client({ ...options, tls: { ca: authority.cert } })
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
