import assert from 'node:assert/strict'
import { test } from 'node:test'
import { constants, createDeflateRaw, createInflateRaw, deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { memoryNow } from '../testing/index.ts'
import type { Codec, CodecSettings, CodecSink } from '../ws/index.ts'
import { zlibCodec } from './codec.ts'
import { openJobs } from './zlib-job.ts'

const fresh: CodecSettings = { deflateWindowBits: 15, deflateTakeover: false, inflateWindowBits: 15, inflateTakeover: false }
const takeover: CodecSettings = { ...fresh, deflateTakeover: true, inflateTakeover: true }
const tail = Buffer.from([0, 0, 0xff, 0xff])

type Failure = { readonly direction: string; readonly cause: unknown }
type Result = Buffer | 'too much' | Failure

/** A connection as the codec sees it: one request at a time, and a promise for its result. */
class Sink implements CodecSink {
  readonly codec: Codec
  results = 0
  #settle: ((result: Result) => void) | undefined

  constructor(codec: Codec) {
    this.codec = codec
  }

  deflate(bytes: Uint8Array, end = true): Promise<Result> {
    return new Promise((resolve) => {
      this.#settle = resolve
      // The bytes are valid during the call only.
      const padded = Buffer.concat([Buffer.from('<<'), bytes, Buffer.from('>>')])
      this.codec.deflate(this, padded, 2, 2 + bytes.length, end)
      padded.fill(0xdd)
    })
  }

  inflate(bytes: Uint8Array, most = 1 << 24, kept = false): Promise<Result> {
    return new Promise((resolve) => {
      this.#settle = resolve
      const padded = Buffer.concat([Buffer.from('<'), bytes, Buffer.from('>')])
      this.codec.inflate(this, padded, 1, 1 + bytes.length, kept, most)
      if (!kept) padded.fill(0xdd)
    })
  }

  deflated(buffer: Uint8Array, start: number, limit: number): void {
    this.#finish(Buffer.from(buffer.subarray(start, limit)))
  }
  inflated(buffer: Uint8Array, start: number, limit: number): void {
    this.#finish(Buffer.from(buffer.subarray(start, limit)))
  }
  inflatedTooMuch(): void {
    this.#finish('too much')
  }
  codecFailed(direction: 'deflate' | 'inflate', cause: unknown): void {
    this.#finish({ direction, cause })
  }

  #finish(result: Result): void {
    this.results++
    const settle = this.#settle
    this.#settle = undefined
    settle?.(result)
  }
}

function bytesOf(result: Result): Buffer {
  assert.ok(result instanceof Buffer, `${JSON.stringify(result)}`)
  return result
}

function failureOf(result: Result): Failure {
  assert.ok(typeof result === 'object' && 'direction' in result, 'it failed')
  assert.ok(result.cause instanceof Error)
  return result
}

/** What is neither constant nor noise. */
function sample(length: number, seed: number): Buffer {
  let text = ''
  for (let i = seed; text.length < length; i += 7) text += JSON.stringify({ id: (i * 7919) % 1000, name: `user${i}`, ok: i % 3 === 0 })
  return Buffer.from(text.slice(0, length))
}

/** zlib as other implementations use it: one stream for all messages. */
function streamPeer(windowBits = 15) {
  const deflate = createDeflateRaw({ windowBits })
  const inflate = createInflateRaw({ windowBits })
  const run = (engine: typeof deflate | typeof inflate, input: Buffer[]): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const output: Buffer[] = []
      const onData = (chunk: Buffer): void => void output.push(chunk)
      engine.on('data', onData).once('error', reject)
      for (const bytes of input) engine.write(bytes)
      engine.flush(constants.Z_SYNC_FLUSH, () => {
        engine.off('data', onData).off('error', reject)
        resolve(Buffer.concat(output))
      })
    })
  return {
    compress: async (bytes: Buffer): Promise<Buffer> => (await run(deflate, [bytes])).subarray(0, -4),
    inflate: (bytes: Buffer): Promise<Buffer> => run(inflate, [bytes, tail]),
    close(): void {
      deflate.close()
      inflate.close()
    },
  }
}

const sizes = [0, 1, 64, 1000, 16_384, 16_385, 40_000, 200_000]

test('the example of RFC 7692 §7.2.3.1', async () => {
  const sink = new Sink(zlibCodec(fresh))
  assert.equal(bytesOf(await sink.deflate(Buffer.from('Hello'))).toString('hex'), 'f248cdc9c90700')
  assert.equal(bytesOf(await sink.inflate(Buffer.from('f248cdc9c90700', 'hex'))).toString(), 'Hello')
})

test('small messages are dealt with during the call, large ones later, with one and the same result', async () => {
  for (const settings of [fresh, takeover]) {
    const codec = zlibCodec(settings)
    const sink = new Sink(codec)
    for (const size of sizes) {
      const message = sample(size, size)
      const before = sink.results
      const deflating = sink.deflate(message)
      assert.equal(sink.results - before, size <= 16_384 ? 1 : 0, `${size}`)
      const deflated = bytesOf(await deflating)
      assert.deepEqual(bytesOf(await sink.inflate(deflated)), message)
      assert.equal(sink.results - before, 2)
    }
    codec.release(sink)
  }
})

test('context takeover: a peer that uses one zlib stream understands, and is understood', async () => {
  for (const windowBits of [9, 12, 15]) {
    const codec = zlibCodec({ deflateWindowBits: windowBits, deflateTakeover: true, inflateWindowBits: windowBits, inflateTakeover: true })
    const sink = new Sink(codec)
    const peer = streamPeer(windowBits)
    for (let round = 0; round < 60; round++) {
      const message = sample([40, 300, 2_000, 17_000, 9, 70_000][round % 6] as number, round % 4)
      assert.deepEqual(await peer.inflate(bytesOf(await sink.deflate(message))), message, `sent, round ${round}`)
      assert.deepEqual(bytesOf(await sink.inflate(await peer.compress(message))), message, `received, round ${round}`)
    }
    codec.release(sink)
    peer.close()
  }
})

test('any sequence of messages and parts survives, whatever the settings', async () => {
  const message = fc.record({ size: fc.oneof(fc.nat(300), fc.nat(5_000)), seed: fc.nat(9), parts: fc.integer({ min: 1, max: 3 }) })
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 9, max: 15 }),
      fc.boolean(),
      fc.array(message, { minLength: 1, maxLength: 12 }),
      async (bits, keeps, messages) => {
        const settings = { deflateWindowBits: bits, deflateTakeover: keeps, inflateWindowBits: bits, inflateTakeover: keeps }
        const sender = new Sink(zlibCodec(settings))
        const receiver = new Sink(zlibCodec(settings))
        for (const { size, seed, parts } of messages) {
          const bytes = sample(size, seed)
          const payload: Buffer[] = []
          for (let part = 0; part < parts; part++) {
            const from = Math.floor((size * part) / parts)
            const to = Math.floor((size * (part + 1)) / parts)
            payload.push(bytesOf(await sender.deflate(bytes.subarray(from, to), part === parts - 1)))
          }
          assert.deepEqual(bytesOf(await receiver.inflate(Buffer.concat(payload))), bytes)
        }
      },
    ),
    { numRuns: 60 },
  )
})

test('what is sent again and again becomes small with context takeover, and is as small as ever without', async () => {
  const message = sample(500, 3)
  const lengths = async (settings: CodecSettings): Promise<number[]> => {
    const sink = new Sink(zlibCodec(settings))
    const found: number[] = []
    for (let i = 0; i < 3; i++) found.push(bytesOf(await sink.deflate(message)).length)
    return found
  }
  const [first, second, third] = (await lengths(takeover)) as [number, number, number]
  assert.ok(second < 20 && third < 20 && first > 100, `${first} ${second} ${third}`)
  assert.equal(new Set(await lengths(fresh)).size, 1)
})

test('a large message refers to what came before it where that is worth it, and never to what another left in a compressor', async () => {
  const message = sample(40_000, 3)
  const sink = new Sink(zlibCodec(takeover))
  const keen = new Sink(zlibCodec(takeover, { contextSize: 32_768 }))
  const first = bytesOf(await sink.deflate(message))
  assert.deepEqual(bytesOf(await keen.deflate(message)), first)
  // Four KiB of context are not used, 32 are.
  assert.deepEqual(bytesOf(await sink.deflate(message)), first)
  assert.ok(bytesOf(await keen.deflate(message)).length < first.length)
  assert.deepEqual(bytesOf(await new Sink(zlibCodec(fresh)).deflate(message)), first)
  // Compressors of several kinds, each used again.
  for (let i = 0; i < 20; i++) {
    const leveled = new Sink(zlibCodec(fresh, { level: (i % 9) + 1 }))
    assert.deepEqual(bytesOf(await leveled.inflate(bytesOf(await leveled.deflate(message)))), message)
  }
  for (const one of [sink, keen]) one.codec.release(one)
})

test('after resetDeflate nothing refers to what was sent before', async () => {
  const sink = new Sink(zlibCodec(takeover))
  const message = sample(500, 3)
  await sink.deflate(message)
  sink.codec.resetDeflate(sink)
  const alone = bytesOf(await sink.deflate(message))
  assert.deepEqual(bytesOf(await new Sink(zlibCodec(fresh)).inflate(alone)), message)
})

test('blocks that end with BFINAL set are read on behind (RFC 7692 §7.2.3.4)', async () => {
  const one = sample(3_000, 1)
  const two = sample(20_000, 2)
  const padded = Buffer.concat([deflateRawSync(one), Buffer.from([0])])
  assert.deepEqual(bytesOf(await new Sink(zlibCodec(fresh)).inflate(padded)), one)
  // Without the padding, too; it is what some send.
  assert.deepEqual(bytesOf(await new Sink(zlibCodec(fresh)).inflate(deflateRawSync(one))), one)
  for (const settings of [fresh, takeover]) {
    const both = Buffer.concat([deflateRawSync(one), deflateRawSync(two, { dictionary: one }), Buffer.from([0])])
    assert.deepEqual(bytesOf(await new Sink(zlibCodec(settings)).inflate(both)), Buffer.concat([one, two]))
  }
  // In the thread pool.
  const noise = Buffer.from(Array.from({ length: 30_000 }, (_, i) => (i * i * 31 + (i >> 3)) & 0xff))
  const large = Buffer.concat([
    deflateRawSync(noise, { level: 0 }),
    deflateRawSync(one, { dictionary: noise.subarray(-9_000) }),
    Buffer.from([0]),
  ])
  for (const settings of [fresh, takeover]) {
    const sink = new Sink(zlibCodec(settings))
    assert.deepEqual(bytesOf(await sink.inflate(large)), Buffer.concat([noise, one]))
    if (settings === takeover) {
      const next = deflateRawSync(one, { dictionary: Buffer.concat([noise, one]).subarray(-32_768), finishFlush: constants.Z_SYNC_FLUSH })
      assert.deepEqual(bytesOf(await sink.inflate(next.subarray(0, -4))), one)
    }
  }
})

test('a flood of tiny DEFLATE streams is refused, small or large', async () => {
  for (const count of [1_000, 20_000]) {
    const result = await new Sink(zlibCodec(fresh)).inflate(Buffer.alloc(2 * count, Buffer.from([0x03, 0x00])))
    assert.equal(failureOf(result).direction, 'inflate', `${count}`)
  }
})

test('what is no DEFLATE, or breaks off, is told; no bytes at all are an empty message', async () => {
  const good = deflateRawSync(sample(60_000, 1), { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
  assert.equal(bytesOf(await new Sink(zlibCodec(fresh)).inflate(Buffer.alloc(0))).length, 0)
  for (const bad of [
    Buffer.from([0xff]),
    Buffer.from('no deflate'),
    good.subarray(0, -3),
    good.subarray(0, 500),
    Buffer.concat([Buffer.from([0xff]), Buffer.alloc(30_000)]),
  ]) {
    const result = await new Sink(zlibCodec(fresh)).inflate(bad)
    assert.equal(failureOf(result).direction, 'inflate', bad.subarray(0, 8).toString('hex'))
  }
})

test('references to what came before fail without context takeover', async () => {
  const message = sample(500, 3)
  const dependent = deflateRawSync(message, { dictionary: message, finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
  failureOf(await new Sink(zlibCodec(fresh)).inflate(dependent))
})

test('inflating stops at the limit, exactly', async () => {
  for (const size of [1, 1000, 100_000, 131_072, 131_073, 500_000]) {
    const payload = deflateRawSync(Buffer.alloc(size), { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
    assert.equal(bytesOf(await new Sink(zlibCodec(fresh)).inflate(payload, size)).length, size)
    assert.equal(await new Sink(zlibCodec(fresh)).inflate(payload, size - 1), 'too much', `${size}`)
  }
  // A second stream behind the first does not begin to count anew.
  const two = Buffer.concat([deflateRawSync(Buffer.alloc(600)), deflateRawSync(Buffer.alloc(600)), Buffer.from([0])])
  assert.equal(await new Sink(zlibCodec(fresh)).inflate(two, 1_199), 'too much')
  assert.equal(bytesOf(await new Sink(zlibCodec(fresh)).inflate(two, 1_200)).length, 1_200)
})

test('a bomb of 1 GiB costs no more than the limit and a chunk', async () => {
  const mebibyte = Buffer.alloc(1 << 20)
  const first = deflateRawSync(mebibyte, { finishFlush: constants.Z_SYNC_FLUSH })
  const bomb = Buffer.concat(Array.from({ length: 1024 }, () => first)).subarray(0, -4)
  assert.ok(bomb.length > 16_384)
  for (const payload of [bomb, bomb.subarray(0, 16_000)]) {
    const before = await memoryNow()
    let peak = 0
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().arrayBuffers)
    }, 1)
    const { arrayBuffers } = process.memoryUsage()
    assert.equal(await new Sink(zlibCodec(fresh)).inflate(payload, 1 << 20), 'too much')
    clearInterval(watch)
    assert.ok(peak - arrayBuffers < 4 << 20, `${peak - arrayBuffers} bytes at once`)
    assert.ok((await memoryNow()) - before < 1 << 20)
  }
  assert.equal(openJobs(), 0)
})

test('one codec serves all connections that keep no context, and those that do have their own', () => {
  assert.equal(zlibCodec(fresh), zlibCodec({ ...fresh }))
  assert.notEqual(zlibCodec(fresh), zlibCodec({ ...fresh, deflateWindowBits: 10 }))
  assert.notEqual(zlibCodec(fresh), zlibCodec(fresh, { level: 1 }))
  assert.notEqual(zlibCodec(takeover), zlibCodec(takeover))
  assert.notEqual(zlibCodec({ ...fresh, inflateTakeover: true }), zlibCodec({ ...fresh, inflateTakeover: true }))
})

test('connections that share a codec do not get each other\u2019s results', async () => {
  const sinks = Array.from({ length: 20 }, () => new Sink(zlibCodec(fresh)))
  const results = await Promise.all(sinks.map((sink, i) => sink.deflate(sample(20_000 + i, i))))
  const inflated = await Promise.all(sinks.map((sink, i) => sink.inflate(bytesOf(results[i] as Result))))
  for (const [i, result] of inflated.entries()) assert.deepEqual(bytesOf(result), sample(20_000 + i, i))
})

test('a connection that ends during its jobs hears no more of them, and leaves nothing', async () => {
  const large = sample(300_000, 1)
  const payload = deflateRawSync(large, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
  const sinks = Array.from({ length: 12 }, (_, i) => new Sink(zlibCodec(i % 2 === 0 ? fresh : takeover)))
  for (const sink of sinks) {
    void sink.deflate(large)
    void sink.inflate(payload)
  }
  assert.equal(openJobs(), 24)
  // Some wait and some run.
  await new Promise((resolve) => setImmediate(resolve))
  for (const sink of sinks) sink.codec.release(sink)
  assert.equal(openJobs(), 0)
  // The pool is free for others at once.
  const other = new Sink(zlibCodec(fresh))
  assert.deepEqual(bytesOf(await other.inflate(bytesOf(await other.deflate(large)))), large)
  assert.deepEqual(
    sinks.map((sink) => sink.results),
    sinks.map(() => 0),
  )
})

test('a connection with context takeover that waits holds its windows, and nothing before the first message', async () => {
  const codecs = Array.from({ length: 200 }, () => new Sink(zlibCodec(takeover)))
  const before = await memoryNow()
  for (const sink of codecs) {
    for (let i = 0; i < 3; i++) await sink.inflate(bytesOf(await sink.deflate(sample(10_000, i))))
  }
  const each = ((await memoryNow()) - before) / codecs.length
  assert.ok(each < 49_000, `${each} bytes each`)
  for (const sink of codecs) sink.codec.release(sink)
  const left = ((await memoryNow()) - before) / codecs.length
  assert.ok(left < 2_000, `${left} bytes left of each`)
})
