import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { nativeLibrary } from './ffi.ts'

/* How a process with ports and keys ends: by itself, without a crash and without a word. */

const native = nativeLibrary()
const skip = 'unavailable' in native ? native.unavailable : false

const from = (file: string): string => JSON.stringify(new URL(file, import.meta.url).href)
const prelude = `
import { nativeLibrary } from ${from('ffi.ts')}
import { ffiCrypto } from ${from('ffi-crypto.ts')}
import { openUdp } from ${from('udp-ffi.ts')}
const native = nativeLibrary()
const udp = openUdp(native)
const crypto = ffiCrypto(native)
const quiet = { onBatch() {}, onWritable() {}, onError() {} }
const suite = 'TLS_AES_128_GCM_SHA256'
`

/** Runs a module and returns what it printed; it must end with code 0 and an empty stderr. */
async function run(source: string, flags: readonly string[] = []): Promise<string> {
  const child = spawn(process.execPath, [...flags, '--input-type=module', '-e', prelude + source], {
    env: { ...process.env, NODE_OPTIONS: '', NODE_NO_WARNINGS: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 120_000,
  })
  const texts = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (texts.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (texts.stderr += text))
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    child.on('close', (...end) => {
      resolve(end)
    })
  })
  assert.deepEqual({ code, signal, stderr: texts.stderr }, { code: 0, signal: null, stderr: '' })
  return texts.stdout
}

test('a port that is unreferenced keeps no process alive; keys that nobody closed neither', { skip }, async () => {
  const printed = await run(`
    const port = await udp.bind({}, quiet)
    port.unref()
    crypto.packetKey(suite, new Uint8Array(16), new Uint8Array(12)).seal(new Uint8Array(64), 0, 8, 40, 1)
    crypto.headerKey(suite, new Uint8Array(16))
    process.on('exit', () => console.log('ends'))
  `)
  assert.equal(printed, 'ends\n')
})

test('a port that is referenced again keeps the process alive until it is closed', { skip }, async () => {
  const printed = await run(`
    const port = await udp.bind({ host: '127.0.0.1' }, {
      ...quiet,
      onBatch() { console.log('came'); port.close() },
    })
    const sender = await udp.bind({ host: '127.0.0.1' }, quiet)
    port.unref()
    port.ref()
    sender.unref()
    setTimeout(() => sender.send(port.local, new Uint8Array(10), 0, 10, 10, 0), 20).unref()
  `)
  assert.equal(printed, 'came\n')
})

test('process.exit while receiving', { skip }, async () => {
  const printed = await run(`
    const port = await udp.bind({ host: '127.0.0.1' }, { ...quiet, onBatch() { console.log('came'); process.exit(0) } })
    const sender = await udp.bind({ host: '127.0.0.1' }, quiet)
    sender.send(port.local, new Uint8Array(1000), 0, 1000, 10, 0)
  `)
  assert.equal(printed, 'came\n')
})

test('a handler that throws is an uncaught exception like any other, and the port lives on', { skip }, async () => {
  const printed = await run(`
    let count = 0
    process.on('uncaughtException', (error) => {
      console.log(error.message)
      sender.send(port.local, new Uint8Array(1), 0, 1, 1, 0)
    })
    const port = await udp.bind({ host: '127.0.0.1' }, {
      ...quiet,
      onBatch(port, n) {
        count += n
        if (count === n) throw new Error('thrown')
        console.log('came')
        void port.close()
        void sender.close()
      },
    })
    const sender = await udp.bind({ host: '127.0.0.1' }, quiet)
    sender.send(port.local, new Uint8Array(1), 0, 1, 1, 0)
  `)
  assert.equal(printed, 'thrown\ncame\n')
})

test('a worker that is terminated in the middle of it, many times', { skip }, async () => {
  const printed = await run(`
    import { Worker } from 'node:worker_threads'
    const source = ${JSON.stringify(prelude)} + \`
      import { parentPort } from 'node:worker_threads'
      const key = crypto.packetKey(suite, new Uint8Array(16), new Uint8Array(12))
      const buffer = new Uint8Array(64_000)
      const port = await udp.bind({ host: '127.0.0.1' }, { ...quiet, onBatch(port, count) {
        for (let i = 0; i < count; i++) key.open(port.buffer, port.offset(i), port.offset(i) + 8, port.offset(i) + port.length(i), 1)
        for (let at = 0; at < 64_000; at += 1000) key.seal(buffer, at, at + 8, at + 984, 1)
        port.send(port.local, buffer, 0, 64_000, 1000, 0)
      } })
      port.send(port.local, buffer, 0, 64_000, 1000, 0)
      parentPort.postMessage('runs')
    \`
    for (let round = 0; round < 8; round++) {
      const worker = new Worker(new URL('data:text/javascript,' + encodeURIComponent(source)))
      await new Promise((resolve, reject) => { worker.once('message', resolve); worker.once('error', reject) })
      await worker.terminate()
    }
    // And this thread's still work.
    const buffer = new Uint8Array(64)
    const key = crypto.packetKey(suite, new Uint8Array(16), new Uint8Array(12))
    key.seal(buffer, 0, 8, 40, 1)
    console.log(key.open(buffer, 0, 8, 56, 1))
  `)
  assert.equal(printed, 'true\n')
})

test('the garbage collector moves and frees nothing that native code still has', { skip }, async () => {
  const printed = await run(
    `
    const received = []
    const port = await udp.bind({ host: '127.0.0.1' }, { ...quiet, onBatch(port, count) {
      gc()
      for (let i = 0; i < count; i++) received.push(port.buffer.slice(port.offset(i), port.offset(i) + port.length(i)))
    } })
    const sender = await udp.bind({ host: '127.0.0.1' }, quiet)
    let intact = 0
    for (let round = 0; round < 60; round++) {
      const key = crypto.packetKey(suite, new Uint8Array(16).fill(round), new Uint8Array(12).fill(round))
      // Small arrays are on V8's heap until their address is asked for.
      const buffer = new Uint8Array(round % 2 === 0 ? 60 : 1200).fill(round)
      const limit = buffer.length - 16
      if (round % 3 === 0) gc({ type: 'minor' })
      key.seal(buffer, 0, 8, limit, round)
      if (round % 3 === 1) gc()
      sender.send(port.local, buffer, 0, buffer.length, buffer.length, 0)
      while (received.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      const came = received.pop()
      gc()
      if (key.open(came, 0, 8, limit + 16, round) && came.subarray(0, limit).every((octet) => octet === round)) intact++
      key.close()
    }
    console.log(intact)
    await Promise.all([port.close(), sender.close()])
  `,
    ['--expose-gc'],
  )
  assert.equal(printed, '60\n')
})
