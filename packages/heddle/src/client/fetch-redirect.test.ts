import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeddleError } from '../http/index.ts'
import { contentOf, startClient, startServer, testEach, type Answer } from './fetch-server.test.ts'
import type { FetchInit } from './fetch-init.ts'

/** `/STATUS/LOCATION` redirects; everything else tells what came. */
const answer: Answer = async (request, response) => {
  const [, status, location] = /^\/(3\d\d)\/(.*)$/.exec(request.url as string) ?? []
  const content = (await contentOf(request)).toString()
  if (status !== undefined) {
    response.writeHead(Number(status), location === '' ? {} : { location: decodeURIComponent(location as string) })
    response.end('moved')
    return
  }
  const {
    host: _host,
    'user-agent': _agent,
    connection: _connection,
    'accept-language': _language,
    'sec-fetch-mode': _mode,
    'accept-encoding': _coding,
    ...headers
  } = request.headers
  response.end(JSON.stringify({ method: request.method, url: request.url, headers, content }))
}

const go = (status: number, location: string): string => `/${status}/${encodeURIComponent(location)}`

/** Chains that Node's fetch and ours must follow alike. */
const cases: Record<string, () => [path: string, init?: FetchInit]> = {}
for (const status of [301, 302, 303, 307, 308]) {
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']) {
    const init =
      method === 'GET' || method === 'HEAD' ? { method } : { method, body: 'content', headers: { 'content-language': 'de', 'x-own': '1' } }
    cases[`${status} ${method}`] = () => [go(status, '/end'), init]
  }
}
Object.assign(cases, {
  'relative to the directory': () => [go(302, '../end?x')],
  'absolute path': () => [go(302, '/a/b/../c')],
  'protocol-relative': () => [go(302, '//127.0.0.1:PORT/end')],
  'absolute URL': () => [go(302, 'http://127.0.0.1:PORT/end')],
  'fragment of its own': () => [`${go(302, '/end#theirs')}#ours`],
  'fragment inherited': () => [`${go(302, '/end')}#ours`],
  'spaces and umlauts': () => [go(302, '/a b/%C3%BC')],
  'no location': () => ['/302/'],
  'a chain of three': () => [go(301, go(302, go(307, '/end')))],
  '307 then 303': () => [go(307, go(303, '/end')), { method: 'POST', body: 'content' }],
  '304 is none': () => ['/304/%2Fend'],
  '300 is none': () => ['/300/%2Fend'],
  'credentials stay within the origin': () => [go(302, '/end'), { headers: { authorization: 'a', cookie: 'b=c' } }],
  'FormData again': () => [go(307, '/end'), { method: 'POST', body: new URLSearchParams({ a: 'b' }) }],
  'Blob again': () => [go(308, '/end'), { method: 'POST', body: new Blob(['blob']) }],
  manual: () => [go(302, '/end'), { redirect: 'manual' }],
} satisfies typeof cases)

test('redirects are followed as Node follows them', async (t) => {
  const { url } = await startServer(t, answer)
  const client = startClient(t)
  const port = new URL(url).port
  for (const [name, make] of Object.entries(cases)) {
    const [path, init] = make()
    const [, nodeInit] = make()
    const at = url + path.replace('PORT', port)
    const ours = await client.fetch(at, init)
    const theirs = await globalThis.fetch(at, nodeInit as RequestInit)
    assert.equal(ours.status, theirs.status, name)
    assert.equal(ours.redirected, theirs.redirected, name)
    assert.equal(ours.url, theirs.url, name)
    assert.equal(ours.headers.get('location'), theirs.headers.get('location'), name)
    const [said, expected] = [await ours.text(), await theirs.text()]
    if (expected.startsWith('{')) assert.deepEqual(JSON.parse(said), JSON.parse(expected), name)
    else assert.equal(said, expected, name)
  }
})

testEach('credentials never reach another origin, not even by a way back', async (t) => {
  const home = await startServer(t, answer)
  const away = await startServer(t, answer)
  const client = startClient(t)
  const headers = { authorization: 'secret', cookie: 'secret', 'proxy-authorization': 'secret', host: 'home.example', 'x-own': 'shown' }
  for (const path of [go(302, `${away.url}/end`), go(302, `${away.url}${go(302, `${home.url}/end`)}`)]) {
    const response = await client.fetch(home.url + path, { headers })
    const text = await response.text()
    assert.ok(!text.includes('secret'), text)
    assert.ok(text.includes('shown'), text)
  }
  const other = await client.fetch(home.url + go(307, `${away.url}/end`), { method: 'POST', body: 'content', headers })
  assert.equal((JSON.parse(await other.text()) as { content: string }).content, 'content')
})

testEach('20 hops are followed, 21 are not', async (t) => {
  const { url } = await startServer(t, (request, response) => {
    const left = Number((request.url as string).slice(1))
    response.writeHead(left === 0 ? 200 : 302, { location: `/${left - 1}` })
    response.end()
  })
  const client = startClient(t)
  assert.equal((await client.fetch(`${url}/20`)).url, `${url}/0`)
  await assert.rejects(client.fetch(`${url}/21`), (error: unknown) => error instanceof HeddleError && error.code === 'REDIRECT_FAILED')
})

testEach('what is not followed', async (t) => {
  const { url } = await startServer(t, answer)
  const client = startClient(t)
  const failed = (error: unknown): boolean => error instanceof HeddleError && error.code === 'REDIRECT_FAILED'
  await assert.rejects(client.fetch(url + go(302, '/end'), { redirect: 'error' }), failed)
  await assert.rejects(client.fetch(url + go(302, 'http://['), {}), failed)
  await assert.rejects(client.fetch(url + go(302, 'ftp://127.0.0.1/')), failed)
  await assert.rejects(client.fetch(url + go(302, 'data:,x')), failed)
  await assert.rejects(client.fetch(url + go(302, 'http://user:pass@other.example/')), failed)
  const body = new Blob(['content']).stream()
  await assert.rejects(client.fetch(url + go(307, '/end'), { method: 'POST', body, duplex: 'half' }), failed)
  // A 303 drops the content, so a stream is no obstacle.
  const stream = new Blob(['content']).stream()
  const response = await client.fetch(url + go(303, '/end'), { method: 'POST', body: stream, duplex: 'half' })
  assert.equal((JSON.parse(await response.text()) as { method: string }).method, 'GET')
})

testEach('a redirect with content to drain keeps its connection', async (t) => {
  const { url, connections } = await startServer(t, (request, response) => {
    if (request.url === '/end') response.end('end')
    else {
      response.writeHead(302, { location: '/end' })
      response.end('x'.repeat(100_000))
    }
  })
  const client = startClient(t, { maxConnectionsPerOrigin: 1 })
  for (let i = 0; i < 5; i++) assert.equal(await (await client.fetch(url)).text(), 'end')
  assert.equal(connections(), 1)
})

testEach('abort and total time reach across hops', async (t) => {
  const { url } = await startServer(t, (request, response) => {
    if (request.url === '/slow') return
    response.writeHead(302, { location: '/slow' })
    response.end()
  })
  const client = startClient(t)
  const controller = new AbortController()
  setTimeout(() => controller.abort('enough'), 30)
  await assert.rejects(client.fetch(url, { signal: controller.signal }), (reason) => reason === 'enough')
  await assert.rejects(
    client.fetch(url, { timeout: 50 }),
    (error: unknown) => error instanceof HeddleError && error.code === 'TOTAL_TIMEOUT',
  )
})
