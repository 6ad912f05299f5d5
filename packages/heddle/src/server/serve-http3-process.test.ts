/** How processes and threads that serve HTTP/3 live and end: by themselves, without a crash and without a word. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { test, type TestContext, type TestOptions } from 'node:test'
import { Http3Client, noHttp3 } from '../../test/h3-client.ts'
import { authority, localhost, until } from '../../test/h3-scene.ts'

const quick: TestOptions = { timeout: 60_000, skip: noHttp3 }

const index = JSON.stringify(new URL('index.ts', import.meta.url).href)
const prelude = `
import { serve, Response } from ${index}
const tls = ${JSON.stringify({ cert: localhost.cert, key: localhost.key })}
const endless = () => new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(10_000)) }))
const fetch = (request) => (request.url.endsWith('/endless') ? endless() : new Response('served'))
const start = (options) => serve({ hostname: '127.0.0.1', protocols: ['h3'], tls, fetch, ...options })
`

interface Child {
  readonly process: ChildProcess
  readonly ended: Promise<{ code: number | null; signal: string | null; stderr: string }>
  message(): Promise<unknown>
}

function run(t: TestContext, source: string): Child {
  const child = spawn(process.execPath, ['--conditions=@heddle/source', '--input-type=module', '-e', prelude + source], {
    env: { ...process.env, NODE_OPTIONS: '', NODE_NO_WARNINGS: '' },
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  })
  t.after(() => child.kill('SIGKILL'))
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const messages: unknown[] = []
  child.on('message', (message) => messages.push(message))
  return {
    process: child,
    ended: once(child, 'close').then(([code, signal]) => ({ code: code as number | null, signal: signal as string | null, stderr })),
    async message() {
      await until(() => messages.length > 0 || child.exitCode !== null, 'a message')
      assert.equal(child.exitCode, null, stderr)
      return messages.shift()
    },
  }
}

function client(t: TestContext, port: unknown): Http3Client {
  const made = new Http3Client({ port: port as number, host: 'localhost', ca: authority.cert })
  t.after(() => made.close())
  return made
}

const clean = { code: 0, signal: null, stderr: '' }

test('a process that listens by UDP alone stays alive, and ends when the server is closed', quick, async (t) => {
  const child = run(
    t,
    `
    const server = await start()
    process.send(server.port)
    process.once('message', () => server.close())
    process.channel.unref()
    `,
  )
  const port = await child.message()
  assert.equal((await client(t, port).ask()).text, 'served')
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.equal(child.process.exitCode, null)
  child.process.send('close')
  assert.deepEqual(await child.ended, clean)
})

test('unref lets the process end, but not below connections that stand; ref takes it back', quick, async (t) => {
  const child = run(
    t,
    `
    const server = await start()
    server.unref().ref().unref()
    const hold = setTimeout(() => {}, 60_000)
    process.on('message', () => { clearTimeout(hold); process.send('waits'); process.channel.unref() })
    process.send(server.port)
    `,
  )
  const one = client(t, await child.message())
  assert.equal((await one.ask()).text, 'served')
  child.process.send('go')
  assert.equal(await child.message(), 'waits')
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.equal((await one.ask()).text, 'served')
  assert.equal(child.process.exitCode, null)
  await one.close()
  assert.deepEqual(await child.ended, clean)
  const alone = run(t, `const server = await start({ protocols: ['h3', 'h2'] })\nserver.unref()`)
  assert.deepEqual(await alone.ended, clean)
})

test('process.exit while it serves', quick, async (t) => {
  const child = run(
    t,
    `
    process.send((await start()).port)
    process.once('message', () => process.exit(3))
    `,
  )
  const talk = client(t, await child.message()).start({ path: '/endless' }, true)
  const { content } = await talk.response
  content.resume()
  child.process.send('exit')
  assert.deepEqual(await child.ended, { code: 3, signal: null, stderr: '' })
})

test('threads serve each for themselves, and are terminated while they do', quick, async (t) => {
  const worker = `
    import { parentPort } from 'node:worker_threads'
    ${prelude}
    const server = await start()
    parentPort.postMessage(server.port)
  `
  const child = run(
    t,
    `
    import { Worker } from 'node:worker_threads'
    import { once } from 'node:events'
    const url = new URL('data:text/javascript,' + encodeURIComponent(${JSON.stringify(worker)}))
    const workers = [new Worker(url), new Worker(url)]
    const ports = (await Promise.all(workers.map((worker) => once(worker, 'message')))).map(([port]) => port)
    process.send(ports)
    process.on('message', async (i) => {
      await workers[i].terminate()
      process.send('terminated')
      if (i === 1) process.channel.unref()
    })
    `,
  )
  const ports = (await child.message()) as number[]
  const [first, second] = ports.map((port) => client(t, port)) as [Http3Client, Http3Client]
  for (const each of [first, second]) {
    const { content } = await each.start({ path: '/endless' }, true).response
    content.resume()
  }
  child.process.send(0)
  assert.equal(await child.message(), 'terminated')
  assert.equal((await second.ask()).text, 'served')
  child.process.send(1)
  assert.equal(await child.message(), 'terminated')
  assert.deepEqual(await child.ended, clean)
})

test('processes share a port, each with clients of its own', { ...quick, skip: noHttp3 || process.platform !== 'linux' }, async (t) => {
  const source = (port: number): string => `
    const tellPid = () => new Response(String(process.pid))
    const server = await start({ fetch: tellPid, port: ${port}, protocols: ['h3', 'h2'], reusePort: true, quicKey: new Uint8Array(32).fill(7) })
    process.send(server.port)
    process.once('message', () => server.close())
    process.channel.unref()
  `
  const first = run(t, source(0))
  const port = (await first.message()) as number
  const second = run(t, source(port))
  assert.equal(await second.message(), port)
  const clients = Array.from({ length: 32 }, () => client(t, port))
  const texts = await Promise.all(clients.map(async (each) => (await each.ask()).text))
  assert.deepEqual(new Set(texts), new Set([String(first.process.pid), String(second.process.pid)]))
  // Whoever asks again comes to the same one.
  assert.deepEqual(await Promise.all(clients.map(async (each) => (await each.ask()).text)), texts)
  for (const child of [first, second]) child.process.send('close')
  for (const child of [first, second]) assert.deepEqual(await child.ended, clean)
})
