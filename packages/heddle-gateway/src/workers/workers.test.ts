import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, test } from 'node:test'
import { Client } from 'heddle/client'
import { Response, serve, type Server } from 'heddle/server'
import { connect, upgrade } from 'heddle/websocket'
import { parseConfig, startGateway, type Config, type Gateway } from '../index.ts'
import { parsePrometheus } from '../../test/parse-prometheus.ts'

function start(origin: Server, errors: string[] = []): Promise<Gateway> {
  const config = parseConfig(`
workers: 2
admin: { port: 0 }
listeners: [{ name: web, host: 127.0.0.1, port: 0 }]
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]
`)
  return startGateway(config, { onError: (message) => errors.push(message) })
}

/** One request on a connection of its own, so that each may meet another worker. */
async function once(url: string): Promise<string> {
  const client = new Client({ maxConnectionsPerOrigin: 1 })
  try {
    return await (await client.fetch(url)).text()
  } finally {
    await client.close()
  }
}

// One test after the other: node:cluster is one per process.
describe('two workers', () => {
  test('share the requests, and their metrics are one', async () => {
    await using origin = await serve({ hostname: '127.0.0.1', fetch: () => new Response('x') })
    await using gateway = await start(origin)
    const url = gateway.addresses[0]?.url as string
    assert.equal(gateway.pids.length, 2)
    assert.equal(gateway.pids.includes(process.pid), false)
    for (let i = 0; i < 6; i++) assert.equal(await once(url), 'x')
    const snapshot = await gateway.snapshot()
    // One entry per worker that served.
    const served = snapshot.traffic.served.map(({ durations }) => durations.counts.reduce((sum, count) => sum + count, 0))
    assert.deepEqual(served, [3, 3])
    const stats = await gateway.stats()
    assert.equal(stats.requests.duration.count, 6)
    assert.deepEqual(stats.requests.statuses, { '2xx': 6 })
    assert.equal(stats.listeners.length, 1)
    assert.equal(stats.listeners[0]?.accepted, 6)
    assert.deepEqual(stats.processes.map(({ pid }) => pid).sort(), [...gateway.pids].sort())
    const families = parsePrometheus(await once(`${gateway.adminUrl}/metrics`))
    const count = families.get('http_server_request_duration_seconds')?.samples.find(({ name }) => name.endsWith('_count'))
    assert.equal(count?.value, 6)
    assert.deepEqual(JSON.parse(await once(`${gateway.adminUrl}/readyz`)), { status: 'ready', unusableClusters: [] })
  })

  test('go by a new configuration together, and so does one that takes the place of another', async () => {
    await using first = await serve({ hostname: '127.0.0.1', fetch: () => new Response('first') })
    await using second = await serve({ hostname: '127.0.0.1', fetch: () => new Response('second') })
    const errors: string[] = []
    await using gateway = await start(first, errors)
    const url = gateway.addresses[0]?.url as string
    const answers = async (): Promise<string[]> => [await once(url), await once(url), await once(url), await once(url)]
    assert.deepEqual(await answers(), ['first', 'first', 'first', 'first'])
    const [cluster] = gateway.config.clusters
    const next = {
      ...gateway.config,
      clusters: [{ ...cluster, endpoints: [{ host: '127.0.0.1', port: second.port as number }] }],
    } as Config
    await assert.rejects(gateway.reload({ ...next, workers: 3 }), /workers cannot change/)
    assert.deepEqual(await answers(), ['first', 'first', 'first', 'first'])
    await gateway.reload(next)
    assert.deepEqual(await answers(), ['second', 'second', 'second', 'second'])
    const { pids } = gateway
    process.kill(pids[0] as number, 'SIGKILL')
    while (gateway.pids.length < 2 || gateway.pids.includes(pids[0] as number)) await delay(20)
    assert.deepEqual(await answers(), ['second', 'second', 'second', 'second'])
    assert.match(errors.join('\n'), /^worker \d+ ended \(SIGKILL\); another one starts in 100 ms$/)
  })

  test('keep what they had if one of them cannot take a configuration, and whoever is replaced has it too', async () => {
    await using first = await serve({ hostname: '127.0.0.1', fetch: () => new Response('first') })
    await using second = await serve({ hostname: '127.0.0.1', fetch: () => new Response('second') })
    const errors: string[] = []
    await using gateway = await start(first, errors)
    const url = gateway.addresses[0]?.url as string
    const answers = async (): Promise<string[]> => [await once(url), await once(url), await once(url), await once(url)]
    const [cluster] = gateway.config.clusters
    const changed = { ...cluster, endpoints: [{ host: '127.0.0.1', port: second.port as number }] }
    const tls = { ca: '/nowhere/ca.pem', serverName: undefined, cert: undefined, key: undefined, verify: true }
    const broken = { ...gateway.config, clusters: [changed, { ...changed, name: 'more', tls }] } as unknown as Config
    await assert.rejects(gateway.reload(broken), /worker \d+ did not take it: ENOENT/)
    assert.deepEqual(await answers(), ['first', 'first', 'first', 'first'])
    const { pids } = gateway
    process.kill(pids[0] as number, 'SIGKILL')
    while (gateway.pids.length < 2 || gateway.pids.includes(pids[0] as number)) await delay(20)
    assert.deepEqual(await answers(), ['first', 'first', 'first', 'first'])
    assert.equal(errors.length, 1, errors.join('\n'))
    // One that is killed while it is told: the other one, and its successor, go by the new one.
    const next = { ...gateway.config, clusters: [changed] } as Config
    const reloading = gateway.reload(next)
    process.kill(gateway.pids[0] as number, 'SIGKILL')
    await reloading
    while (gateway.pids.length < 2) await delay(20)
    assert.deepEqual(await answers(), ['second', 'second', 'second', 'second'])
  })

  test('drain together: what runs finishes, on both', async () => {
    let arrived = 0
    const bothArrived = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    await using origin = await serve({
      hostname: '127.0.0.1',
      fetch: async () => {
        if (++arrived === 2) bothArrived.resolve()
        await release.promise
        return new Response('late')
      },
    })
    const gateway = await start(origin)
    const { pids } = gateway
    const url = gateway.addresses[0]?.url as string
    const running = [once(url), once(url)]
    await bothArrived.promise
    const closed = gateway.close()
    assert.equal((JSON.parse(await once(`${gateway.adminUrl}/readyz`)) as { status: string }).status, 'draining')
    // The last worker to close its side of the socket closes the port.
    while (
      await once(url).then(
        () => true,
        () => false,
      )
    ) {
      await delay(10)
    }
    release.resolve()
    assert.deepEqual(await Promise.all(running), ['late', 'late'])
    await closed
    for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  })

  test('close WebSockets together, and count them as one', async () => {
    await using origin = await serve({
      hostname: '127.0.0.1',
      websocket: true,
      fetch(request) {
        const { response, socket } = upgrade(request)
        socket.addEventListener('message', ({ data }) => socket.send(data))
        return response
      },
    })
    await using gateway = await start(origin)
    const url = gateway.addresses[0]?.url.replace('http', 'ws') as string
    const sockets = await Promise.all([1, 2, 3, 4].map(() => connect(url)))
    for (const socket of sockets) {
      await socket.write('hello')
      assert.equal(await socket.read(), 'hello')
    }
    const { open, opened, received } = (await gateway.stats()).requests.tunnels
    // A masked frame of five octets.
    assert.deepEqual([open, opened, received], [4, 4, 4 * 11])
    const closed = gateway.close({ deadline: 1_500 })
    const at = performance.now()
    for (const { code, wasClean } of await Promise.all(sockets.map((socket) => socket.closed)))
      assert.deepEqual([code, wasClean], [1001, true])
    // Two thirds of the deadline, as of `drainTimeout`.
    assert.ok(performance.now() - at > 800, 'there was grace')
    await closed
  })

  test('one that dies is replaced; meanwhile the other serves, and what it counted stays', async () => {
    await using origin = await serve({ hostname: '127.0.0.1', fetch: () => new Response('x') })
    const errors: string[] = []
    await using gateway = await start(origin, errors)
    const url = gateway.addresses[0]?.url as string
    for (let i = 0; i < 4; i++) await once(url)
    assert.equal((await gateway.stats()).requests.duration.count, 4)
    const [victim] = gateway.pids as [number]
    process.kill(victim, 'SIGKILL')
    while (errors.length === 0) await delay(1)
    for (let i = 0; i < 4; i++) assert.equal(await once(url), 'x')
    while (gateway.pids.length < 2 || gateway.pids.includes(victim)) await delay(20)
    assert.equal(errors.length, 1)
    assert.equal(errors[0], `worker ${victim} ended (SIGKILL); another one starts in 100 ms`)
    const stats = await gateway.stats()
    assert.equal(stats.requests.duration.count, 8)
    assert.equal(stats.processes.length, 2)
  })

  test('judge a dead endpoint together', async () => {
    const origin = await serve({ hostname: '127.0.0.1', fetch: () => new Response('x') })
    await using gateway = await start(origin)
    await origin.close()
    const url = gateway.addresses[0]?.url as string
    const readyz = async (): Promise<unknown> => JSON.parse(await once(`${gateway.adminUrl}/readyz`))
    // Connections are dealt in turn: two failures in each worker, then a fifth in one of them.
    for (let i = 0; i < 4; i++) assert.match(await once(url), /connect_failed/)
    assert.deepEqual(await readyz(), { status: 'ready', unusableClusters: [] })
    await once(url)
    assert.deepEqual(await readyz(), { status: 'down', unusableClusters: ['app'] })
    await using _again = await serve({ hostname: '127.0.0.1', port: origin.port, fetch: () => new Response('back') })
    assert.equal(await once(url), 'back')
    assert.deepEqual(await readyz(), { status: 'ready', unusableClusters: [] })
  })

  test('say which port is taken', async () => {
    await using taken = await serve({ hostname: '127.0.0.1', fetch: () => new Response('x') })
    const config = parseConfig(`
workers: 2
listeners: [{ name: web, host: 127.0.0.1, port: ${taken.port} }]
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: [127.0.0.1:1] }]
`)
    await assert.rejects(startGateway(config), {
      name: 'ListenError',
      message: `listener web cannot listen on 127.0.0.1:${taken.port}: another program listens there`,
    })
  })

  test('that cannot be started are an error, not silence', async () => {
    const config = parseConfig(`
workers: 2
listeners: [{ name: web, host: 127.0.0.1, port: 0 }]
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: [127.0.0.1:1] }]
`)
    const { execPath } = process
    process.execPath = '/nowhere/node'
    try {
      await assert.rejects(startGateway(config), { message: 'a worker ended before it listened: spawn /nowhere/node ENOENT' })
    } finally {
      process.execPath = execPath
    }
  })
})
