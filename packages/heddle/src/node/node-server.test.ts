import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request as httpRequest, type IncomingMessage as NodeIncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { NodeClient } from '../../test/node-client.ts'
import { UsageError, type Address } from '../http/index.ts'
import { makeCertificate } from '../testing/index.ts'
import { createServer, nodeListener, NodeServer } from './index.ts'

const quick = { timeout: 20_000 }

function portOf(server: NodeServer): number {
  return (server.address() as Address).port
}

test('it listens, answers over both versions, and closes', quick, async (t) => {
  const events: string[] = []
  const server = createServer((request, response) => response.end(`${request.method} ${request.httpVersion}`))
  for (const name of ['listening', 'close']) server.on(name, () => events.push(name))
  server.on('request', (request) => events.push(`request ${request.url}`))
  assert.deepEqual([server.listening, server.address(), server.stats()], [false, null, undefined])
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  assert.equal(server.listening, true)
  assert.equal((server.address() as Address).address, '127.0.0.1')
  for (const [way, version] of [
    ['h1', '1.1'],
    ['h2c', '2.0'],
  ] as const) {
    const client = new NodeClient(portOf(server), way)
    t.after(() => client.close())
    assert.equal((await client.ask({ path: `/${way}` })).text, `GET ${version}`)
  }
  assert.equal(await new Promise((resolve) => server.getConnections((_error, count) => resolve(count))), 2)
  await new Promise<void>((resolve, reject) => server.close((error) => (error === undefined ? resolve() : reject(error))))
  assert.deepEqual(events, ['listening', 'request /h1', 'request /h2c', 'close'])
  assert.deepEqual([server.listening, server.address(), server.stats()?.connections], [false, null, 0])
  server.close((error) => events.push((error as NodeJS.ErrnoException).code as string))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(events.at(-1), 'ERR_SERVER_NOT_RUNNING')
  server.listen({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  await server[Symbol.asyncDispose]()
})

test('what cannot be listened on is an error event', quick, async (t) => {
  const first = new NodeServer().listen(0, '127.0.0.1')
  t.after(() => first.close())
  await once(first, 'listening')
  assert.throws(() => first.listen(0), { code: 'ERR_SERVER_ALREADY_LISTEN' })
  const second = createServer({}, () => {}).listen({ port: portOf(first), host: '127.0.0.1' })
  const [error] = (await once(second, 'error')) as [NodeJS.ErrnoException]
  assert.equal(error.code, 'EADDRINUSE')
  second.listen(0, '127.0.0.1', 10)
  await once(second, 'listening')
  await second[Symbol.asyncDispose]()
})

test('closed before it listens, it never does', quick, async () => {
  const server = createServer().listen('0', () => assert.fail('listening'))
  const closed = once(server, 'close')
  server.close({ deadline: 0 })
  await closed
  assert.equal(server.listening, false)
  const aborted = createServer().listen({ port: 0, signal: AbortSignal.abort() })
  await once(aborted, 'close')
  const controller = new AbortController()
  const third = createServer().listen({ port: 0, host: '127.0.0.1', signal: controller.signal })
  await once(third, 'listening')
  controller.abort()
  await once(third, 'close')
})

test('a Unix socket', quick, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-node-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'socket')
  const server = createServer((request, response) => response.end(String(request.socket.remoteAddress === '')))
  await new Promise<void>((resolve) => server.listen(path, resolve))
  t.after(() => server.close({ deadline: 0 }))
  assert.equal(server.address(), path)
  const request = httpRequest({ socketPath: path, agent: false }).end()
  const [message] = (await once(request, 'response')) as [NodeIncomingMessage]
  assert.equal((await message.toArray()).join(''), 'true')
})

test('options of serve hold, TLS among them', quick, async (t) => {
  const { cert, key } = makeCertificate({ names: ['localhost'] })
  const told: unknown[] = []
  const server = createServer(
    { tls: { cert, key }, limits: { maxContentLength: 10 }, onError: (error) => told.push(error) },
    (request, response) => {
      const socket = request.socket as typeof request.socket & { alpnProtocol: string; getCipher(): { name: string } }
      assert.deepEqual(Object.keys((socket as unknown as { getPeerCertificate(): object }).getPeerCertificate()), [])
      if (request.url === '/throw') throw new Error('thrown')
      response.end(`${(socket as { encrypted?: boolean }).encrypted} ${socket.alpnProtocol} ${socket.getCipher().name.slice(0, 3)}`)
    },
  )
  assert.throws(() => server.updateTls({ cert, key }), /not listen/)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close({ deadline: 0 }))
  const client = new NodeClient(portOf(server), 'h2')
  t.after(() => client.close())
  assert.equal((await client.ask()).text, 'true h2 TLS')
  assert.equal((await client.ask({ method: 'POST', body: 'x'.repeat(11) })).status, 413)
  assert.equal((await client.ask({ path: '/throw' })).status, 500)
  assert.equal((told[0] as Error).message, 'thrown')
  server.updateTls({ cert, key })
})

test('connections can be closed while it listens', quick, async (t) => {
  const server = createServer((request, response) => {
    if (request.url !== '/wait') response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close({ deadline: 0 }))
  const idle = new NodeClient(portOf(server), 'h1')
  const busy = new NodeClient(portOf(server), 'h1')
  t.after(() => (idle.close(), busy.close()))
  await idle.ask()
  const waiting = busy.start({ path: '/wait' }, true)
  waiting.out.end()
  while (server.stats()?.exchanges !== 1) await new Promise((resolve) => setTimeout(resolve, 2))
  server.closeIdleConnections()
  while (server.stats()?.connections !== 1) await new Promise((resolve) => setTimeout(resolve, 2))
  server.closeAllConnections()
  await assert.rejects(waiting.response)
  while (server.stats()?.connections !== 0) await new Promise((resolve) => setTimeout(resolve, 2))
  assert.equal(server.listening, true)
  server.unref().ref()
})

test('what is no listener, and an option that is none, is refused at the call', () => {
  const refused: [() => unknown, string][] = [
    [
      () => nodeListener({ callback: () => {} } as never),
      'nodeListener: the listener must be a function (request, response), such as an Express app or koa.callback()',
    ],
    [() => nodeListener(() => {}, { onErorr: () => {} } as never), 'nodeListener: there is no option onErorr; did you mean onError?'],
    [() => createServer('8080' as never), 'createServer: the options must be an object'],
    [() => createServer({}, {} as never), 'createServer: the listener must be a function (request, response)'],
  ]
  for (const [call, message] of refused) {
    assert.throws(call, (error) => error instanceof UsageError && error.message === message)
  }
})
