/** ngtcp2 and nghttp3, by the client that Debian builds on GnuTLS, against the server. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Server, ServeOptions } from 'heddle'
import { content, sumOf } from '../src/application.ts'
import { run } from '../src/process.ts'
import { quicApplication, sized } from '../src/quic-application.ts'
import { halfHandshake } from '../src/quic-peers.ts'
import { openFolder, openServer, until, type Folder } from '../src/stage.ts'
import { tool } from '../src/tools.ts'

const program = tool('gtlsclient')
const quick = { timeout: 60_000 }
const suites = '--ciphers=NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL'

interface Place {
  readonly server: Server
  readonly folder: Folder
  /** Runs it, and returns what it downloaded, by the last part of the path. */
  readonly get: (paths: readonly string[], ...flags: string[]) => Promise<{ printed: string; file: (name: string) => Buffer }>
}

async function open(t: TestContext, options: Partial<ServeOptions> = {}): Promise<Place> {
  const folder = openFolder(t)
  const { cert, key } = folder.identity
  const server = await openServer(t, { fetch: quicApplication(), protocols: ['h3'], tls: { cert, key }, ...options })
  const downloads = join(folder.path, 'downloads')
  return {
    server,
    folder,
    get: async (paths, ...flags) => {
      rmSync(downloads, { recursive: true, force: true })
      mkdirSync(downloads)
      const urls = paths.map((path) => `https://localhost:${server.port}${path}`)
      const words = ['--exit-on-all-streams-close', '--no-http-dump', '--no-quic-dump', `--download=${downloads}`, '--timeout=20s']
      const { status, stdout, stderr } = await run(program, [...words, ...flags, '127.0.0.1', `${server.port}`, ...urls], {
        timeout: 30_000,
      })
      assert.equal(status, 0, stderr)
      return { printed: stdout + stderr, file: (name) => readFileSync(join(downloads, name)) }
    },
  }
}

test('ngtcp2 gets what it asks for, all at once', quick, async (t) => {
  const { server, get } = await open(t)
  const { file } = await get(['/big', '/stream', '/hello', '/quic/sized/0', '/quic/sized/20000000'])
  assert.ok(file('big').equals(content) && file('stream').equals(content))
  assert.equal(file('hello').toString(), 'GET h3')
  assert.equal(sumOf(file('20000000')), sumOf(sized(20_000_000)))
  await get(['/quic/not-modified', '/hello'], '--http-method=HEAD')
  await get(Array.from({ length: 200 }, () => '/hello'))
  assert.deepEqual([server.stats().http3.accepted, server.stats().http3.requests], [3, 207])
})

test('ngtcp2 sends content', quick, async (t) => {
  const { folder, get } = await open(t)
  const body = join(folder.path, 'body')
  for (const size of [1, 20_000_000]) {
    writeFileSync(body, sized(size))
    const { file } = await get(['/sum'], '--http-method=POST', `--data=${body}`)
    assert.equal(file('sum').toString(), sumOf(sized(size)))
  }
})

for (const [name, ...flags] of [
  ['AES-256', `${suites}:+AES-256-GCM`],
  ['ChaCha20', `${suites}:+CHACHA20-POLY1305`],
  ['P-256', '--groups=-GROUP-ALL:+GROUP-SECP256R1'],
  ['no connection id of its own', '--scid='],
  ['windows that are small', '--max-stream-data-bidi-local=16K', '--max-data=24K'],
  ['another key', '--key-update=10ms', '--delay-stream=50ms'],
  ['another address', '--change-local-addr=10ms', '--delay-stream=50ms'],
  ['another address, which it does not know of', '--change-local-addr=10ms', '--nat-rebinding', '--delay-stream=50ms'],
  ['another address, in the midst of it', '--change-local-addr=2ms'],
  ['losses both ways', '--tx-loss=0.05', '--rx-loss=0.05', '--timeout=1s'],
] as const) {
  test(`ngtcp2 with ${name}`, quick, async (t) => {
    const { server, get } = await open(t)
    const { file } = await get(['/big', '/stream'], ...flags)
    assert.ok(file('big').equals(content) && file('stream').equals(content))
    assert.equal(server.stats().http3.accepted, 1)
    await until(() => server.stats().http3.connections === 0, 'the server to forget it')
  })
}

test('ngtcp2 begins with a version that nobody speaks, and is told of another', quick, async (t) => {
  const { get } = await open(t)
  const { printed } = await get(['/hello'], '--version=0x1a2a3a4a', '--preferred-versions=v1', '--other-versions=v1')
  assert.ok(/ERR_RECV_VERSION_NEGOTIATION/.test(printed))
})

test('ngtcp2 must show that it receives at its address', quick, async (t) => {
  const { server, folder, get } = await open(t, { maxHandshakes: 10 })
  await halfHandshake(t, server, folder)
  const { file, printed } = await get(['/big'])
  assert.ok(/ pkt rx .* type=Retry/.test(printed))
  assert.ok(file('big').equals(content))
})

test('ngtcp2 comes back with a ticket, and with data that comes too early', quick, async (t) => {
  const { folder, get } = await open(t)
  const kept = [`--session-file=${join(folder.path, 'session')}`, `--tp-file=${join(folder.path, 'parameters')}`]
  await get(['/quic/later'], ...kept)
  assert.ok(existsSync(join(folder.path, 'session')))
  const { file, printed } = await get(['/hello'], ...kept)
  assert.equal(file('hello').toString(), 'GET h3')
  assert.ok(/ type=0RTT/.test(printed) && printed.includes('Early data was rejected by server'))
})
