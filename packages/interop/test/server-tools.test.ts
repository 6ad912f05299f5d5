/** The server and the command-line clients people have: curl and nghttp. Skipped where they are not installed. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { Response, serve, type FetchHandler, type Server } from 'heddle'
import { makeCertificate } from 'heddle/testing'

const run = promisify(execFile)
const quick = { timeout: 60_000 }

function missing(program: string, ...features: string[]): string | false {
  const { status, stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  if (status !== 0) return `${program} is not installed`
  const lacks = features.find((feature) => !stdout.includes(feature))
  return lacks === undefined ? false : `this ${program} has no ${lacks}`
}

const noCurl = missing('curl', 'HTTP2')
const noNghttp = missing('nghttp')

const content = Buffer.alloc(2_000_000, 'abcdefghijk')
const sum = createHash('sha256').update(content).digest('hex')

const answer: FetchHandler = async (request, context) => {
  const { pathname } = new URL(request.url)
  switch (pathname) {
    case '/big':
      return new Response(content)
    case '/stream':
      return new Response(new Blob([content]).stream())
    case '/sum':
      return new Response(
        createHash('sha256')
          .update(await request.bytes())
          .digest('hex'),
      )
    case '/hints':
      context.sendInformational(103, { link: '</a.css>; rel=preload' })
      return new Response('hinted')
    case '/trailers':
      return new Response('summed', { trailers: { 'x-sum': '42' } })
    default:
      return new Response(`${request.method} ${context.protocol} ${request.headers.get('cookie') ?? ''}`)
  }
}

interface Scene {
  readonly plain: Server
  readonly secure: Server
  readonly folder: string
  /** The certificate to trust. */
  readonly ca: string
}

async function open(t: TestContext): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-tools-'))
  const certificate = makeCertificate({ names: ['localhost'] })
  const ca = join(folder, 'ca.pem')
  await writeFile(ca, certificate.cert)
  await writeFile(join(folder, 'content'), content)
  const plain = await serve({ hostname: '127.0.0.1', fetch: answer })
  const secure = await serve({ hostname: '127.0.0.1', tls: { cert: certificate.cert, key: certificate.key }, fetch: answer })
  t.after(async () => {
    for (const server of [plain, secure]) {
      await server.close({ deadline: 1000 })
      assert.equal(server.stats().exchanges, 0)
    }
    await rm(folder, { recursive: true })
  })
  return { plain, secure, folder, ca }
}

for (const way of ['h1', 'h2c', 'https', 'h2'] as const) {
  test(`curl (${way})`, { ...quick, skip: noCurl }, async (t) => {
    const { plain, secure, folder, ca } = await open(t)
    const base = way === 'h1' || way === 'h2c' ? `http://127.0.0.1:${plain.port}` : `https://localhost:${secure.port}`
    const how = {
      h1: ['--http1.1'],
      h2c: ['--http2-prior-knowledge'],
      https: ['--http1.1', '--cacert', ca],
      h2: ['--http2', '--cacert', ca],
    }[way]
    const curl = async (...words: string[]): Promise<string> => {
      const { stdout } = await run('curl', ['--silent', '--show-error', '--max-time', '20', ...how, ...words], {
        maxBuffer: 10_000_000,
        encoding: 'latin1',
      })
      return stdout
    }
    const protocol = way.startsWith('h2') ? 'h2' : 'h1'
    assert.equal(await curl(`${base}/`), `GET ${protocol} `)
    assert.equal(await curl('-b', 'a=1; b=2', '-X', 'PUT', '-d', 'x', `${base}/`), `PUT ${protocol} a=1; b=2`)
    assert.match(await curl('-I', `${base}/big`), /^content-length: 2000000\r$/m)
    const file = join(folder, 'got')
    await curl('-o', file, `${base}/big`)
    assert.ok((await readFile(file)).equals(content))
    await curl('-o', file, `${base}/stream`)
    assert.ok((await readFile(file)).equals(content))
    const upload = ['--data-binary', `@${join(folder, 'content')}`]
    assert.equal(await curl(...upload, `${base}/sum`), sum)
    assert.equal(await curl(...upload, '-H', 'expect: 100-continue', `${base}/sum`), sum)
    // Answered without being read: small uploads end by themselves.
    assert.equal(await curl('-d', 'unread', `${base}/`), `POST ${protocol} `)
    assert.match(await curl('-i', `${base}/hints`), /^HTTP\/\S+ 103 [^]*link: <\/a\.css>; rel=preload\r\n\r\nHTTP\/\S+ 200 [^]*hinted$/)
    assert.match(await curl('-i', `${base}/trailers`), /\r\n\r\nsummed(x-sum: 42)?/)
    const many = Array.from({ length: 30 }, (_, i) => `${base}/?${i}`)
    assert.equal(await curl('--parallel', '--parallel-immediate', '--parallel-max', '30', ...many), `GET ${protocol} `.repeat(30))
    const { http1, http2 } = (
      protocol === 'h1' || way === 'https' ? (way === 'h1' ? plain : secure) : way === 'h2c' ? plain : secure
    ).stats()
    assert.equal(protocol === 'h1' ? http2.requests : http1.requests, 0)
  })
}

for (const way of ['h2c', 'h2'] as const) {
  test(`nghttp (${way})`, { ...quick, skip: noNghttp }, async (t) => {
    const { plain, secure, folder } = await open(t)
    const server = way === 'h2c' ? plain : secure
    const base = way === 'h2c' ? `http://127.0.0.1:${plain.port}` : `https://localhost:${secure.port}`
    const nghttp = async (...words: string[]): Promise<string> => {
      const { stdout } = await run('nghttp', ['--timeout=20', '--no-verify-peer', ...words], { maxBuffer: 50_000_000, encoding: 'latin1' })
      return stdout
    }
    assert.equal(await nghttp(`${base}/`), 'GET h2 ')
    assert.equal(
      createHash('sha256')
        .update(await nghttp(`${base}/big`), 'latin1')
        .digest('hex'),
      sum,
    )
    assert.equal(await nghttp(`--data=${join(folder, 'content')}`, `${base}/sum`), sum)
    // Padded frames, a small window, no dynamic table, many streams, content without a length.
    assert.equal(
      await nghttp('--padding=200', '--window-bits=10', '--header-table-size=0', '--multiply=20', `${base}/`),
      'GET h2 '.repeat(20),
    )
    assert.equal(await nghttp('--no-content-length', `--data=${join(folder, 'content')}`, `${base}/sum`), sum)
    assert.equal(await nghttp('--expect-continue', `--data=${join(folder, 'content')}`, `${base}/sum`), sum)
    const log = await nghttp('--verbose', '--null-out', `${base}/trailers`)
    assert.match(log, /x-sum: 42/)
    assert.match(log, /SETTINGS_MAX_CONCURRENT_STREAMS\(0x03\):100/)
    assert.doesNotMatch(log, /ENABLE_CONNECT_PROTOCOL|0x08/)
    assert.deepEqual([server.stats().http1.requests, server.stats().http2.resetsSent], [0, {}])
  })
}
