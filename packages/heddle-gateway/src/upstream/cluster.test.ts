import { deepEqual, equal, ok, rejects, throws } from 'node:assert/strict'
import { test } from 'node:test'
import type { ClientExchangeHandler } from 'heddle/client'
import { UsageError, type HeddleError } from 'heddle/http'
import type { DialOptions, DialTarget } from 'heddle/io'
import { World, worldTest } from 'heddle/testing'
import type { ClusterConfig } from '../config/types.ts'
import { Cluster, type ClusterOptions } from './cluster.ts'
import type { Endpoint } from './endpoint.ts'

function config(hosts: readonly string[], options: Partial<ClusterConfig> = {}): ClusterConfig {
  return {
    name: 'app',
    endpoints: hosts.map((host) => ({ host, port: 8080 })),
    tls: undefined,
    protocol: 'auto',
    http2: {
      streamWindow: 2 ** 20,
      connectionWindow: 2 ** 22,
      maxWindow: 2 ** 24,
      pingInterval: 15_000,
      pingTimeout: 10_000,
      idleTimeout: 60_000,
      maxFailuresInRow: 8,
    },
    http3: { streamWindow: 2 ** 17, idleTimeout: 60_000, maxFailuresInRow: 8 },
    connectTimeout: 1_000,
    headTimeout: 10_000,
    bodyTimeout: 10_000,
    sendTimeout: 10_000,
    idleTimeout: 10_000,
    maxConnectionsPerEndpoint: 10,
    maxTunnelsPerEndpoint: 100,
    maxWaiting: 100,
    resolveInterval: 30_000,
    ejection: { consecutiveFailures: 2, baseTime: 1_000, maxTime: 8_000, maxShare: 0.5 },
    ...options,
  }
}

function makeCluster(world: World, hosts: readonly string[], options: ClusterOptions = {}, more: Partial<ClusterConfig> = {}): Cluster {
  return new Cluster(config(hosts, more), world, { connect: world.network.dial, random: () => world.random.fraction(), ...options })
}

class Handler implements ClientExchangeHandler {
  error: HeddleError | undefined
  onOpen(): void {}
  onHead(): void {}
  onData(): void {}
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    this.error = error
  }
}

function names(cluster: Cluster): string[] {
  return cluster.stats().endpoints.map(({ name }) => name)
}

const three = ['10.0.0.1', '10.0.0.2', '10.0.0.3']

worldTest('of two drawn at random the one with less to do is taken', { seeds: 5 }, (world) => {
  const cluster = makeCluster(world, three)
  const all = new Set<Endpoint>()
  for (let i = 0; i < 100; i++) all.add(cluster.pick() as Endpoint)
  equal(all.size, 3, 'all get requests')
  const [first, second, third] = [...all] as [Endpoint, Endpoint, Endpoint]
  first.active = 10
  second.active = 5
  third.active = 7
  const picks = new Map<Endpoint, number>()
  for (let i = 0; i < 600; i++) {
    const pick = cluster.pick() as Endpoint
    picks.set(pick, (picks.get(pick) ?? 0) + 1)
  }
  equal(picks.get(first), undefined, 'the busiest loses against whichever it is drawn with')
  ok((picks.get(second) ?? 0) > (picks.get(third) ?? 0))
  ok((picks.get(third) ?? 0) > 100)
})

worldTest('load evens out: no endpoint is far from the mean', { seeds: 5 }, (world) => {
  const cluster = makeCluster(
    world,
    Array.from({ length: 10 }, (_, i) => `10.0.0.${i}`),
  )
  for (let i = 0; i < 1_000; i++) (cluster.pick() as Endpoint).active++
  for (const { active } of cluster.stats().endpoints) ok(Math.abs(active - 100) <= 5, String(active))
})

worldTest('what was tried is not taken again, and undefined comes when all were', { seeds: 5 }, (world) => {
  const cluster = makeCluster(world, three)
  const tried: Endpoint[] = []
  for (let i = 0; i < 3; i++) {
    const pick = cluster.pick(tried) as Endpoint
    equal(tried.includes(pick), false)
    tried.push(pick)
  }
  equal(cluster.pick(tried), undefined)
  equal(makeCluster(world, []).pick(), undefined)
})

worldTest('an ejected endpoint gets nothing, then one request to try it, then everything', { seeds: 5 }, (world) => {
  const cluster = makeCluster(world, three)
  const sick = cluster.pick() as Endpoint
  sick.health.fail(world.now(), false, -1)
  sick.health.fail(world.now(), false, -1)
  equal(cluster.stats().endpoints.find(({ name }) => name === sick.name)?.ejected, true)
  for (let i = 0; i < 100; i++) ok(cluster.pick() !== sick)
  world.advance(1_000)
  const drawn = (): boolean => Array.from({ length: 100 }, () => cluster.pick()).includes(sick)
  equal(drawn(), true)
  equal(sick.health.startAttempt(world.now()), true)
  equal(drawn(), false)
  sick.health.succeed()
  equal(drawn(), true)
  equal(cluster.stats().endpoints.find(({ name }) => name === sick.name)?.ejections, 1)
})

worldTest('at most maxShare is out, however sick all are', { seeds: 5 }, (world) => {
  const cluster = makeCluster(world, [...three, '10.0.0.4'])
  for (let i = 0; i < 200; i++) (cluster.pick() as Endpoint).health.fail(world.now(), false, -1)
  equal(cluster.stats().endpoints.filter(({ ejected }) => ejected).length, 2)
  ok(cluster.pick() !== undefined)
})

test('a name is one endpoint until it is resolved, and stays one while it is one machine', () => {
  const world = new World()
  let answer: readonly string[] = []
  const cluster = makeCluster(world, ['app.example'], { lookup: (_host, done) => void world.after(1, () => done(undefined, answer)) })
  deepEqual(names(cluster), ['app.example:8080'])
  const before = cluster.pick()
  answer = ['192.0.2.1', '2001:db8::1']
  world.advance(10)
  equal(cluster.pick(), before)
  deepEqual(before?.addresses, answer)
  answer = ['192.0.2.9']
  world.advance(30_010)
  deepEqual(names(cluster), ['app.example:8080'])
  const moved = cluster.pick()
  ok(moved !== before, 'connections to the old address are not used again')
  deepEqual(moved?.addresses, ['192.0.2.9'])
  world.advance(30_010)
  equal(cluster.pick(), moved)
})

test('a name with several machines is an endpoint for each; those that stay are kept, with their counts', () => {
  const world = new World()
  let answer: readonly string[] | undefined = ['192.0.2.1', '192.0.2.2', '2001:db8::3']
  const lookup: ClusterOptions['lookup'] = (_host, done) =>
    void world.after(1, () => (answer === undefined ? done(new Error('SERVFAIL'), []) : done(undefined, answer)))
  const cluster = makeCluster(world, ['app.example'], { lookup })
  world.advance(10)
  deepEqual(names(cluster), ['192.0.2.1:8080', '192.0.2.2:8080', '[2001:db8::3]:8080'])
  const kept = Array.from({ length: 50 }, () => cluster.pick()).find((endpoint) => endpoint?.name === '192.0.2.2:8080') as Endpoint
  kept.requests = 7
  answer = ['192.0.2.2', '192.0.2.4']
  world.advance(30_010)
  deepEqual(names(cluster), ['192.0.2.2:8080', '192.0.2.4:8080'])
  equal(cluster.stats().endpoints[0]?.requests, 7)
  answer = undefined
  world.advance(300_000)
  deepEqual(names(cluster), ['192.0.2.2:8080', '192.0.2.4:8080'], 'a name server that fails changes nothing')
})

test('an ejected endpoint that leaves does not count as out any more', () => {
  const world = new World()
  let answer = ['192.0.2.1', '192.0.2.2']
  const cluster = makeCluster(world, ['app.example'], { lookup: (_host, done) => void world.after(1, () => done(undefined, answer)) })
  world.advance(10)
  const sick = cluster.pick() as Endpoint
  for (let i = 0; i < 2; i++) sick.health.fail(world.now(), false, -1)
  answer = ['192.0.2.3', '192.0.2.4']
  world.advance(30_010)
  const next = cluster.pick() as Endpoint
  for (let i = 0; i < 2; i++) next.health.fail(world.now(), false, -1)
  equal(next.health.isOut, true, 'its place is free')
})

test('what is dialled: the address, with the name for TLS; and what waits at an endpoint that left is still served', () => {
  const world = new World()
  let answer: readonly string[] = ['192.0.2.1']
  const dials: [DialTarget, string | undefined][] = []
  const connect = (target: DialTarget, options: DialOptions): { cancel(): void } => {
    dials.push([target, options.tls?.servername])
    return { cancel() {} }
  }
  const tls = { ca: undefined, cert: undefined, key: undefined, serverName: undefined }
  const cluster = makeCluster(
    world,
    ['app.example'],
    { connect: connect as never, lookup: (_host, done) => void world.after(1, () => done(undefined, answer)) },
    { tls, protocol: 'h1' },
  )
  world.advance(10)
  const endpoint = cluster.pick() as Endpoint
  cluster.start(endpoint, new Handler())
  world.run()
  deepEqual(dials, [[{ host: '192.0.2.1', port: 8080 }, 'app.example']])
  answer = ['192.0.2.2']
  world.advance(30_010)
  cluster.start(endpoint, new Handler())
  cluster.start(cluster.pick() as Endpoint, new Handler())
  world.run()
  deepEqual(dials.slice(1), [
    [{ host: '192.0.2.1', port: 8080 }, 'app.example'],
    [{ host: '192.0.2.2', port: 8080 }, 'app.example'],
  ])
})

test('what upstreams are offered, and that tunnels of a cluster that speaks what ALPN comes to have HTTP/1.1', () => {
  const tls = { ca: undefined, cert: undefined, key: undefined, serverName: undefined }
  const offered = (more: Partial<ClusterConfig>, tunnel = false): readonly string[] | undefined => {
    const world = new World()
    const offers: (readonly string[] | undefined)[] = []
    const connect = (_target: DialTarget, options: DialOptions): { cancel(): void } => {
      equal(options.tls?.servername, more.tls === undefined ? undefined : 'app.example')
      offers.push(options.tls?.alpn)
      return { cancel() {} }
    }
    const lookup: ClusterOptions['lookup'] = (_host, done) => done(undefined, ['192.0.2.1'])
    const cluster = makeCluster(world, ['app.example'], { connect: connect as never, lookup }, more)
    const endpoint = cluster.pick() as Endpoint
    cluster.start(endpoint, new Handler())
    cluster.start(endpoint, new Handler(), tunnel)
    world.run()
    equal(cluster.stats().endpoints[0]?.waiting, 2)
    return offers.at(-1)
  }
  deepEqual(offered({ tls, protocol: 'auto' }), ['h2', 'http/1.1'])
  deepEqual(offered({ tls, protocol: 'auto' }, true), ['http/1.1'])
  deepEqual(offered({ tls, protocol: 'h1' }), ['http/1.1'])
  deepEqual(offered({ tls, protocol: 'h2' }), ['h2'])
  deepEqual(offered({ tls, protocol: 'h2' }, true), ['h2'])
  equal(offered({ protocol: 'h2c' }), undefined)
})

test('an endpoint with an address of each family is dialled by its name, with what is known of it', () => {
  const world = new World()
  let looked: unknown
  const connect = (target: DialTarget, options: DialOptions): { cancel(): void } => {
    options.lookup?.('app.example', { all: true }, (_error, addresses) => {
      looked = [target, addresses]
    })
    return { cancel() {} }
  }
  const cluster = makeCluster(world, ['app.example'], {
    connect: connect as never,
    lookup: (_host, done) => done(undefined, ['2001:db8::1', '192.0.2.1']),
  })
  cluster.start(cluster.pick() as Endpoint, new Handler())
  world.run()
  deepEqual(looked, [
    { host: 'app.example', port: 8080 },
    [
      { address: '2001:db8::1', family: 6 },
      { address: '192.0.2.1', family: 4 },
    ],
  ])
})

test('the count of attempts returns to zero, whether they are told to finish or cannot begin', async () => {
  const world = new World()
  const cluster = makeCluster(world, three)
  const endpoint = cluster.pick() as Endpoint
  cluster.start(endpoint, new Handler())
  equal(cluster.stats().active, 1)
  equal(endpoint.active, 1)
  cluster.finish(endpoint)
  equal(cluster.stats().active, 0)
  cluster.destroy()
  throws(() => cluster.start(endpoint, new Handler()), UsageError)
  equal(cluster.stats().active, 0)
  equal(endpoint.active, 0)
  await world.complete(cluster.close())
  equal(world.armed, 0)
})

test('a retired cluster is closed once no request is left in it; one that tries again at once is one', async () => {
  const world = new World()
  const cluster = makeCluster(world, ['10.0.0.1'])
  const endpoint = cluster.pick() as Endpoint
  let closed = 0
  cluster.start(endpoint, new Handler())
  cluster.retire(() => closed++)
  await world.settle()
  equal(closed, 0)
  // Its attempt is over, and the request begins another one in the same turn.
  cluster.finish(endpoint)
  cluster.start(endpoint, new Handler())
  await world.settle()
  equal(closed, 0)
  cluster.finish(endpoint)
  cluster.destroy()
  await world.settle()
  equal(closed, 1)
  throws(() => cluster.start(endpoint, new Handler()), UsageError)

  const idle = makeCluster(world, ['10.0.0.1'])
  idle.retire(() => closed++)
  await world.settle()
  equal(closed, 2)
})

test('TLS files are read when the cluster is made', async () => {
  const tls = { ca: '/nonexistent/ca.pem', cert: undefined, key: undefined, serverName: undefined }
  await rejects(async () => makeCluster(new World(), three, {}, { tls }), { code: 'ENOENT' })
})
