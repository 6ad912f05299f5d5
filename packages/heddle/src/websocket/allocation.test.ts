import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { getHeapStatistics } from 'node:v8'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import type { Exchange } from '../http/index.ts'
import { collectGarbage, memoryNow, World } from '../testing/index.ts'
import { Nowhere } from '../testing/websocket/nowhere.ts'
import { encodeFrame } from '../ws/index.ts'
import { Socket } from './socket.ts'

const clock = new World()

function bench(): { tunnel: Nowhere; socket: Socket } {
  const tunnel = new Nowhere()
  return { tunnel, socket: new Socket(tunnel as unknown as Exchange, { role: 'client', clock, maskKey: () => 0x1234_5678 }) }
}

function total(): number {
  return (getHeapStatistics() as unknown as { total_allocated_bytes: number }).total_allocated_bytes
}

/** What it costs to ask, which counts in every difference. */
function asking(): number {
  let least = Infinity
  for (let i = 0; i < 20; i++) least = Math.min(least, -total() + total())
  return least
}

const batch = 1_000
const rounds = 10

/** The most bytes each may take. A promise with its resolving functions is 150, the operation that waits 100, the message of a read 64 in an ArrayBuffer of its own. */
const most = { nothing: 4, written: 350, withDeadline: 750, readEarly: 700, readLate: 600 } as const

/**
 * Bytes allocated for each of `batch` things that a call of `run` does, once its code is compiled: the least of some
 * rounds. The compiler works in a thread of its own, which on a busy machine may take its time: rounds go on until one
 * is within `most`, or for 10 s.
 */
async function allocatedEach(most: number, run: () => void | Promise<unknown>): Promise<number> {
  for (let i = 0; i < rounds * 8; i++) await run()
  let least = Infinity
  const end = performance.now() + 10_000
  for (let attempt = 0; attempt < 5 || (least > most && performance.now() < end); attempt++) {
    collectGarbage()
    const cost = asking()
    const before = total()
    for (let i = 0; i < rounds; i++) await run()
    least = Math.min(least, (total() - before - cost) / (rounds * batch))
  }
  return least
}

/** `batch` frames of a server, of 64 bytes each. */
function frames(binary: boolean): Buffer {
  return Buffer.concat(Array.from({ length: batch }, () => encodeFrame(Buffer.alloc(64, 'x'), binary, false)))
}

function handled(binary: boolean): Promise<number> {
  const { tunnel, socket } = bench()
  let messages = 0
  socket.handler = { onMessage: () => messages++ }
  const input = frames(binary)
  return allocatedEach(most.nothing, () => {
    const before = messages
    tunnel.handler?.onData(input, 0, input.length, false)
    assert.equal(messages, before + batch)
  })
}

function posted(data: string | Uint8Array): Promise<number> {
  const { tunnel, socket } = bench()
  return allocatedEach(most.nothing, () => {
    for (let i = 0; i < batch; i++) socket.post(data)
    tunnel.report()
    assert.equal(socket.bufferedAmount, 0)
  })
}

function written(options?: { readonly deadline: number }): Promise<number> {
  const { tunnel, socket } = bench()
  const bytes = Buffer.alloc(64, 1)
  return allocatedEach(options === undefined ? most.written : most.withDeadline, () => {
    let last: Promise<void> | undefined
    for (let i = 0; i < batch; i++) last = socket.write(bytes, options)
    tunnel.report()
    return last
  })
}

/** `early`: reads wait for messages; else messages for reads. */
function read(early: boolean): Promise<number> {
  const { tunnel, socket } = bench()
  const input = frames(true)
  const come = (): void => tunnel.handler?.onData(input, 0, input.length, false)
  return allocatedEach(early ? most.readEarly : most.readLate, () => {
    let last: Promise<unknown> | undefined
    if (!early) come()
    for (let i = 0; i < batch; i++) last = socket.read()
    if (early) come()
    return last?.then((message) => assert.equal((message as Uint8Array).length, 64))
  })
}

/** Bytes of a socket on a tunnel that waits, the double of the tunnel included. */
async function waiting(): Promise<number> {
  const count = 2_000
  const make = (): Socket => bench().socket
  const warm = Array.from({ length: count }, make)
  const before = await memoryNow()
  const sockets = Array.from({ length: count }, make)
  const each = ((await memoryNow()) - before) / count
  assert.equal(warm.length, sockets.length)
  return each
}

/** In a thread of their own: a test keeps book of every promise that is made in it, which costs more than they do. */
const measures = {
  handledBinary: () => handled(true),
  handledText: () => handled(false),
  postedBytes: () => posted(Buffer.alloc(64, 1)),
  postedText: () => posted('a message of some length, as messages are'),
  written: () => written(),
  writtenWithDeadline: () => written({ deadline: 1_000 }),
  readEarly: () => read(true),
  readLate: () => read(false),
  waiting: () => waiting(),
}

if (isMainThread) {
  void test('bytes allocated for a message, and for a socket that waits', async (t) => {
    const worker = new Worker(new URL(import.meta.url))
    const [found] = (await once(worker, 'message')) as [Record<keyof typeof measures, number>]
    await worker.terminate()
    t.diagnostic(JSON.stringify(found, (_name, value: unknown) => (typeof value === 'number' ? Math.round(value * 10) / 10 : value)))
    const within = (name: keyof typeof measures, least: number, most: number): void => {
      assert.ok(found[name] >= least && found[name] <= most, `${name}: ${found[name]} bytes, and should be ${least} to ${most}`)
    }
    // What a handler is told and what is posted costs nothing.
    within('handledBinary', -1, most.nothing)
    within('handledText', -1, most.nothing)
    within('postedBytes', -1, most.nothing)
    within('postedText', -1, most.nothing)
    within('written', 150, most.written)
    // A deadline costs, and only then.
    within('writtenWithDeadline', found.written + 100, most.withDeadline)
    within('readEarly', 300, most.readEarly)
    within('readLate', 200, most.readLate)
    within('waiting', 500, 2_500)
  })
} else {
  const found: Record<string, number> = {}
  for (const [name, measure] of Object.entries(measures)) found[name] = await measure()
  parentPort?.postMessage(found)
}
