/** `Client`, `fetch` and WebSockets over HTTP/3: real servers, real UDP, on the loopback. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { test, type TestContext, type TestOptions } from 'node:test'
import { Client, type ClientOptions } from '../src/client/index.ts'
import { CancelReason, requestHead, UsageError, type Exchange, type Head, type HeddleError } from '../src/http/index.ts'
import { quicUnavailable } from '../src/io/index.ts'
import { Response, serve, type FetchHandler, type ServeOptions, type Server } from '../src/server/index.ts'
import { makeAuthority, makeCertificate } from '../src/testing/index.ts'
import { upgrade, WebSocket } from '../src/websocket/index.ts'

const quick: TestOptions = { timeout: 60_000, skip: quicUnavailable() ?? false }
const authority = makeAuthority()
const identity = makeCertificate({ names: ['localhost'], ipAddresses: ['127.0.0.1'], ca: authority })

const protocolOf: FetchHandler = (_request, { protocol }) => new Response(protocol)

async function start(t: TestContext, fetch: FetchHandler = protocolOf, options: Partial<ServeOptions> = {}): Promise<Server> {
  const server = await serve({ hostname: '127.0.0.1', port: 0, tls: identity, protocols: ['h3', 'h2', 'http/1.1'], fetch, ...options })
  t.after(() => server.close({ deadline: 0 }))
  return server
}

function clientOf(t: TestContext, options: ClientOptions = {}): Client {
  const client = new Client({ protocols: ['h3'], ...options, tls: { ca: authority.cert, ...options.tls } })
  t.after(async () => {
    client.destroy()
    await client.close()
  })
  return client
}

async function until(fact: () => boolean): Promise<void> {
  for (let i = 0; i < 4_000 && !fact(); i++) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.ok(fact())
}

const textOf = async (client: Client, url: string): Promise<string> => (await client.fetch(url)).text()

/** A UDP port that takes datagrams and never answers, at the number of a TCP port. */
async function silence(t: TestContext, port: number): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(port, '127.0.0.1')
  await once(socket, 'listening')
  t.after(() => socket.close())
  return socket
}

test('HTTP/3 alone: content both ways, HEAD, redirects and errors, over one connection', quick, async (t) => {
  const server = await start(t, async (request, { protocol }) => {
    assert.equal(protocol, 'h3')
    const { pathname } = new URL(request.url)
    if (pathname === '/away') return Response.redirect(new URL('/here', request.url), 302)
    if (pathname === '/echo') return new Response(await request.arrayBuffer(), { headers: { 'x-method': request.method } })
    return new Response(pathname, { status: pathname === '/none' ? 404 : 200 })
  })
  const client = clientOf(t)
  const content = Buffer.alloc(3_000_000, 'heddle ')
  const echoed = await client.fetch(`${server.url}/echo`, { method: 'POST', body: content })
  assert.equal(echoed.headers.get('x-method'), 'POST')
  assert.ok(content.equals(Buffer.from(await echoed.arrayBuffer())))
  const streamed = await client.fetch(`${server.url}/echo`, { method: 'PUT', body: new Blob(['a', 'b']).stream(), duplex: 'half' } as never)
  assert.equal(await streamed.text(), 'ab')
  const moved = await client.fetch(`${server.url}/away`)
  assert.deepEqual([await moved.text(), moved.redirected], ['/here', true])
  assert.equal((await client.fetch(`${server.url}/none`)).status, 404)
  assert.equal((await client.fetch(server.url, { method: 'HEAD' })).status, 200)
  const { http1, http2, http3, dialled } = client.stats()
  assert.deepEqual([http1.dialled, http2.dialled, http3.dialled, dialled], [0, 0, 1, 1])
  assert.equal(client.stats().origins[0]?.protocol, 'h3')
})

test('2,000 requests over a connection that allows 20 at once', quick, async (t) => {
  const server = await start(t, (request) => new Response(new URL(request.url).pathname), { http3: { maxConcurrentStreams: 20 } })
  const client = clientOf(t)
  const texts = await Promise.all(Array.from({ length: 2000 }, (_, i) => textOf(client, `${server.url}/${i}`)))
  texts.forEach((text, i) => assert.equal(text, `/${i}`))
  const { http3, waiting, streams } = client.stats()
  assert.deepEqual([http3.dialled, http3.requests, waiting, streams], [1, 2000, 0, 0])
})

test('responses that nobody reads yet stop no other', quick, async (t) => {
  const size = 700_000
  const server = await start(t, () => new Response(new Uint8Array(size)))
  const client = clientOf(t)
  const responses = await Promise.all(Array.from({ length: 20 }, () => client.fetch(server.url)))
  for (const response of responses) assert.equal((await response.arrayBuffer()).byteLength, size)
})

test('Alt-Svc: the first request goes by TCP, those that follow soon by QUIC; TCP goes', quick, async (t) => {
  const server = await start(t)
  for (const protocols of [
    ['h3', 'h2', 'h1'],
    ['h3', 'h1'],
  ] as const) {
    const client = clientOf(t, { protocols })
    const spoken: string[] = []
    while (spoken.at(-1) !== 'h3' && spoken.length < 1_000) spoken.push(await textOf(client, server.url))
    assert.deepEqual([...new Set(spoken)], [protocols[1] === 'h2' ? 'h2' : 'h1', 'h3'])
    await until(() => client.stats().connections === 1)
    assert.equal(await textOf(client, server.url), 'h3')
  }
  const usual = new Client({ tls: { ca: authority.cert } })
  for (let i = 0; i < 5; i++) assert.equal(await textOf(usual, server.url), 'h2', 'nobody named h3')
  await usual.close()
})

test('a server that speaks of HTTP/3 where there is none is served by TCP, and left alone', quick, async (t) => {
  let port = 0
  const server = await start(t, (_request, { protocol }) => new Response(protocol, { headers: { 'alt-svc': `h3=":${port}"` } }), {
    protocols: ['h2', 'http/1.1'],
  })
  port = server.port
  const socket = await silence(t, port)
  let datagrams = 0
  socket.on('message', () => datagrams++)
  const client = clientOf(t, { protocols: ['h3', 'h2', 'h1'], connectTimeout: 1_500, http2: { idleTimeout: 50 } })
  assert.equal(await textOf(client, server.url), 'h2')
  await until(() => client.stats().connections === 0)
  // Nothing stands: QUIC is tried first, in vain.
  assert.equal(await textOf(client, server.url), 'h2')
  assert.ok(datagrams > 0)
  await until(() => client.stats().errors['CONNECT_TIMEOUT'] === 1)
  await until(() => client.stats().connections === 0)
  const before = datagrams
  for (let i = 0; i < 10; i++) assert.equal(await textOf(client, server.url), 'h2')
  assert.equal(datagrams, before)
  assert.equal(client.stats().http3.dialled, 0)
})

test('an attempt by QUIC beside TCP keeps no process running', quick, async (t) => {
  let port = 0
  const server = await start(t, () => new Response('by TCP', { headers: { 'alt-svc': `h3=":${port}"` } }), {
    protocols: ['h2', 'http/1.1'],
  })
  port = server.port
  const socket = await silence(t, port)
  const asked = once(socket, 'message')
  const script = `
    import { Client } from ${JSON.stringify(new URL('../src/client/index.ts', import.meta.url).href)}
    const [url, ca] = JSON.parse(process.argv[1])
    const client = new Client({ protocols: ['h3', 'h2'], connectTimeout: 600_000, tls: { ca } })
    // The attempt has not ended by then.
    process.on('exit', () => console.log(client.stats().errors))
    for (let i = 0; i < 2; i++) console.log(await (await client.fetch(url)).text())
    await new Promise((resolve) => setTimeout(resolve, 200))`
  const flags = ['--conditions=@heddle/source', '--input-type=module', '-e', script]
  const child = spawn(process.execPath, [...flags, JSON.stringify([server.url, authority.cert])], { timeout: 50_000 })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  await asked
  const end = await new Promise((resolve) => child.on('close', (...facts) => resolve(facts)))
  assert.deepEqual([end, output], [[0, null], 'by TCP\nby TCP\n{}\n'])
})

test('nobody there, and nobody who answers: errors in words', quick, async (t) => {
  const socket = await silence(t, 0)
  const { port } = socket.address()
  await assert.rejects(clientOf(t, { connectTimeout: 100 }).fetch(`https://127.0.0.1:${port}`), {
    code: 'CONNECT_TIMEOUT',
    message: `no QUIC connection to 127.0.0.1:${port} within 100 ms (shaking hands)`,
  })
  await assert.rejects(clientOf(t).fetch(`https://127.0.0.2:${port}`), { code: 'CONNECT_FAILED' })
  const server = await start(t)
  const stranger = makeAuthority('stranger')
  await assert.rejects(clientOf(t, { tls: { ca: stranger.cert } }).fetch(server.url), { code: 'TLS_FAILED' })
})

test('requests that are cancelled or aborted end, and the connection goes on', quick, async (t) => {
  let aborted = 0
  const server = await start(t, (request, { protocol }) => {
    if (request.url.endsWith('/fast')) return new Response(protocol)
    return new Promise(() => request.signal.addEventListener('abort', () => aborted++))
  })
  const client = clientOf(t)
  assert.equal(await textOf(client, `${server.url}/fast`), 'h3')
  const controller = new AbortController()
  const all = Array.from({ length: 50 }, () => client.fetch(server.url, { signal: controller.signal }))
  await until(() => server.stats().http3.exchanges === 50)
  controller.abort()
  for (const result of await Promise.allSettled(all)) assert.equal(result.status, 'rejected')
  await until(() => aborted === 50)
  assert.equal(await textOf(client, `${server.url}/fast`), 'h3')
  assert.deepEqual([client.stats().http3.dialled, client.stats().streams], [1, 0])
})

test('a raw exchange: the final head, content with credit, trailers', quick, async (t) => {
  const server = await start(t, () => new Response('raw'))
  const client = clientOf(t)
  const origin = client.origin(server.url)
  const told: unknown[] = []
  await new Promise<void>((resolve) => {
    let exchange: Exchange
    client.exchange(origin, {
      onOpen(opened: Exchange) {
        exchange = opened
        told.push(opened.protocol, opened.connection.tls?.alpn)
        exchange.sendHead(requestHead('GET', 'https', origin.authority, '/'), true)
      },
      onHead: (head: Head) => told.push(head.status),
      onData(buffer: Uint8Array, begin: number, limit: number) {
        if (limit > begin) told.push(Buffer.from(buffer.subarray(begin, limit)).toString())
        exchange.consume(limit - begin)
      },
      onTrailers() {},
      onSent() {},
      onPriority() {},
      onClose(error: HeddleError | undefined) {
        told.push(error)
        resolve()
      },
    })
  })
  assert.deepEqual(told, ['h3', 'h3', 200, 'raw', undefined])
  const ticket = client.exchange(origin, {
    onOpen: (exchange) => exchange.sendHead(requestHead('GET', 'https', origin.authority, '/'), true),
    onHead() {},
    onData() {},
    onTrailers() {},
    onSent() {},
    onPriority() {},
    onClose: (error: HeddleError | undefined) => told.push(error?.code),
  })
  ticket.cancel(CancelReason.Cancelled)
  await until(() => told.length === 6)
  assert.equal(told.at(-1), 'CANCELLED')
})

test('a WebSocket over HTTP/3 (RFC 9220)', quick, async (t) => {
  const echo: FetchHandler = (request) => {
    const { socket, response } = upgrade(request)
    socket.addEventListener('message', ({ data }) => socket.send(data as string))
    return response as never
  }
  const server = await start(t, echo, { websocket: true })
  const client = clientOf(t)
  const socket = new WebSocket(server.url.replace('https', 'wss'), { client } as never)
  await once(socket as never, 'open')
  assert.equal((socket as unknown as { version: string }).version, 'h3')
  socket.send('over QUIC')
  const [{ data }] = (await once(socket as never, 'message')) as [{ data: string }]
  assert.equal(data, 'over QUIC')
  socket.close()
  await once(socket as never, 'close')
  assert.deepEqual([client.stats().http1.dialled, client.stats().http3.dialled], [0, 1])
})

test('a server that stops finishes what it has; the next request finds another one', quick, async (t) => {
  let finish = (): void => {}
  const first = await start(t, () => new Promise<Response>((resolve) => (finish = () => resolve(new Response('done')))))
  const { port } = first
  const client = clientOf(t)
  const answer = textOf(client, first.url)
  await until(() => first.stats().http3.exchanges === 1)
  const closed = first.close({ deadline: 20_000 })
  await new Promise((resolve) => setTimeout(resolve, 50))
  finish()
  assert.equal(await answer, 'done')
  await closed
  const second = await start(t, protocolOf, { port })
  assert.equal(await textOf(client, second.url), 'h3')
})

test('the client closes: requests under way finish, the server is told, and the process may end', quick, async (t) => {
  const server = await start(t, async (_request, { protocol }) => {
    await new Promise((resolve) => setTimeout(resolve, 50))
    return new Response(protocol)
  })
  const client = new Client({ protocols: ['h3'], tls: { ca: authority.cert } })
  const answers = Promise.all(Array.from({ length: 5 }, () => textOf(client, server.url)))
  await until(() => server.stats().http3.exchanges === 5)
  await client.close()
  assert.deepEqual(await answers, ['h3', 'h3', 'h3', 'h3', 'h3'])
  await until(() => server.stats().http3.connections === 0)

  const script = `
    import { Client } from ${JSON.stringify(new URL('../src/client/index.ts', import.meta.url).href)}
    const [url, ca] = JSON.parse(process.argv[1])
    const client = new Client({ protocols: ['h3'], tls: { ca } })
    const response = await client.fetch(url)
    console.log(await response.text(), client.stats().http3.connections)`
  const child = spawn(process.execPath, [
    '--conditions=@heddle/source',
    '--input-type=module',
    '-e',
    script,
    JSON.stringify([server.url, authority.cert]),
  ])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const code = await new Promise((resolve) => child.on('close', resolve))
  assert.deepEqual([code, output], [0, 'h3 1\n'])
})

test('sessions are resumed', quick, async (t) => {
  const server = await start(t)
  const client = clientOf(t, { http3: { idleTimeout: 50 } })
  const resumed: unknown[] = []
  const origin = client.origin(server.url)
  for (let i = 0; i < 2; i++) {
    await new Promise<void>((resolve) => {
      client.exchange(origin, {
        onOpen(exchange) {
          resumed.push((exchange.connection.tls as { resumed?: boolean }).resumed)
          exchange.sendHead(requestHead('GET', 'https', origin.authority, '/'), true)
        },
        onHead() {},
        onData() {},
        onTrailers() {},
        onSent() {},
        onPriority() {},
        onClose: () => resolve(),
      })
    })
    await until(() => client.stats().connections === 0)
  }
  assert.deepEqual(resumed, [false, true])
})

test('what QUIC cannot do is refused where it was asked for alone, and left out otherwise', { skip: quick.skip ?? false }, () => {
  const cases: [ClientOptions, RegExp][] = [
    [{ tls: { ciphers: 'TLS_AES_128_GCM_SHA256' } }, /^Client: HTTP\/3 cannot be spoken: tls\.ciphers/],
    [{ tls: { maxVersion: 'TLSv1.2' } }, /TLS 1\.3/],
    [{ tls: { checkServerIdentity: () => undefined } }, /checkServerIdentity/],
    [{ socketPath: '/tmp/socket' }, /Unix socket/],
    [{ connect: () => ({ cancel() {} }) }, /connectQuic/],
  ]
  for (const [options, message] of cases) {
    assert.throws(
      () => new Client({ ...options, protocols: ['h3'] }),
      (error) => error instanceof UsageError && message.test(error.message),
    )
    const { http3Unavailable } = new Client({ ...options, protocols: ['h3', 'h2'] }).stats()
    assert.match(`Client: HTTP/3 cannot be spoken: ${http3Unavailable}`, message)
  }
  assert.equal(new Client({ protocols: ['h3', 'h2'] }).stats().http3Unavailable, undefined)
  assert.equal(new Client().stats().http3Unavailable, undefined)
})

test(
  'without native code HTTP/3 is left out, and refused with the reason where nothing else may be spoken',
  { timeout: 60_000 },
  async () => {
    const script = `
    import { Client } from ${JSON.stringify(new URL('../src/client/index.ts', import.meta.url).href)}
    console.log(new Client({ protocols: ['h3', 'h2'] }).stats().http3Unavailable)
    try {
      new Client({ protocols: ['h3'] })
    } catch (error) {
      console.log(error.code, error.message)
    }`
    // Without its permission node:ffi is refused.
    const flags = ['--permission', '--allow-fs-read=*', '--conditions=@heddle/source', '--input-type=module', '-e', script]
    const child = spawn(process.execPath, flags, { env: { ...process.env, NODE_OPTIONS: '', NODE_NO_WARNINGS: '1' } })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    await new Promise((resolve) => child.on('close', resolve))
    const [reason, refused] = output.split('\n')
    assert.match(String(reason), /HTTP\/3/)
    assert.equal(refused, `USAGE Client: HTTP/3 cannot be spoken: ${reason}`)
  },
)
