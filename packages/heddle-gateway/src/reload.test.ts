import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connect } from 'node:tls'
import { Client } from 'heddle/client'
import { Response, serve, type Server } from 'heddle/server'
import { makeCertificate } from 'heddle/testing'
import { connect as connectWebSocket, upgrade } from 'heddle/websocket'
import { parseConfig, ReloadError, startGateway, type Config } from './index.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle-reload-'))
after(() => rmSync(folder, { recursive: true }))

/** An origin that says its name; `/slow` waits for `release`. */
async function origin(name: string): Promise<{ server: Server; arrived: Promise<void>; release: () => void }> {
  const arrived = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const server = await serve({
    hostname: '127.0.0.1',
    fetch: async (request) => {
      if (new URL(request.url).pathname === '/slow') {
        arrived.resolve()
        await released.promise
      }
      return new Response(`${name} ${request.headers.get('via')}`)
    },
  })
  return { server, arrived: arrived.promise, release: released.resolve }
}

interface Wanted {
  readonly listener?: string
  readonly clusters: Readonly<Record<string, readonly number[]>>
  readonly routes: string
  readonly more?: string
}

function config({ listener = '', clusters, routes, more = '' }: Wanted): Config {
  const lines = Object.entries(clusters).map(
    ([name, ports]) => `  - { name: ${name}, endpoints: [${ports.map((port) => `127.0.0.1:${port}`).join(', ')}] }`,
  )
  return parseConfig(
    `listeners: [{ name: web, host: 127.0.0.1, port: 0${listener} }]\nroutes: ${routes}\nclusters:\n${lines.join('\n')}\n${more}`,
    { folder },
  )
}

const all = (cluster: string): string => `[{ name: all, cluster: ${cluster} }]`

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5))
}

for (const protocol of ['h1', 'h2'] as const) {
  test(`${protocol}: requests go by the new configuration, what is under way by the old, and no connection of a client ends`, async () => {
    const [a, b] = await Promise.all([origin('a'), origin('b')])
    await using gateway = await startGateway(config({ clusters: { app: [a.server.port] }, routes: all('app') }))
    await using client = new Client({ h2c: protocol === 'h2' })
    const url = gateway.addresses[0]?.url as string
    const text = async (path: string): Promise<string> => (await client.fetch(url + path)).text()
    const seen = protocol === 'h1' ? '1.1' : '2'
    assert.equal(await text('/'), `a ${seen} heddle`)
    const slow = text('/slow')
    await a.arrived
    await gateway.reload(config({ clusters: { app: [b.server.port] }, routes: all('app'), listener: ', via: renamed' }))
    assert.equal(gateway.config.listeners[0]?.via, 'renamed')
    assert.equal(await text('/'), `b ${seen} renamed`)
    assert.equal(a.server.stats().exchanges, 1, 'the slow one goes on')
    a.release()
    assert.equal(await slow, `a ${seen} heddle`)
    await until(() => a.server.stats().connections === 0)
    const stats = await gateway.stats()
    assert.deepEqual(
      stats.clusters.map(({ name, active, endpoints }) => [name, active, endpoints.map((endpoint) => endpoint.name)]),
      [['app', 0, [`127.0.0.1:${b.server.port}`]]],
    )
    assert.equal(stats.listeners[0]?.accepted, protocol === 'h1' ? 2 : 1)
    await Promise.all([a.server.close(), b.server.close()])
  })
}

test('a cluster that did not change keeps its connections and its counts, whatever its routes become', async () => {
  const [a, b] = await Promise.all([origin('a'), origin('b')])
  const clusters = { one: [a.server.port], two: [b.server.port] }
  await using gateway = await startGateway(
    config({ clusters, routes: '[{ name: x, match: { pathPrefix: /x }, cluster: one }, { name: rest, cluster: two }]' }),
  )
  const url = gateway.addresses[0]?.url as string
  for (const path of ['/x', '/y']) await (await fetch(url + path)).text()
  // The other way round, and a route with a limit of its own.
  await gateway.reload(
    config({ clusters, routes: '[{ name: x, match: { pathPrefix: /x }, cluster: two, timeout: 5s }, { name: rest, cluster: one }]' }),
  )
  assert.match(await (await fetch(`${url}/x`)).text(), /^b /)
  assert.match(await (await fetch(`${url}/y`)).text(), /^a /)
  for (const { server } of [a, b]) assert.equal(server.stats().accepted, 1)
  assert.deepEqual(
    (await gateway.snapshot()).clusters.map(({ endpoints }) => endpoints[0]?.requests),
    [2, 2],
  )
  await Promise.all([a.server.close(), b.server.close()])
})

test('what cannot change, and TLS files that are gone, change nothing; one reload at a time; none while it stops', async () => {
  const [a, b] = await Promise.all([origin('a'), origin('b')])
  const gateway = await startGateway(config({ clusters: { app: [a.server.port] }, routes: all('app') }))
  const url = gateway.addresses[0]?.url as string
  const next = config({ clusters: { app: [b.server.port] }, routes: all('app') })
  await assert.rejects(gateway.reload({ ...next, workers: 2 }), ReloadError)
  const [cluster] = next.clusters
  const tls = { ca: join(folder, 'gone.pem'), serverName: undefined, cert: undefined, key: undefined, verify: true } as never
  await assert.rejects(gateway.reload({ ...next, clusters: [{ ...cluster, tls } as never] }), { code: 'ENOENT' })
  assert.match(await (await fetch(url)).text(), /^a /)
  const both = await Promise.allSettled([gateway.reload(next), gateway.reload(next)])
  assert.deepEqual(
    both.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  )
  assert.match(await (await fetch(url)).text(), /^b /)
  const closed = gateway.close()
  await assert.rejects(gateway.reload(next), /stops/)
  await closed
  await Promise.all([a.server.close(), b.server.close()])
})

test('a stop waits for what is under way in clusters that are gone from the configuration', async () => {
  const [a, b] = await Promise.all([origin('a'), origin('b')])
  const gateway = await startGateway(config({ clusters: { app: [a.server.port] }, routes: all('app') }))
  const slow = fetch(`${gateway.addresses[0]?.url}/slow`).then((response) => response.text())
  await a.arrived
  await gateway.reload(config({ clusters: { other: [b.server.port] }, routes: all('other') }))
  const closed = gateway.close()
  a.release()
  assert.match(await slow, /^a /)
  await closed
  await until(() => a.server.stats().connections === 0)
  await Promise.all([a.server.close(), b.server.close()])
})

test('certificates and the names they serve change for new connections', async () => {
  const { server } = await origin('a')
  const files = (name: string): string => {
    const { cert, key } = makeCertificate({ names: [`${name}.example`] })
    writeFileSync(join(folder, `${name}.crt`), cert)
    writeFileSync(join(folder, `${name}.key`), key)
    return `, tls: { certificates: [{ cert: ${name}.crt, key: ${name}.key }] }`
  }
  const shared = { clusters: { app: [server.port] }, routes: all('app') }
  await using gateway = await startGateway(config({ ...shared, listener: files('first') }))
  const { port } = gateway.addresses[0] as { port: number }
  const subject = (): Promise<string | undefined> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, servername: 'first.example' }, () => {
        resolve(socket.getPeerX509Certificate()?.subjectAltName)
        socket.destroy()
      })
      socket.on('error', reject)
    })
  assert.equal(await subject(), 'DNS:first.example')
  await gateway.reload(config({ ...shared, listener: files('second') }))
  assert.equal(await subject(), 'DNS:second.example')
  await server.close()
})

test('a keep-alive connection of another client is believed, or not, by the new trust', async () => {
  const server = await serve({ hostname: '127.0.0.1', fetch: (request) => new Response(request.headers.get('x-forwarded-for')) })
  const shared = { clusters: { app: [server.port] }, routes: all('app') }
  await using gateway = await startGateway(config(shared))
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const seen = (): Promise<[text: string, reused: boolean]> =>
    new Promise((resolve, reject) => {
      const request = get(`${gateway.addresses[0]?.url}/`, { agent, headers: { 'x-forwarded-for': '192.0.2.1' } }, (response) => {
        let text = ''
        response.setEncoding('latin1').on('data', (piece: string) => (text += piece))
        response.on('end', () => resolve([text, request.reusedSocket]))
      })
      request.on('error', reject)
    })
  assert.deepEqual(await seen(), ['127.0.0.1', false])
  await gateway.reload(config({ ...shared, listener: ', trust: [127.0.0.1]' }))
  assert.deepEqual(await seen(), ['192.0.2.1, 127.0.0.1', true])
  agent.destroy()
  await server.close()
})

for (const protocol of ['h1', 'h2'] as const) {
  test(`${protocol}: under load no request fails, and no connection ends, however often routes and clusters change`, async () => {
    const origins = await Promise.all(['a', 'b', 'c'].map((name) => origin(name)))
    const ports = origins.map(({ server }) => server.port)
    const made = (round: number): Config => {
      const name = `app${round % 7}`
      const port = ports[round % 3] as number
      const clusters =
        round % 2 === 0
          ? { [name]: [port], rest: [ports[(round >> 1) % 3] as number] }
          : { [name]: [port, ports[(round + 1) % 3] as number], rest: [port] }
      const routes = `[{ name: r${round % 5}, match: { pathPrefix: /${round % 2} }, cluster: ${name} }, { name: rest, cluster: rest, timeout: ${5 + (round % 3)}s }]`
      return config({ clusters, routes, listener: `, via: v${round % 4}` })
    }
    await using gateway = await startGateway(made(0))
    await using client = new Client({ h2c: protocol === 'h2', maxConnectionsPerOrigin: 8 })
    const url = gateway.addresses[0]?.url as string
    let left = 1_000
    let rounds = 0
    const users = Array.from({ length: 16 }, async (_, user) => {
      while (left-- > 0) {
        const upload = left % 3 === 0
        const response = await client.fetch(`${url}/${user % 2}`, upload ? { method: 'POST', body: 'x'.repeat(20_000) } : {})
        assert.equal(response.status, 200, `${response.headers.get('heddle-reason')}`)
        assert.match(await response.text(), /^[abc] /)
        // Leaves the reloads their turns.
        if (left % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      }
    })
    const finished = Promise.all(users)
    let over = false
    void finished.finally(() => (over = true)).catch(() => {})
    while (!over) {
      await gateway.reload(made(++rounds))
      await new Promise((resolve) => setTimeout(resolve, 3))
    }
    await finished
    assert.ok(rounds > 10, `${rounds} reloads`)
    assert.ok(((await gateway.stats()).listeners[0]?.accepted as number) <= 8)
    // Of clusters that are gone nothing is left.
    await gateway.reload(config({ clusters: { last: [ports[0] as number] }, routes: `[{ name: all, cluster: last }]` }))
    await until(() => origins.every(({ server }) => server.stats().connections === 0))
    await Promise.all(origins.map(({ server }) => server.close()))
  })
}

test('a WebSocket goes on when its route and its cluster are gone', async () => {
  const server = await serve({
    hostname: '127.0.0.1',
    websocket: true,
    fetch(request) {
      const { response, socket } = upgrade(request)
      socket.addEventListener('message', ({ data }) => socket.send(data))
      return response
    },
  })
  const other = await origin('other')
  await using gateway = await startGateway(config({ clusters: { app: [server.port] }, routes: all('app') }))
  const { url } = gateway.addresses[0] as { url: string }
  const socket = await connectWebSocket(url.replace('http', 'ws'))
  for (const text of ['one', 'two', 'three']) {
    await socket.write(text)
    assert.equal(await socket.read(), text)
    await gateway.reload(config({ clusters: { [text]: [other.server.port] }, routes: all(text) }))
  }
  socket.close(1000)
  await socket.closed
  await until(() => server.stats().connections === 0)
  await Promise.all([server.close(), other.server.close()])
})
