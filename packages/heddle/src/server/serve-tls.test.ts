import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpsRequest } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { connect as tlsConnect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { test } from 'node:test'
import { UsageError } from '../http/index.ts'
import { makeAuthority, makeCertificate } from '../testing/index.ts'
import { Response, serve, type Server } from './index.ts'

const quick = { timeout: 20_000 }
const authority = makeAuthority()
const main = makeCertificate({ names: ['localhost'], ca: authority })
const other = makeCertificate({ names: ['other.example'], ca: authority })

/** Shakes hands, asks for / and gives the server's name in its certificate with the content. */
async function ask(server: Server, options: ConnectionOptions & { servername?: string } = {}): Promise<{ subject: string; text: string }> {
  const request = httpsRequest({
    host: '127.0.0.1',
    port: server.port,
    ca: authority.cert,
    servername: 'localhost',
    agent: false,
    ...options,
  } as never)
  request.end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const { subjectaltname } = (response.socket as TLSSocket).getPeerCertificate()
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { subject: subjectaltname as string, text }
}

test('TLS serves each name its certificate, and new ones without a restart', quick, async () => {
  const server = await serve({
    hostname: '127.0.0.1',
    tls: { cert: main.cert, key: main.key, names: { 'other.example': { cert: other.cert, key: other.key } } },
    fetch: (request, context) => Response.json([request.url, context.tls?.version, context.tls?.serverName, context.tls?.authorized]),
  })
  try {
    assert.match(server.url, /^https:/)
    const first = await ask(server)
    assert.match(first.subject, /localhost/)
    assert.deepEqual(JSON.parse(first.text), [`https://127.0.0.1:${server.port}/`, 'TLSv1.3', 'localhost', false])
    assert.match((await ask(server, { servername: 'other.example' })).subject, /other\.example/)

    const standing = tlsConnect({ port: server.port, host: '127.0.0.1', ca: authority.cert, servername: 'localhost' })
    await once(standing, 'secureConnect')
    const renewed = makeCertificate({ names: ['localhost', 'renewed.example'], ca: authority })
    server.updateTls({ cert: renewed.cert, key: renewed.key })
    assert.match((await ask(server)).subject, /renewed\.example/)
    assert.match((await ask(server, { servername: 'other.example' })).subject, /other\.example/)

    assert.throws(() => server.updateTls({ cert: main.cert, key: other.key }), UsageError)
    assert.match((await ask(server)).subject, /renewed\.example/)
    standing.write('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
    let text = ''
    for await (const chunk of standing) text += String(chunk)
    assert.match(text, /^HTTP\/1\.1 200 /)
  } finally {
    await server.close({ deadline: 1000 })
  }
  assert.equal(server.stats().connections, 0)
})

test('what fails in a handshake is counted, told to onError, and harms nobody', quick, async () => {
  const told: unknown[] = []
  const server = await serve({
    hostname: '127.0.0.1',
    tls: { cert: main.cert, key: main.key },
    fetch: () => new Response('fine'),
    onError: (error, request) => void told.push([(error as { code: string }).code, request]),
  })
  try {
    const plain = connect(server.port, '127.0.0.1')
    plain.on('error', () => {})
    plain.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
    await once(plain, 'close')
    assert.equal((await ask(server)).text, 'fine')
    assert.equal(server.stats().handshakesFailed, 1)
    assert.deepEqual(told, [['TLS_FAILED', undefined]])
  } finally {
    await server.close({ deadline: 1000 })
  }
})

test('a client that leaves within the handshake is noticed at once', quick, async () => {
  const server = await serve({
    hostname: '127.0.0.1',
    tls: { cert: main.cert, key: main.key },
    fetch: () => new Response(),
    onError: () => {},
  })
  try {
    await assert.rejects(ask(server, { ca: [] }), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
    while (server.stats().handshakesFailed === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.deepEqual([server.stats().handshakes, server.stats().connections], [0, 0])
  } finally {
    await server.close({ deadline: 1000 })
  }
})

test('halfOpen holds over TLS too', quick, async () => {
  for (const halfOpen of [true, false]) {
    const server = await serve({
      hostname: '127.0.0.1',
      tls: { cert: main.cert, key: main.key },
      halfOpen,
      fetch: async () => {
        await new Promise((resolve) => setTimeout(resolve, 30))
        return new Response('answer')
      },
    })
    try {
      const raw = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true })
      const socket = tlsConnect({ socket: raw, ca: authority.cert, servername: 'localhost' })
      socket.allowHalfOpen = true
      await once(socket, 'secureConnect')
      socket.end('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
      let text = ''
      for await (const chunk of socket) text += String(chunk)
      assert.equal(text.endsWith('answer'), halfOpen)
      raw.destroy()
    } finally {
      await server.close({ deadline: 1000 })
    }
  }
})

test('an identity that is no good rejects', async () => {
  await assert.rejects(serve({ tls: { cert: main.cert, key: other.key }, fetch: () => new Response() }), UsageError)
})

test('close cuts handshakes that hang, at its deadline', quick, async () => {
  const server = await serve({ hostname: '127.0.0.1', tls: { cert: main.cert, key: main.key }, fetch: () => new Response() })
  const hanging = connect(server.port, '127.0.0.1')
  hanging.on('error', () => {})
  await once(hanging, 'connect')
  while (server.stats().handshakes === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  const closed = once(hanging, 'close')
  await server.close({ deadline: 30 })
  await closed
  assert.equal(server.stats().connections, 0)
})
