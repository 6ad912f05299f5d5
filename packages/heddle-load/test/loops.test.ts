import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { Response } from 'heddle/server'
import { worldTest, type World } from 'heddle/testing'
import { load, near, WorldLoad, worldServer } from './rig.ts'

const few = { seeds: 3 }

/** Answers at once, but for the time from `from` to `until`, in which nothing is answered. */
function stalls(world: World, from: number, until: number): () => Promise<Response> {
  const start = world.now()
  return async () => {
    const now = world.now() - start
    if (now >= from && now < until) await world.sleep(until - now)
    return new Response('x')
  }
}

worldTest('a stall of a tenth of the time is seen by an open loop, and hidden by a closed one', few, async (world) => {
  const server = await worldServer(world, { fetch: stalls(world, 5_000, 6_000) })
  // A round trip takes 2 ms. Of 1,000 requests the one due as the stall begins takes a second; each of those that follow every
  // 10 ms begins 10 ms later and is answered 2 ms later: 8 ms less than the one before it.
  const open = await load(world, { rate: 100, arrivals: 'uniform', connections: 1, duration: 10_000 })
  deepEqual(open.requests, { due: 1_000, succeeded: 1_000, rejected: 0, failed: 0, unfinished: 0, dropped: 0 })
  near(open.latency.p50, 2, 0.01, 'p50')
  near(open.latency.p90, 1_002 - 8 * 100, 0.05, 'p90')
  near(open.latency.p99, 1_002 - 8 * 10, 0.02, 'p99')
  near(open.latency.max, 1_002, 0.01, 'max')
  near(open.perSecond, 100, 0.01, 'rate')
  // What was sent to the server waited for it once only: this is how coordinated omission looks.
  near(open.service.p99, 2, 0.01, 'service p99')
  near(open.service.max, 1_000, 0.01, 'service max')
  await world.complete(server.close())
})

worldTest('the same stall in a closed loop', few, async (world) => {
  const server = await worldServer(world, { fetch: stalls(world, 5_000, 6_000) })
  const closed = await load(world, { connections: 1, duration: 10_000 })
  near(closed.requests.due, 4_500, 0.01, 'requests')
  near(closed.latency.p99, 2, 0.01, 'p99')
  near(closed.latency.p999, 2, 0.01, 'p99.9')
  near(closed.latency.max, 1_000, 0.01, 'max')
  await world.complete(server.close())
})

worldTest('as many at once as connections times streams, each begun by the end of the one before', few, async (world) => {
  let atOnce = 0
  let most = 0
  const server = await worldServer(world, {
    fetch: async () => {
      most = Math.max(most, ++atOnce)
      await world.sleep(98)
      atOnce--
      return new Response('hello')
    },
  })
  const result = await load(world, { protocol: 'h2', connections: 3, streams: 4, warmup: 1_000, duration: 10_000 })
  equal(most, 12)
  equal(result.connectionsOpened, 3)
  equal(server.stats().accepted, 3)
  deepEqual(Object.keys(result.protocols), ['h2'])
  near(result.latency.p50, 100, 0.01, 'p50')
  near(result.perSecond, 120, 0.01, 'rate')
  equal(result.bytes.received, result.requests.succeeded * 5)
  await world.complete(server.close())
})

worldTest('a number of requests is that number, whatever the warm-up made besides', few, async (world) => {
  let served = 0
  const server = await worldServer(world, {
    fetch: () => {
      served++
      return new Response('x')
    },
  })
  const plain = await load(world, { count: 100, connections: 7 })
  equal(served, 100)
  deepEqual([plain.requests.due, plain.requests.succeeded], [100, 100])
  // Seven at a time, 2 ms each, and 1 ms more to connect.
  ok(plain.measured > 28 && plain.measured < 36, `${plain.measured} ms`)
  near(plain.perSecond, 100_000 / plain.measured, 0.001, 'rate')
  const warm = await load(world, { count: 100, connections: 7, warmup: 100 })
  equal(warm.requests.due, 100)
  ok(served > 400, `${served} served`)
  const open = await load(world, { count: 100, rate: 1_000, connections: 7 })
  deepEqual([open.requests.due, open.requests.succeeded], [100, 100])
  await world.complete(server.close())
})

worldTest('what the warm-up asked for is not measured, even if it ends later', few, async (world) => {
  const server = await worldServer(world, { fetch: stalls(world, 0, 1_500) })
  const { latency, requests } = await load(world, { connections: 2, warmup: 1_000, duration: 2_000 })
  near(latency.max, 2, 0.02, 'max')
  near(requests.due, 1_500, 0.01, 'requests')
  await world.complete(server.close())
})

worldTest('a backlog is bounded, and what it has no room for is counted and ranks last', few, async (world) => {
  const server = await worldServer(world, {
    fetch: async () => {
      await world.sleep(98)
      return new Response('x')
    },
  })
  // 10 a second are answered of 100 that are due; 20 may wait.
  const options = {
    rate: 100,
    arrivals: 'uniform',
    connections: 1,
    duration: 10_000,
    maxBacklog: 20,
    failIf: ['p99>10s', 'p9>10s', 'errors>50%', 'dropped>900'],
  } as const
  const result = await load(world, options)
  const { due, succeeded, dropped, unfinished } = result.requests
  equal(due, 1_000)
  equal(succeeded + dropped + unfinished, due)
  // 100 in the time, and the 20 that waited at its end within grace.
  near(succeeded, 120, 0.02, 'succeeded')
  near(result.perSecond, 10, 0.02, 'rate')
  deepEqual([result.latency.p50, result.latency.p99], [null, null])
  ok((result.latency.max ?? 0) > 2_000)
  deepEqual(
    result.thresholds.map(({ failed, measured }) => [failed, typeof measured]),
    [
      [true, 'object'],
      [false, 'number'],
      [true, 'number'],
      [false, 'number'],
    ],
  )
  await world.complete(server.close())
})

worldTest('what waits when grace is over was never begun, and what is under way is unfinished', few, async (world) => {
  const server = await worldServer(world, { fetch: () => new Promise<Response>(() => {}) })
  const { requests, errors, perSecond } = await load(world, { rate: 10, arrivals: 'uniform', connections: 3, duration: 1_000, grace: 500 })
  deepEqual(requests, { due: 10, succeeded: 0, rejected: 0, failed: 0, unfinished: 3, dropped: 7 })
  deepEqual(errors, {})
  equal(perSecond, 0)
  await world.complete(server.close({ deadline: 0 }))
})

worldTest('a request has its time limit, and the loop goes on with the next', few, async (world) => {
  let asked = 0
  const server = await worldServer(world, { fetch: () => (++asked % 2 === 1 ? new Promise<Response>(() => {}) : new Response('x')) })
  const { requests, errors, latency } = await load(world, { count: 10, connections: 1, timeout: 250 })
  deepEqual([requests.due, requests.failed, requests.succeeded], [10, 5, 5])
  deepEqual(errors, { TOTAL_TIMEOUT: { count: 5, message: 'no whole answer within 250 ms' } })
  ok(latency.p50 !== null)
  equal(latency.p90, null)
  await world.complete(server.close({ deadline: 0 }))
})

worldTest('stopped, it begins no more and tells what there is', few, async (world) => {
  const server = await worldServer(world, { fetch: () => new Response('x') })
  const running = new WorldLoad(world, { rate: 1_000, duration: 60_000, connections: 4 })
  world.after(2_000, () => running.run.stop())
  const { requests, measured, perSecond } = await running.result()
  near(measured, 2_000, 0.001, 'measured')
  near(requests.due, 2_000, 0.1, 'due')
  equal(requests.succeeded, requests.due)
  near(perSecond, requests.due / 2, 0.01, 'rate')
  await world.complete(server.close())
  world.advance(1_000)
  equal(world.armed, 0, 'alarms left behind')
})

worldTest('without a server it gives up after a second, not at the end', few, async (world) => {
  const start = world.now()
  for (const more of [{}, { rate: 50 }]) {
    const before = world.now()
    const { gaveUp, requests, errors } = await load(world, { url: 'http://nobody.test/', duration: 60_000, ...more })
    ok(world.now() - before < 3_500, `${world.now() - before} ms`)
    ok(gaveUp?.includes('nobody.test'), String(gaveUp))
    equal(requests.succeeded, 0)
    ok((errors['DNS_FAILED']?.count ?? 0) > 5)
  }
  ok(world.now() > start)
})

worldTest('a server that goes away midway is asked on, with rests', few, async (world) => {
  const server = await worldServer(world, { fetch: () => new Response('x') })
  world.after(1_000, () => void server.close({ deadline: 0 }))
  const { requests, errors, measured, gaveUp } = await load(world, { connections: 2, duration: 10_000 })
  equal(gaveUp, null)
  near(measured, 10_000, 0.001, 'measured')
  near(requests.succeeded, 1_000, 0.05, 'succeeded')
  // Nine seconds of rests up to a second: not the thousands that a busy loop would make.
  ok(requests.failed > 10 && requests.failed < 60, `${requests.failed} failed`)
  ok(Object.keys(errors).length > 0)
})

worldTest('one seed, one run', few, async (world) => {
  const asked: string[][] = []
  const server = await worldServer(world, {
    fetch: (request) => {
      asked.at(-1)?.push(new URL(request.url).pathname)
      return new Response('x')
    },
  })
  const requests = [
    { url: '/often', weight: 3 },
    { url: '/seldom', weight: 1 },
  ]
  for (const seed of [1, 1, 2]) {
    asked.push([])
    const result = await load(world, { requests, count: 400, rate: 100, seed, connections: 50 })
    const often = asked.at(-1)?.filter((path) => path === '/often').length ?? 0
    near(often, 300, 0.1, 'often')
    deepEqual(
      result.kinds.map(({ name, requests: { due } }) => [name, due]),
      [
        ['GET /often', often],
        ['GET /seldom', 400 - often],
      ],
    )
  }
  deepEqual(asked[0], asked[1])
  ok(String(asked[0]) !== String(asked[2]))
  await world.complete(server.close())
})

worldTest('of a duration and a number, what comes first is the end', few, async (world) => {
  const server = await worldServer(world, { fetch: () => new Response('x') })
  const short = await load(world, { connections: 1, duration: 1_000, count: 10_000 })
  near(short.measured, 1_000, 0.001, 'measured')
  near(short.requests.due, 500, 0.01, 'due')
  const small = await load(world, { connections: 1, duration: 1_000, count: 10 })
  ok(small.measured < 30, `${small.measured} ms`)
  equal(small.requests.due, 10)
  near(small.perSecond, 10_000 / small.measured, 0.001, 'rate')
  await world.complete(server.close())
})

worldTest('a number of requests that a rate makes due is begun within grace, or not at all', few, async (world) => {
  const server = await worldServer(world, { fetch: () => new Promise<Response>(() => {}) })
  const before = world.now()
  const options = { rate: 100, arrivals: 'uniform', count: 100, connections: 2, timeout: 2_000, grace: 3_000 } as const
  const { requests, errors } = await load(world, options)
  // Two at 0 and two at 2 s; grace is over at 4 s, a little before the next two. What is under way then has its own time limit.
  deepEqual(requests, { due: 100, succeeded: 0, rejected: 0, failed: 4, unfinished: 0, dropped: 96 })
  equal(errors['TOTAL_TIMEOUT']?.count, 4)
  near(world.now() - before, 4_000, 0.05, 'time')
  await world.complete(server.close({ deadline: 0 }))
})

worldTest('alarms that are late change nothing but how long it takes', few, async (world) => {
  const server = await worldServer(world, { fetch: () => new Response('x') })
  for (const options of [{}, { rate: 1_000, arrivals: 'uniform' as const }]) {
    const { requests } = await new WorldLoad(world, { count: 5, warmup: 100, connections: 1, ...options }, 40).result()
    deepEqual([requests.due, requests.succeeded], [5, 5])
    const timed = await new WorldLoad(world, { duration: 1_000, connections: 3, ...options }, 40).result()
    near(timed.measured, 1_000, 0.001, 'measured')
    // What was due belongs to it even if it was noticed late, and counts from when it was due.
    if (options.rate !== undefined) {
      equal(timed.requests.due, 1_000)
      ok((timed.latency.p50 ?? 0) > 15, `p50 ${timed.latency.p50}`)
      ok((timed.generator.lateness?.p50 ?? 0) > 10)
      match(timed.generator.limits.join(), /noticed that requests were due up to \d+ ms late/)
    }
  }
  await world.complete(server.close())
})
