import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Response } from 'heddle/server'
import { Http3Code as Code, Http3StreamType, makeCertificate } from 'heddle/testing'
import { connect as openWebSocket, upgrade } from 'heddle/websocket'
import { startGateway, type Config } from '../src/index.ts'
import { checkHttp3 } from '../src/http3-error.ts'
import { ca, configOf, folder, honest, http3Cluster, lines, origin, own, probe, skip, start } from './http3-rig.ts'

/** An origin whose answers to /slow wait for `go`. */
function waiting() {
  const asked = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const fetch = async (request: { url: string }): Promise<Response> => {
    if (!request.url.endsWith('/slow')) return new Response('fast')
    asked.resolve()
    await go.promise
    return new Response('slow')
  }
  return { fetch, asked: asked.promise, go: () => go.resolve() }
}

describe('a graceful stop', { skip }, () => {
  test('finishes what runs, takes nothing more, and ends each connection with H3_NO_ERROR', async (context) => {
    const { fetch, asked, go } = waiting()
    const server = await origin(context, { fetch })
    const { gateway, connect } = await start(context, [server.port])
    const [busy, idle] = [await connect(), await connect()]
    equal((await idle.answer(await idle.request(lines('GET', '/fast')))).content, 'fast')
    const slow = await busy.request(lines('GET', '/slow'))
    await asked
    const closed = gateway.close({ deadline: 20_000 })
    equal((await idle.closed()).wireCode, Code.NoError)
    const goaway = [...busy.accepted.values()].find((stream) => stream.received[0] === Http3StreamType.Control)
    await busy.until('GOAWAY', () => {
      const control = Buffer.from(goaway?.received.subarray(1) ?? [])
      return control.includes(Buffer.from([7, 8])) || control.includes(Buffer.from([7, 1]))
    })
    go()
    equal((await busy.answer(slow)).content, 'slow')
    equal((await busy.closed()).wireCode, Code.NoError)
    await closed
    await rejects(probe(context, gateway.addresses[0]?.port ?? 0, { quic: { handshakeTimeout: 300 } }))
  })

  test('tells who waits for a response at its end, and cuts what is left', async (context) => {
    const { fetch, asked, go } = waiting()
    const server = await origin(context, { fetch })
    const { gateway, connect, records } = await start(context, [server.port])
    const client = await connect()
    const slow = await client.request(lines('GET', '/slow'))
    await asked
    const closed = gateway.close({ deadline: 1_000 })
    const answer = await client.answer(slow)
    deepEqual([answer.status, answer.content], [503, '503 Service Unavailable: shutdown\n'])
    await closed
    go()
    deepEqual([records[0]?.reason, records[0]?.status], ['shutdown', 503])
  })

  test('closes WebSockets with 1001', async (context) => {
    const server = await origin(context, {
      websocket: true,
      fetch: (request) => {
        const { response, socket } = upgrade(request)
        socket.addEventListener('message', ({ data }) => socket.send(data))
        return response
      },
    })
    const { gateway, port } = await start(context, [server.port], { route: ', extendedConnect: true' })
    const socket = await openWebSocket(`wss://localhost:${port}/`, { client: honest(context) })
    await socket.write('hello')
    equal(await socket.read(), 'hello')
    const closed = gateway.close({ deadline: 3_000 })
    deepEqual([(await socket.closed).code, (await socket.closed).wasClean], [1001, true])
    await closed
  })
})

describe('a reload', { skip }, () => {
  test('ends no connection, and brings new certificates for new ones', async (context) => {
    const server = await origin(context, { fetch: () => new Response('first') })
    const other = await origin(context, { fetch: () => new Response('second') })
    writeFileSync(join(folder, 'changing.crt'), own.cert)
    writeFileSync(join(folder, 'changing.key'), own.key)
    const withFiles = (port: number): Config => {
      const config = configOf([port])
      const certificates = [{ cert: join(folder, 'changing.crt'), key: join(folder, 'changing.key'), names: ['localhost'] }]
      return { ...config, listeners: config.listeners.map((listener) => ({ ...listener, tls: { certificates, clientCa: undefined } })) }
    }
    const gateway = await startGateway(withFiles(server.port))
    context.after(() => gateway.close({ deadline: 0 }))
    const port = gateway.addresses[0]?.port as number
    const client = await probe(context, port)
    equal((await client.answer(await client.request(lines('GET', '/')))).content, 'first')
    const renewed = makeCertificate({ names: ['renewed.example'], ca })
    writeFileSync(join(folder, 'changing.crt'), renewed.cert)
    writeFileSync(join(folder, 'changing.key'), renewed.key)
    await gateway.reload(withFiles(other.port))
    equal((await client.answer(await client.request(lines('GET', '/')))).content, 'second', 'on the connection that stands')
    await rejects(probe(context, port), { code: 'TLS_FAILED' })
    const later = await probe(context, port, { serverName: 'renewed.example' })
    equal((await later.answer(await later.request(lines('GET', '/')))).content, 'second')
  })
})

describe('without QUIC', () => {
  test('a gateway that shall speak HTTP/3 does not start, and says who wants it and what is missing', { skip }, () => {
    checkHttp3(configOf([1]), undefined)
    checkHttp3(configOf([1], { protocols: 'h2' }), 'no ffi')
    for (const [config, message] of [
      [configOf([1]), 'listener web cannot serve HTTP/3: no ffi'],
      [configOf([1], { protocols: 'h2', cluster: http3Cluster }), 'cluster app cannot be spoken to in HTTP/3: no ffi'],
    ] as const) {
      let said = ''
      try {
        checkHttp3(config, 'no ffi')
      } catch (error) {
        said = (error as Error).message
      }
      equal(said, message)
    }
  })
})

/** Runs the program with these flags of Node's until it ends. */
async function run(flags: readonly string[], file: string): Promise<{ status: unknown; errors: string }> {
  const bin = fileURLToPath(new URL('../src/bin.ts', import.meta.url))
  const child = spawn(process.execPath, [...flags, '--conditions=@heddle/source', bin, '-c', file], { stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
    if (text.includes('listener web on')) child.kill('SIGTERM')
  })
  const [status] = (await once(child, 'close')) as [unknown]
  return { status, errors }
}

test('the program says on which ports it speaks HTTP/3, or exits with 1 where it cannot', { skip }, async () => {
  const text = (protocols: string): string => `
listeners: [{ name: web, host: 127.0.0.1, port: 0, protocols: [${protocols}], tls: { certificates: [{ cert: own.crt, key: own.key }] } }]
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: [127.0.0.1:1] }]
`
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, text('h3, h2'))
  const both = await run([], file)
  equal(both.status, 0, both.errors)
  match(both.errors, /^heddle-gateway: listener web on https:\/\/127\.0\.0\.1:\d+, HTTP\/3 by UDP\n/)
  const forbidden = await run(['--permission', '--allow-fs-read=*', '--allow-net'], file)
  equal(forbidden.status, 1)
  equal(
    forbidden.errors.replace(/\(node:\d+\)[^\n]*\n(?:\(Use [^\n]*\n)?/g, ''),
    'heddle-gateway: listener web cannot serve HTTP/3: HTTP/3 calls OpenSSL by node:ffi, which the permission model forbids; start Node with --allow-ffi\n',
  )
  writeFileSync(file, text('h3'))
  match((await run([], file)).errors, /, HTTP\/3 only \(UDP\)\n/)
})

describe('workers', { skip }, () => {
  for (const protocols of ['h3, h2, h1', 'h3']) {
    test(`share the port (${protocols}): each has clients of its own, and another takes the place of one that died`, async (context) => {
      const server = await origin(context, { fetch: () => new Response('x') })
      const errors: string[] = []
      const gateway = await startGateway(configOf([server.port], { protocols, more: 'workers: 2' }), {
        onError: (message) => errors.push(message),
      })
      context.after(() => gateway.close({ deadline: 0 }))
      const port = gateway.addresses[0]?.port as number
      ok(port > 0)
      const clients = await Promise.all(Array.from({ length: 20 }, () => probe(context, port)))
      for (const client of clients) equal((await client.answer(await client.request(lines('GET', '/')))).content, 'x')
      const { traffic, listeners } = await gateway.snapshot()
      equal(traffic.served.length, 2, 'both served')
      deepEqual([listeners[0]?.http3.connections, listeners[0]?.accepted], [20, 20])
      const { pids } = gateway
      process.kill(pids[0] as number, 'SIGKILL')
      while (gateway.pids.length < 2 || gateway.pids.includes(pids[0] as number)) await sleep(20)
      // Whoever was with the one that died, or comes to another one than before, is told at once: it is no timeout.
      for (const client of clients) {
        const stream = client.error === undefined ? client.openNow().sendHead(lines('GET', '/'), true) : undefined
        await client.until('an answer, or the end', () => stream?.ended === true || client.error !== undefined)
        if (client.error !== undefined) equal(client.error.code, 'PEER_RESET', client.error.message)
      }
      const later = await probe(context, port)
      equal((await later.answer(await later.request(lines('GET', '/')))).content, 'x')
      equal(errors.length, 1)
    })
  }

  test('do not share a port that another program has', async (context) => {
    const taken = createSocket({ type: 'udp4', reusePort: true })
    taken.bind(0, '127.0.0.1')
    await once(taken, 'listening')
    context.after(() => taken.close())
    const { port } = taken.address()
    const config = configOf([1], { more: 'workers: 2' })
    await rejects(startGateway({ ...config, listeners: config.listeners.map((listener) => ({ ...listener, port })) }), {
      name: 'ListenError',
      message: `listener web cannot listen on 127.0.0.1:${port} (UDP): another program listens there`,
    })
  })
})
