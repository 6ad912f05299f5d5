/** The client against Node's own servers, on real sockets. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createServer, type RequestListener, type Server as HttpServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { connect as connectSocket, createServer as createSocketServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { SecureContextOptions, TLSSocket } from 'node:tls'
import { Worker } from 'node:worker_threads'
import { CancelReason, requestHead, type Exchange, type HeddleError } from '../http/index.ts'
import { makeAuthority, makeCertificate } from '../testing/index.ts'
import { Client } from './client.ts'
import type { ClientOptions } from './options.ts'
import type { ClientExchangeHandler, Ticket } from './ticket.ts'

interface Answer {
  readonly status: number
  readonly text: string
  readonly reused: boolean
  readonly error: HeddleError | undefined
}

/** One request that resolves when it is over. */
class Request implements ClientExchangeHandler {
  readonly replayable = true
  readonly done: Promise<Answer>
  readonly #authority: string
  readonly #method: string
  readonly #path: string
  readonly #content: Buffer | undefined
  #resolve: (answer: Answer) => void = () => {}
  #exchange: Exchange | undefined
  #status = 0
  #chunks: Buffer[] = []
  ticket: Ticket | undefined
  whenHead: ((exchange: Exchange) => void) | undefined

  constructor(authority: string, path: string, method: string, content: Buffer | undefined) {
    this.#authority = authority
    this.#path = path
    this.#method = method
    this.#content = content
    this.done = new Promise((resolve) => (this.#resolve = resolve))
  }

  onOpen(exchange: Exchange): void {
    this.#exchange = exchange
    exchange.sendHead(requestHead(this.#method, 'http', this.#authority, this.#path), this.#content === undefined)
    if (this.#content !== undefined) exchange.sendOwned(this.#content, true)
  }
  onHead(head: { readonly status: number }): void {
    this.#status = head.status
    this.whenHead?.(this.#exchange as Exchange)
  }
  onData(buffer: Uint8Array, start: number, limit: number): void {
    this.#chunks.push(Buffer.from(buffer.subarray(start, limit)))
    this.#exchange?.consume(limit - start)
  }
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    const text = Buffer.concat(this.#chunks).toString()
    this.#resolve({ status: this.#status, text, reused: this.ticket?.reused === true, error })
  }
}

function send(client: Client, url: string, method = 'GET', content?: Buffer, setUp?: (request: Request) => void): Promise<Answer> {
  const { origin, host, pathname } = new URL(url)
  const request = new Request(host, pathname, method, content)
  setUp?.(request)
  request.ticket = client.exchange(origin, request)
  return request.done
}

function clientOf(t: TestContext, options: ClientOptions = {}): Client {
  const client = new Client(options)
  t.after(async () => {
    client.destroy()
    await client.close()
  })
  return client
}

async function listen<S extends Server>(t: TestContext, server: S, path?: string): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  await new Promise<void>((resolve) => (path === undefined ? server.listen(0, '127.0.0.1', resolve) : server.listen(path, resolve)))
  const address = server.address() as AddressInfo | string
  return typeof address === 'string' ? address : `127.0.0.1:${address.port}`
}

const httpServer = (t: TestContext, listener: RequestListener): Promise<string> => listen(t, createServer(listener) as HttpServer)

test('requests one after the other share a connection, at once they do not', async (t) => {
  let connections = 0
  const server = createServer((request, response) => setTimeout(() => response.end(request.url), request.url === '/slow' ? 20 : 0))
  server.on('connection', () => connections++)
  const authority = await listen(t, server)
  const client = clientOf(t)
  for (const path of ['/a', '/b', '/c']) {
    const { status, text, reused } = await send(client, `http://${authority}${path}`)
    assert.deepEqual([status, text, reused], [200, path, path !== '/a'])
  }
  assert.equal(connections, 1)
  const answers = await Promise.all(Array.from({ length: 10 }, () => send(client, `http://${authority}/slow`)))
  assert.ok(answers.every(({ text }) => text === '/slow'))
  assert.equal(connections, 10)
  const { idle, active, requests, reused, dialled } = client.stats()
  assert.deepEqual([idle, active, requests, reused, dialled], [10, 0, 13, 3, 10])
})

test('2,000 requests over 8 connections', async (t) => {
  const authority = await httpServer(t, (request, response) => response.end(request.url))
  const client = clientOf(t, { maxConnectionsPerOrigin: 8 })
  const answers = await Promise.all(Array.from({ length: 2000 }, (_, i) => send(client, `http://${authority}/${i}`)))
  answers.forEach(({ text }, i) => assert.equal(text, `/${i}`))
  const { dialled, connections, waiting, timers } = client.stats()
  assert.deepEqual([dialled, connections, waiting, timers], [8, 8, 0, 0])
})

test('megabytes both ways', async (t) => {
  const authority = await httpServer(t, (request, response) => request.pipe(response))
  const content = Buffer.alloc(8_000_000, 'heddle ')
  const { text, error } = await send(clientOf(t), `http://${authority}/`, 'POST', content)
  assert.equal(error, undefined)
  assert.ok(Buffer.from(text).equals(content))
})

test('a server that sends Connection: close gets a new connection each time', async (t) => {
  const authority = await httpServer(t, (_request, response) => response.setHeader('connection', 'close').end('x'))
  const client = clientOf(t)
  for (let i = 0; i < 3; i++) {
    const { text, reused } = await send(client, `http://${authority}/`)
    assert.deepEqual([text, reused], ['x', false])
  }
  assert.equal(client.stats().dialled, 3)
})

test('a server that cuts the connection: before an answer, within the head, within the content, on a kept connection', async (t) => {
  const authority = await listen(
    t,
    createSocketServer((socket) => {
      let requests = 0
      socket.on('data', (chunk) => {
        const path = chunk.toString().split(' ', 2)[1]
        if (path === '/keep') socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nk')
        else if (path === '/head') socket.end('HTTP/1.1 200 O')
        else if (path === '/content') socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345')
        else if (path === '/reset') socket.resetAndDestroy()
        else if (requests++ === 0) socket.destroy()
      })
    }),
  )
  const client = clientOf(t)
  const outcomes: unknown[] = []
  for (const path of ['/none', '/head', '/content', '/reset', '/keep', '/none']) {
    const { status, text, reused, error } = await send(client, `http://${authority}${path}`)
    outcomes.push([path, status, text, reused, error?.code, error?.unprocessed])
  }
  assert.deepEqual(outcomes, [
    ['/none', 0, '', false, 'PEER_CLOSED', false],
    ['/head', 0, '', false, 'MESSAGE_TRUNCATED', false],
    ['/content', 200, '12345', false, 'MESSAGE_TRUNCATED', false],
    ['/reset', 0, '', false, 'PEER_RESET', false],
    ['/keep', 200, 'k', false, undefined, undefined],
    ['/none', 0, '', true, 'PEER_CLOSED', false],
  ])
})

test('a kept connection whose FIN is already there: the request moves on without having been sent', async (t) => {
  // A server in a thread of its own closes while this thread is busy.
  const worker = new Worker(
    `const { createServer } = require('node:net')
     const { parentPort } = require('node:worker_threads')
     const server = createServer((socket) => {
       socket.on('error', () => {})
       socket.on('data', () => {
         socket.write('HTTP/1.1 200 OK\\r\\ncontent-length: 1\\r\\n\\r\\nx')
         setTimeout(() => socket.end(), 20)
       })
     }).listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`,
    { eval: true },
  )
  t.after(() => worker.terminate())
  const port = await new Promise<number>((resolve) => worker.once('message', resolve))
  const client = clientOf(t)
  await send(client, `http://127.0.0.1:${port}/`)
  const second = await new Promise<Answer>((resolve) => {
    setTimeout(() => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
      void send(client, `http://127.0.0.1:${port}/`).then(resolve)
    }, 1)
  })
  assert.deepEqual([second.text, second.reused, second.error], ['x', false, undefined])
  const { retries, dialled } = client.stats()
  assert.deepEqual([retries, dialled], [1, 2])
})

test('cancelled content is drained up to the limit; more costs the connection', async (t) => {
  const sizes: Record<string, number> = { '/small': 100_000, '/large': 1_000_000 }
  const authority = await httpServer(t, (request, response) => {
    response.setHeader('content-length', sizes[request.url ?? ''] ?? 1)
    response.end('x'.repeat(sizes[request.url ?? ''] ?? 1))
  })
  for (const [path, dialled] of [
    ['/small', 1],
    ['/large', 2],
  ] as const) {
    const client = clientOf(t)
    const { error } = await send(client, `http://${authority}${path}`, 'GET', undefined, (request) => {
      request.whenHead = () => request.ticket?.cancel(CancelReason.Cancelled)
    })
    assert.equal(error?.code, 'CANCELLED')
    while (client.stats().draining > 0) await new Promise((resolve) => setTimeout(resolve, 1))
    await send(client, `http://${authority}/`)
    const stats = client.stats()
    assert.deepEqual([path, stats.dialled, stats.drained + stats.abandoned], [path, dialled, 1])
  }
})

test('an upgrade: the handshake is checked, the tunnel carries bytes, and its connection is not kept', async (t) => {
  const server = createServer()
  server.on('upgrade', (request, socket: Socket) => {
    const key = request.url === '/right' ? (request.headers['sec-websocket-key'] ?? '') : 'another key'
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`)
    socket.pipe(socket)
  })
  const authority = await listen(t, server)
  const client = clientOf(t)
  const outcomes = ['/right', '/wrong'].map(async (path) => {
    const request = new Request(authority, path, 'GET', undefined)
    request.onOpen = (exchange) => {
      exchange.sendHead(requestHead('CONNECT', 'http', authority, path, [], 'websocket'), false)
      request.whenHead = () => exchange.sendOwned(Buffer.from('echo'), true)
    }
    request.ticket = client.exchange(`http://${authority}`, request)
    const { status, text, error } = await request.done
    return [status, text, error?.code]
  })
  assert.deepEqual(await Promise.all(outcomes), [
    [200, 'echo', undefined],
    [0, '', 'PROTOCOL_ERROR'],
  ])
  assert.equal(client.stats().connections, 0)
})

test('a Unix socket', async (t) => {
  const path =
    process.platform === 'win32' ? String.raw`\\.\pipe\heddle-${process.pid}` : join(tmpdir(), `heddle-client-${process.pid}.sock`)
  await listen(
    t,
    createServer((request, response) => response.end(request.headers.host)),
    path,
  )
  const client = clientOf(t, { socketPath: path })
  const { text } = await send(client, 'http://any.test:8080/')
  assert.equal(text, 'any.test:8080')
})

const authorityOfTests = makeAuthority()

async function secureServer(
  t: TestContext,
  names: string[],
  options: SecureContextOptions & { requestCert?: boolean } = {},
): Promise<number> {
  const { cert, key } = makeCertificate({ names, ca: authorityOfTests })
  const server = createSecureServer({ cert, key, ...options }, (request, response) => {
    const { servername, authorized } = request.socket as TLSSocket & { servername?: string }
    response.end(JSON.stringify({ servername, authorized }))
  })
  return Number((await listen(t, server)).split(':')[1])
}

test('TLS: trust, names, client certificates', async (t) => {
  const lookup = ((_host: string, _options: unknown, done: (error: null, addresses: { address: string; family: number }[]) => void) =>
    done(null, [{ address: '127.0.0.1', family: 4 }])) as ClientOptions['lookup']
  const port = await secureServer(t, ['origin.test'])
  const ca = authorityOfTests.cert
  const untrusting = await send(clientOf(t, { lookup }), `https://origin.test:${port}/`)
  assert.deepEqual([untrusting.error?.code, untrusting.error?.unprocessed], ['TLS_FAILED', true])
  const trusting = clientOf(t, { lookup, tls: { ca } })
  for (const reused of [false, true]) {
    const answer = await send(trusting, `https://origin.test:${port}/`)
    assert.deepEqual([JSON.parse(answer.text).servername, answer.reused], ['origin.test', reused])
  }
  assert.equal((await send(trusting, `https://other.test:${port}/`)).error?.code, 'TLS_FAILED')
  const renamed = clientOf(t, { lookup, tls: { ca, servername: 'origin.test' } })
  assert.equal((await send(renamed, `https://other.test:${port}/`)).status, 200)
  const careless = clientOf(t, { lookup, tls: { rejectUnauthorized: false } })
  assert.equal((await send(careless, `https://other.test:${port}/`)).status, 200)

  const guarded = await secureServer(t, ['origin.test'], { ca, requestCert: true } as never)
  const { cert, key } = makeCertificate({ names: ['us'], ca: authorityOfTests })
  const known = clientOf(t, { lookup, tls: { ca, cert, key } })
  assert.equal(JSON.parse((await send(known, `https://origin.test:${guarded}/`)).text).authorized, true)
  // TLS 1.3 tells a client that it is not wanted only after the handshake, when the request is on its way.
  const stranger = await send(trusting, `https://origin.test:${guarded}/`)
  assert.deepEqual([stranger.status, stranger.error === undefined], [0, false])
})

/** A proxy that takes absolute-form requests and CONNECT, for those who know the password. */
async function proxyServer(t: TestContext, seen: string[], targetPort: (host: string) => number): Promise<string> {
  const allowed = `Basic ${Buffer.from('user:pass').toString('base64')}`
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} host ${request.headers.host}`)
    if (request.headers['proxy-authorization'] !== allowed) response.writeHead(407)
    response.end('from the proxy')
  })
  server.on('connect', (request, socket: Socket) => {
    seen.push(`CONNECT ${request.url}`)
    socket.on('error', () => {})
    if (request.headers['proxy-authorization'] !== allowed) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n')
      return
    }
    const target = connectSocket(targetPort(request.url ?? ''), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(target).pipe(socket)
    })
    target.on('error', () => socket.destroy())
    socket.on('close', () => target.destroy())
  })
  return listen(t, server)
}

test('proxies: absolute-form for http, a tunnel for https, none for exemptions', async (t) => {
  const secure = await secureServer(t, ['secure.test'])
  const seen: string[] = []
  const proxy = await proxyServer(t, seen, () => secure)
  const direct = await httpServer(t, (_request, response) => response.end('direct'))
  const tls = { ca: authorityOfTests.cert }
  const client = clientOf(t, { proxy: { url: `http://user:pass@${proxy}`, noProxy: '127.0.0.1' }, tls })
  assert.equal((await send(client, 'http://plain.test/path')).text, 'from the proxy')
  assert.equal((await send(client, 'http://plain.test:8080/other')).text, 'from the proxy')
  assert.equal(JSON.parse((await send(client, 'https://secure.test/')).text).servername, 'secure.test')
  assert.equal((await send(client, 'https://secure.test/')).reused, true)
  assert.equal((await send(client, `http://${direct}/`)).text, 'direct')
  assert.deepEqual(seen, [
    'GET http://plain.test/path host plain.test',
    'GET http://plain.test:8080/other host plain.test:8080',
    'CONNECT secure.test:443',
  ])

  const stranger = clientOf(t, { proxy: `http://user:wrong@${proxy}`, tls })
  assert.equal((await send(stranger, 'http://plain.test/')).status, 407)
  const { error } = await send(stranger, 'https://secure.test/')
  assert.deepEqual([error?.code, error?.unprocessed, error?.message.includes('407')], ['PROXY_FAILED', true, true])
  const nowhere = clientOf(t, { proxy: 'http://127.0.0.1:1', tls })
  for (const url of ['http://plain.test/', 'https://secure.test/']) {
    const dead = (await send(nowhere, url)).error
    assert.equal(dead?.code, 'PROXY_FAILED', url)
    assert.match(dead.message, /^the proxy 127\.0\.0\.1:1 cannot be used: no connection to it: /)
  }
})

test('a program that is done ends, although a connection is idle', async (t) => {
  const authority = await httpServer(t, (_request, response) => response.end('x'))
  const script = `
    import { Client } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
    const client = new Client({ limits: { idleTimeout: 60_000 } })
    const response = await client.fetch(process.argv[1], {})
    await response.text()
    console.log(client.stats().idle)`
  const started = performance.now()
  const child = spawn(process.execPath, ['--conditions=@heddle/source', '--input-type=module', '-e', script, `http://${authority}/`])
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const code = await new Promise((resolve) => child.on('close', resolve))
  assert.deepEqual([code, output.trim()], [0, '1'])
  assert.ok(performance.now() - started < 30_000)
})

test('a program whose request is under way does not end', async (t) => {
  const authority = await httpServer(t, (_request, response) => void setTimeout(() => response.end('late'), 300))
  const script = `
    import { Client } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
    const client = new Client()
    client.fetch(process.argv[1]).then((response) => response.text()).then((text) => console.log(text))`
  const child = spawn(process.execPath, ['--conditions=@heddle/source', '--input-type=module', '-e', script, `http://${authority}/`])
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await new Promise((resolve) => child.on('close', resolve))
  assert.equal(output.trim(), 'late')
})
