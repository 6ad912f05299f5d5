import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeAuthority, makeCertificate } from 'heddle/testing'
import type { Server } from 'heddle/server'
import type { LoadResult } from '../src/result.ts'
import { finished, jsonOf, Program } from './program.ts'
import { answer, grpcAnswer, rawServer, type Asked } from './servers.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle-load-cli-'))
const ca = join(folder, 'ca.pem')
let plain: Server
let secure: Server
let asked: Asked[] = []

before(async () => {
  const authority = makeAuthority()
  writeFileSync(ca, authority.cert)
  plain = await rawServer((exchange, one) => {
    asked.push(one)
    if (one.head.path.startsWith('/pkg.Greeter/')) return grpcAnswer(one.head.path.endsWith('Fails') ? 13 : 0, 'hi')(exchange, one)
    answer(exchange, one.head.path === '/missing' ? 404 : 200, 'hello')
  })
  secure = await rawServer((exchange) => answer(exchange, 200, 'hello'), {
    tls: makeCertificate({ names: ['localhost'], ipAddresses: ['127.0.0.1'], ca: authority }),
  })
})
after(async () => {
  await plain.close({ deadline: 0 })
  await secure.close({ deadline: 0 })
  rmSync(folder, { recursive: true })
})

function at(path: string, scheme = 'http'): string {
  return `${scheme}://127.0.0.1:${plain.port}${path}`
}

function atSecure(path: string, scheme = 'https'): string {
  return `${scheme}://127.0.0.1:${secure.port}${path}`
}

/** What a run of so many requests came to. */
function facts({ requests, protocols, connectionsOpened }: LoadResult): unknown {
  return { due: requests.due, succeeded: requests.succeeded, protocols, connectionsOpened }
}

describe('loads that end well', { concurrency: 2 }, () => {
  test('HTTP/1.1, with a report', async () => {
    const { status, output, errors } = await finished([at('/'), '-n', '50', '-c', '3'])
    deepEqual([status, errors], [0, ''])
    match(output, /^HTTP load on http:\/\/127\.0\.0\.1:\d+\/\nclosed loop, 3 connections, measured for /)
    match(output, /\nrequests {3}50 due, /)
    match(output, /\nstatus {5}200 × 50\nopened {5}3 connections; answers over HTTP\/1\.1 × 50\n/)
    equal(output.includes('\r'), false, 'a live line is for terminals')
  })

  test('HTTP/2 with prior knowledge', async () => {
    const result = await jsonOf([at('/'), '-n', '60', '-c', '2', '-m', '10', '-p', 'h2'])
    deepEqual(facts(result), { due: 60, succeeded: 60, protocols: { h2: 60 }, connectionsOpened: 2 })
    equal(result.bytes.received, 300)
  })

  test('TLS: what the server chooses, or what is asked for', async () => {
    const chosen = await jsonOf([atSecure('/'), '-n', '20', '-c', '2', '-m', '3', '--ca', ca])
    deepEqual(facts(chosen), { due: 20, succeeded: 20, protocols: { h2: 20 }, connectionsOpened: 2 })
    const http1 = await jsonOf([atSecure('/'), '-n', '20', '-c', '2', '-p', 'h1', '-k'])
    deepEqual(facts(http1), { due: 20, succeeded: 20, protocols: { h1: 20 }, connectionsOpened: 2 })
    const named = await jsonOf([atSecure('/'), '-n', '4', '-c', '1', '--ca', ca, '--sni', 'localhost'])
    equal(named.requests.succeeded, 4)
  })

  test('WebSocket, over HTTP/1.1 and HTTP/2, plain and with TLS', async () => {
    const loads: [string[], string][] = [
      [[at('/', 'ws')], 'h1'],
      [[at('/', 'ws'), '-p', 'h2'], 'h2'],
      [[atSecure('/', 'wss'), '--ca', ca], 'h1'],
      [[atSecure('/', 'wss'), '--ca', ca, '-p', 'h2', '--deflate'], 'h2'],
    ]
    for (const [args, protocol] of loads) {
      const result = await jsonOf([...args, '-n', '40', '-c', '2', '--in-flight', '4', '-b', 'hello'])
      deepEqual(facts(result), { due: 40, succeeded: 40, protocols: { [protocol]: 40 }, connectionsOpened: 2 }, args.join(' '))
    }
  })

  test('HTTP/3: requests, gRPC and WebSocket', async (t) => {
    const server = await rawServer(
      (exchange, one) => {
        if (one.head.path.startsWith('/pkg.Greeter/')) return grpcAnswer(0, 'hi')(exchange, one)
        answer(exchange, 200, 'hello')
      },
      { protocols: ['h3'], tls: makeCertificate({ names: ['localhost'], ipAddresses: ['127.0.0.1'] }) },
    ).catch((error: unknown) => error as Error)
    // Where there is no QUIC, as on an older Node, it says so.
    if (server instanceof Error) {
      match(server.message, /^HTTP\/3 needs/)
      t.skip(server.message)
      return
    }
    const url = `//127.0.0.1:${server.port}`
    const args = ['-p', 'h3', '-k', '-n', '60', '-c', '2', '-m', '5']
    const http = await jsonOf([`https:${url}/`, ...args])
    deepEqual(facts(http), { due: 60, succeeded: 60, protocols: { h3: 60 }, connectionsOpened: 2 })
    const calls = await jsonOf([`https:${url}/pkg.Greeter/SayHello`, '--grpc', ...args])
    deepEqual([calls.grpcStatuses, calls.protocols], [{ 0: 60 }, { h3: 60 }])
    const sockets = await jsonOf([`wss:${url}/`, ...args, '--in-flight', '3', '-b', 'hello'])
    deepEqual(facts(sockets), { due: 60, succeeded: 60, protocols: { h3: 60 }, connectionsOpened: 2 })
    await server.close({ deadline: 0 })
  })

  test('HTTP/3 where there is none is an option that cannot be', async () => {
    // Older versions of Node need no flag for it.
    const flags = process.allowedNodeEnvironmentFlags.has('--no-experimental-ffi') ? ['--no-experimental-ffi'] : []
    for (const args of [[], ['-t', '2']]) {
      const { status, output, errors } = await finished(['https://127.0.0.1:9/', '-p', 'h3', ...args], flags)
      deepEqual([status, output], [2, ''])
      match(errors, /^heddle-load: --protocol: HTTP\/3 needs .*\n\nheddle-load --help lists the options\.\n$/)
    }
  })

  test('gRPC', async () => {
    const result = await jsonOf([at('/pkg.Greeter/SayHello'), '--grpc', '-n', '20', '-c', '1', '-m', '5', '--body-hex', '0a01 61'])
    deepEqual([result.grpcStatuses, result.protocols], [{ 0: 20 }, { h2: 20 }])
    const call = asked.find(({ head }) => head.path === '/pkg.Greeter/SayHello') as Asked
    deepEqual([...call.body], [0, 0, 0, 0, 3, 10, 1, 97])
    const failed = await jsonOf([at('/pkg.Greeter/Fails'), '--grpc', '-n', '5', '--fail-if', 'errors>0'], 1)
    deepEqual([failed.requests.rejected, failed.grpcStatuses], [5, { 13: 5 }])
  })

  test('an open loop, and threads', async () => {
    const { requests, loop, threads, connectionsOpened } = await jsonOf([
      at('/'),
      '-r',
      '2k',
      '-n',
      '200',
      '-c',
      '4',
      '-t',
      '2',
      '-w',
      '10ms',
    ])
    deepEqual([requests.due, requests.succeeded, loop, threads], [200, 200, 'open', 2])
    ok(connectionsOpened >= 2 && connectionsOpened <= 4, `${connectionsOpened} opened`)
  })

  test('what is sent', async () => {
    const body = join(folder, 'body.txt')
    writeFileSync(body, 'from a file')
    await jsonOf([at('/sent'), '-n', '1', '-X', 'PUT', '-H', 'X-One: 1', '-H', 'x-one:2', '--host', 'other.test', '-b', `@${body}`])
    const { head, body: sent } = asked.find((one) => one.head.path === '/sent') as Asked
    deepEqual([head.method, head.authority, sent.toString()], ['PUT', 'other.test', 'from a file'])
    deepEqual(head.fields.slice(0, 4), ['x-one', '1', 'x-one', '2'])
  })

  test('a scenario, and its URL', async () => {
    const scenario = join(folder, 'load.yaml')
    writeFileSync(scenario, `url: ${at('/')}\nrequests:\n  - { name: good, url: /, weight: 3 }\n  - { name: bad, url: /missing }\n`)
    const { requests, kinds } = await jsonOf(['-f', scenario, '-n', '40'])
    equal(requests.due, 40)
    const [good, bad] = kinds as [LoadResult['kinds'][number], LoadResult['kinds'][number]]
    deepEqual([good.name, good.requests.succeeded, bad.name, bad.requests.rejected], ['good', good.requests.due, 'bad', bad.requests.due])
    equal(good.requests.due + bad.requests.due, 40)
    ok(good.requests.due > bad.requests.due)
  })

  test('the result in a file, the report on standard output', async () => {
    const path = join(folder, 'result.json')
    const { status, output } = await finished([at('/'), '-n', '5', '--json', path])
    equal(status, 0)
    match(output, /^HTTP load/)
    equal((JSON.parse(readFileSync(path, 'utf8')) as LoadResult).requests.due, 5)
    const unwritable = await finished([at('/'), '-n', '5', '-q', '--json', join(folder, 'none', 'x.json')])
    equal(unwritable.status, 1)
    match(unwritable.errors, /^heddle-load: --json: ENOENT/)
  })
})

describe('loads that fail', { concurrency: 2 }, () => {
  test('a rule that holds is exit status 1, and said', async () => {
    const { status, output, errors } = await finished([at('/missing'), '-n', '10', '--fail-if', 'errors>10%', '--fail-if', 'rps<0'])
    equal(status, 1)
    match(output, /\nFAILED {5}errors>10%: errors is 100%\npassed {5}rps<0: rps is /)
    equal(errors, 'heddle-load: errors>10%: errors is 100%\n')
  })

  test('nobody listens', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    for (const scheme of ['http', 'ws']) {
      const { status, output, errors } = await finished([`${scheme}://127.0.0.1:${port}/`, '-d', '60s'])
      equal(status, 1)
      match(output, /; given up: .*ECONNREFUSED/)
      match(errors, /^heddle-load: not one request was answered: .*ECONNREFUSED/)
    }
  })

  test('a certificate nobody vouches for', async () => {
    const { status, errors } = await finished([atSecure('/'), '-d', '60s'])
    equal(status, 1)
    match(errors, /not one request was answered: .*certificate/)
  })

  test('a server that dies midway', async () => {
    let count = 0
    const dying = await rawServer((exchange) => {
      if (++count === 50) void dying.close({ deadline: 0 })
      answer(exchange, 200, 'x')
    })
    const { requests, errors, gaveUp } = await jsonOf([`http://127.0.0.1:${dying.port}/`, '-n', '80', '-c', '4'])
    equal(requests.due, 80)
    equal(requests.succeeded + requests.failed, 80)
    ok(requests.succeeded >= 45 && requests.failed >= 25, JSON.stringify(requests))
    ok((errors['CONNECT_FAILED']?.count ?? 0) > 0, JSON.stringify(errors))
    equal(gaveUp, null)
  })

  test('one that never answers', async () => {
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => sockets.add(socket.on('error', () => {})))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`
    const limited = await jsonOf([url, '-n', '6', '-c', '2', '--timeout', '100ms'], 1)
    deepEqual([limited.requests.failed, limited.errors['TOTAL_TIMEOUT']?.count], [6, 6])
    const cut = await jsonOf([url, '-d', '200ms', '-c', '2', '--grace', '100ms', '--fail-if', 'p50>1h'], 1)
    deepEqual([cut.requests.due, cut.requests.unfinished, cut.latency.p50, cut.thresholds[0]?.failed], [2, 2, null, true])
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => silent.close(resolve))
  })

  test('Ctrl-C prints what there is', async () => {
    const first = Promise.withResolvers<void>()
    const server = await rawServer((exchange) => {
      first.resolve()
      answer(exchange, 200, 'x')
    })
    const program = new Program([`http://127.0.0.1:${server.port}/`, '-d', '10m'])
    await first.promise
    program.child.kill('SIGINT')
    equal(await program.ended, 130)
    match(program.output, /; stopped before its time\n/)
    match(program.output, /\nstatus {5}200 × /)
    match(program.errors, /^heddle-load: ends what is under way; a second signal ends at once\n/)
    await server.close({ deadline: 0 })
  })

  test('a second one ends at once', async () => {
    const first = Promise.withResolvers<void>()
    const server = await rawServer(() => first.resolve())
    const program = new Program([`http://127.0.0.1:${server.port}/`, '-d', '10m', '--grace', '10m', '-t', '2'])
    await first.promise
    program.child.kill('SIGINT')
    await program.says(/a second signal ends at once/)
    program.child.kill('SIGINT')
    equal(await program.ended, 130)
    equal(program.output, '')
    await server.close({ deadline: 0 })
  })
})
