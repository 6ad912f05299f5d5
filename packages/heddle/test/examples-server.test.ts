import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client } from '../src/index.ts'
import { makeCertificate } from '../src/testing/index.ts'
import { noHttp3 } from './h3-client.ts'
import { run } from './run-example.ts'

test('hello', () =>
  run('server-hello', async (url) => {
    assert.equal(await (await fetch(`${url}/world`)).text(), 'hello world\n')
  }))

test('events end when the client goes away', () =>
  run('server-events', async (url, lines) => {
    const controller = new AbortController()
    const response = await fetch(url, { signal: controller.signal })
    let text = ''
    await assert.rejects(async () => {
      for await (const chunk of response.body as ReadableStream<Uint8Array>) {
        text += Buffer.from(chunk).toString()
        if (text.includes('data: 3')) controller.abort()
      }
    })
    assert.match(text, /^data: 1\n\ndata: 2\n\ndata: 3\n\n/)
    assert.equal((await lines.next()).value, 'the client is gone')
  }))

test('upload', () =>
  run('server-upload', async (url) => {
    const response = await fetch(url, { method: 'POST', body: 'abc' })
    assert.equal(await response.text(), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad 3\n')
    assert.equal((await fetch(url)).status, 405)
  }))

test('raw exchange', () =>
  run('server-exchange', async (url) => {
    const response = await fetch(url, { method: 'PUT', body: 'text' })
    assert.equal(response.headers.get('x-method'), 'PUT')
    assert.equal(await response.text(), 'text')
  }))

test('node', () =>
  run('server-node', async (url) => {
    const response = await fetch(url, { method: 'POST', body: 'loud' })
    assert.deepEqual([await response.text(), response.headers.get('x-version')], ['LOUD', '1.1'])
  }))

test('native', () =>
  run('server-native', async (url) => {
    const response = await fetch(url, { method: 'POST', body: new URLSearchParams({ name: 'Ada' }) })
    assert.deepEqual(await response.json(), { hello: 'Ada' })
  }))

test('a burst of the client, half of it given up', () =>
  run('server-hello', async (url) => {
    const burst = fileURLToPath(new URL('../../../examples/client-burst.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=@heddle/source', burst, url], { timeout: 20_000 })
    assert.equal(stdout, '500 answers\nconnections made: 1\n')
  }))

/** The files of a certificate for localhost. */
async function certificateFiles(t: TestContext): Promise<{ cert: string; words: readonly [string, string] }> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-example-'))
  t.after(() => rm(folder, { recursive: true }))
  const { cert, key } = makeCertificate({ names: ['localhost'] })
  const words = [join(folder, 'cert.pem'), join(folder, 'key.pem')] as const
  await writeFile(words[0], cert)
  await writeFile(words[1], key)
  return { cert, words }
}

test('TLS', async (t) => {
  const { cert, words } = await certificateFiles(t)
  await run(
    'server-tls',
    async (url) => {
      for (const protocol of ['h2', 'h1'] as const) {
        await using client = new Client({ protocols: [protocol], tls: { ca: cert } })
        assert.equal(await (await client.fetch(url)).text(), `${protocol} over TLSv1.3\n`)
      }
    },
    words,
  )
})

test('HTTP/3, and a client that learns of it', { skip: noHttp3 }, async (t) => {
  const { words } = await certificateFiles(t)
  await run(
    'server-http3',
    async (url) => {
      const client = fileURLToPath(new URL('../../../examples/client-http3.ts', import.meta.url))
      const args = ['--conditions=@heddle/source', client, url, words[0]]
      const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { timeout: 20_000 })
      assert.match(stdout, /^(h2 to \S+, alt-svc: h3=":\d+"; ma=86400\n)+h3 to \S+, alt-svc: null\nconnections over QUIC: 1\n$/)
      assert.equal(stderr, '')
    },
    words,
  )
})
