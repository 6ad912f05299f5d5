import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import type { Server } from 'heddle/server'
import { reportOf, run, type LoadOptions, type Progress } from '../src/index.ts'
import { makePlan } from '../src/make-plan.ts'
import type { PlannedRequest } from '../src/plan.ts'
import { Threads } from '../src/threads.ts'
import { answer, rawServer } from './servers.ts'

let server: Server
let url = ''
const large = 'x'.repeat(1_048_576)

before(async () => {
  server = await rawServer((exchange, { head }) => {
    if (head.path !== '/never') answer(exchange, 200, head.path === '/large' ? large : 'hello')
  })
  url = `http://127.0.0.1:${server.port}/`
})
after(() => server.close({ deadline: 0 }))

describe('run', () => {
  test('resolves with what it found', async () => {
    const result = await run({ url, count: 20, connections: 2, failIf: ['errors>0'] })
    deepEqual([result.requests.due, result.requests.succeeded, result.statuses], [20, 20, { 200: 20 }])
    deepEqual([result.target, result.loop, result.gaveUp, result.interrupted], [url, 'closed', null, false])
    equal(result.thresholds[0]?.failed, false)
    match(reportOf(result), /^HTTP load on /)
    deepEqual(JSON.parse(JSON.stringify(result)), result, 'what JSON cannot say is not in it')
  })

  test('rejects for options that cannot be, before anything is sent', async () => {
    const served = server.stats().requests
    await rejects(run({ url, connections: -1 }), { code: 'USAGE', message: /^run: connections: / })
    await rejects(run({ url, failIf: ['errors>0', 'p99'] }), { code: 'USAGE', message: /^run: failIf\[1\]: expected a threshold/ })
    await rejects(run({} as LoadOptions), { code: 'USAGE' })
    equal(server.stats().requests, served)
  })

  for (const threads of [1, 3]) {
    test(`ends when its signal says so, ${threads} thread${threads === 1 ? '' : 's'}`, async () => {
      const controller = new AbortController()
      const seen: Progress[] = []
      const result = await run({
        url,
        duration: 600_000,
        connections: 3,
        threads,
        signal: controller.signal,
        onProgress(progress) {
          seen.push(progress)
          if (progress.answered > 0) controller.abort()
        },
      })
      equal(result.interrupted, true)
      ok(result.requests.succeeded > 0)
      equal(result.requests.succeeded, result.requests.due)
      ok(result.measured < 60_000)
      equal(result.threads, threads)
      equal(seen[0]?.phase, 'measuring')
    })

    test(`is over at once if it was told before, ${threads} thread${threads === 1 ? '' : 's'}`, async () => {
      const result = await run({ url, duration: 600_000, connections: 3, threads, signal: AbortSignal.abort() })
      equal(result.interrupted, true)
      equal(result.requests.succeeded, result.requests.due)
    })
  }

  test('large answers are read and dropped, over both versions', async () => {
    for (const [protocol, streams] of [
      ['h1', 1],
      ['h2', 8],
    ] as const) {
      const { bytes, requests } = await run({ url: `${url}large`, protocol, streams, connections: 2, count: 32 })
      deepEqual([requests.succeeded, bytes.received], [32, 32 * large.length])
    }
  })

  test('threads count together', async () => {
    const requests = [
      { url: '/a', weight: 1 },
      { url: '/b', weight: 1 },
      { url: '/large', weight: 0.1 },
    ]
    const result = await run({ url, requests, count: 101, connections: 4, threads: 4, protocol: 'h2', streams: 2 })
    equal(result.requests.succeeded, 101)
    equal(
      result.kinds.reduce((sum, { requests: { due } }) => sum + due, 0),
      101,
    )
    ok(result.connectionsOpened >= 4)
    ok(result.latency.max !== null && result.latency.min !== null && result.latency.max >= result.latency.min)
    ok(result.distribution.length > 0)
  })

  test('a thread that fails takes the others with it, and says why', async () => {
    const plan = makePlan({ url, connections: 4, threads: 2, duration: 600_000 })
    const [request] = plan.requests as [PlannedRequest]
    await rejects(new Threads({ ...plan, requests: [{ ...request, origin: 'nonsense' }] }).records, /Invalid URL/)
  })

  test('a server that talks nonsense', async () => {
    const sockets = new Set<Socket>()
    const strange = createServer((socket) => {
      sockets.add(socket.on('error', () => {}))
      socket.on('data', () => socket.write('220 mail.example.org ESMTP\r\n'))
    })
    await new Promise<void>((resolve) => strange.listen(0, '127.0.0.1', resolve))
    const target = `http://127.0.0.1:${(strange.address() as AddressInfo).port}/`
    for (const protocol of ['h1', 'h2'] as const) {
      const { requests, errors } = await run({ url: target, protocol, count: 6, connections: 2 })
      deepEqual([requests.failed, Object.keys(errors)], [6, ['PROTOCOL_ERROR']])
    }
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => strange.close(resolve))
  })

  test('connections that a server ends after each answer are no errors', async () => {
    const once = createServer((socket) => {
      socket.on('error', () => {}).on('data', () => socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx'))
    })
    await new Promise<void>((resolve) => once.listen(0, '127.0.0.1', resolve))
    const { port } = once.address() as AddressInfo
    const { requests, connectionsOpened } = await run({ url: `http://127.0.0.1:${port}/`, count: 30, connections: 3 })
    deepEqual([requests.succeeded, requests.failed, connectionsOpened], [30, 0, 30])
    await new Promise((resolve) => once.close(resolve))
  })

  test('a socket of the file system', { skip: process.platform === 'win32' }, async () => {
    const path = `/tmp/heddle-load-${process.pid}.sock`
    await using local = await rawServer((exchange) => answer(exchange, 200, 'x'), { path, port: undefined, hostname: undefined } as never)
    ok(local)
    const { requests } = await run({ url: 'http://anything.test/', socketPath: path, count: 5 })
    equal(requests.succeeded, 5)
  })
})
