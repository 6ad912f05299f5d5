import assert from 'node:assert/strict'
import { test } from 'node:test'
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
