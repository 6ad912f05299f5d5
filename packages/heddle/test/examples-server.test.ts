import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../../../examples/', import.meta.url))

/** Runs an example on a free port, gives its URL and the lines it prints after it, and stops it as an operator would. */
async function run(name: string, use: (url: string, lines: AsyncIterator<string>) => Promise<void>): Promise<void> {
  const child: ChildProcess = spawn(process.execPath, ['--conditions=@heddle/source', `${folder}${name}.ts`], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000)
  try {
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
    const url = (await lines.next()).value as string
    assert.match(url, /^http:\/\/localhost:\d+$/)
    await use(url, lines)
    child.kill('SIGTERM')
    assert.deepEqual(await exited, [0, null], 'ends by itself once it was told to stop')
  } finally {
    clearTimeout(timer)
    child.kill('SIGKILL')
    await exited
  }
}

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
