import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import * as zlib from 'node:zlib'
import { ProtocolError, type Fields } from '../http/index.ts'
import { collect, IncomingBody, responseFrom, type BodySource, type IncomingOwner, type Response } from '../web/index.ts'
import { acceptEncoding, decoded } from './decompress.ts'

const encoders: Record<string, (bytes: Uint8Array) => Uint8Array> = {
  gzip: (bytes) => zlib.gzipSync(bytes),
  'x-gzip': (bytes) => zlib.gzipSync(bytes),
  deflate: (bytes) => zlib.deflateSync(bytes),
  br: (bytes) => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }),
}
// A Node that has it may still not notice when it is cut; then it counts as unknown.
if (acceptEncoding.includes('zstd')) encoders['zstd'] = (bytes) => zlib.zstdCompressSync(bytes)

/** The receiving end of an exchange, with what was consumed and cancelled written down. */
class Owner implements IncomingOwner {
  consumed = 0
  cancelled: unknown[] = []
  readonly body: IncomingBody = new IncomingBody(this, -1)
  onBodyWanted(): void {}
  onBodyConsumed(byteCount: number): void {
    this.consumed += byteCount
  }
  onBodyCancelled(reason: unknown): void {
    this.cancelled.push(reason)
  }
  push(bytes: Uint8Array): void {
    this.body.push(bytes, 0, bytes.length)
  }
}

/** Content that has arrived whole. */
function arrived(bytes: Uint8Array): Owner {
  const owner = new Owner()
  owner.push(bytes)
  owner.body.end()
  return owner
}

const coded = (names: string): Fields => ['content-type', 'text/plain', 'content-encoding', names]

/** Reads chunk by chunk, so that `take` is not used. */
async function readAll(source: BodySource): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for (;;) {
    const chunk = await source.read()
    if (chunk === undefined) return Buffer.concat(chunks)
    chunks.push(chunk)
  }
}

const small = Buffer.from('hello, '.repeat(50))
const large = Buffer.concat([randomBytes(300_000), Buffer.alloc(1_500_000, 'abcdefgh'), randomBytes(200_000)])

for (const [name, encode] of Object.entries(encoders)) {
  test(`${name}: what arrived whole is there at once`, () => {
    const source = decoded(arrived(encode(small)).body, coded(name))
    assert.deepEqual(Buffer.from(source.take() as Uint8Array), small)
    assert.equal(source.read(), undefined)
    assert.equal(source.take(), undefined)
  })

  test(`${name}: streamed in small pieces, read slowly`, async () => {
    const owner = new Owner()
    const source = decoded(owner.body, coded(name))
    const bytes = encode(large)
    const reading = readAll(source)
    for (let at = 0; at < bytes.length; at += 7_777) {
      owner.push(bytes.subarray(at, at + 7_777))
      if (at % 5 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    owner.body.end(['x-sum', '1'])
    assert.ok((await reading).equals(large))
    assert.equal(owner.consumed, bytes.length)
    assert.deepEqual(source.trailers, ['x-sum', '1'])
    assert.equal(source.read(), undefined, 'the end stays the end')
  })

  test(`${name}: too much to decode in one go is streamed`, async () => {
    const plain = Buffer.alloc(4_000_000, 'x')
    const source = decoded(arrived(encode(plain)).body, coded(name))
    assert.equal(source.take(), undefined)
    assert.ok((await readAll(source)).equals(plain))
  })

  test(`${name}: cut content is an error, not an end`, async () => {
    const bytes = encode(small)
    const source = decoded(arrived(bytes.subarray(0, bytes.length - 6)).body, coded(name))
    await assert.rejects(
      collect(source),
      (error: unknown) => error instanceof ProtocolError && /malformed/.test(error.message) && error.cause instanceof Error,
    )
    assert.throws(() => source.read(), ProtocolError)
  })

  test(`${name}: garbage cancels what stands behind it`, async () => {
    const owner = new Owner()
    const source = decoded(owner.body, coded(name))
    owner.push(Buffer.from([0x78, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]))
    await assert.rejects(readAll(source), ProtocolError)
    assert.equal(owner.cancelled.length, 1)
  })

  test(`${name}: no bytes are no error`, async () => {
    assert.equal((decoded(arrived(new Uint8Array(0)).body, coded(name)).take() as Uint8Array).length, 0)
    assert.equal((await readAll(decoded(arrived(new Uint8Array(0)).body, coded(name)))).length, 0)
  })
}

test('deflate without the zlib wrapping', async () => {
  const bytes = zlib.deflateRawSync(small)
  assert.deepEqual(Buffer.from(decoded(arrived(bytes).body, coded('deflate')).take() as Uint8Array), small)
  assert.deepEqual(await readAll(decoded(arrived(bytes).body, coded('deflate'))), small)
})

test('several gzip members are one content', async () => {
  const bytes = Buffer.concat([zlib.gzipSync('one '), zlib.gzipSync('two')])
  assert.equal((await readAll(decoded(arrived(bytes).body, coded('gzip')))).toString(), 'one two')
})

test('a list is undone from its end, in one field or several, in any case', async () => {
  const bytes = zlib.brotliCompressSync(zlib.gzipSync(small))
  for (const fields of [coded('gzip, br'), coded('GZIP , identity,Br'), ['content-encoding', 'gzip', 'x', 'y', 'content-encoding', 'br']]) {
    assert.deepEqual(Buffer.from(decoded(arrived(bytes).body, fields).take() as Uint8Array), small)
    assert.deepEqual(await readAll(decoded(arrived(bytes).body, fields)), small)
  }
})

test('unknown codings leave the content as it is', () => {
  for (const names of ['identity', 'compress', 'gzip, sdch', '']) {
    const { body } = arrived(small)
    assert.equal(decoded(body, coded(names)), body, names)
  }
})

test('an octet that is no white space makes another coding of a name', () => {
  const { body } = arrived(small)
  assert.equal(decoded(body, coded('gzip\xa0')), body)
})

test('a tower of codings is refused', () => {
  assert.throws(() => decoded(arrived(small).body, coded(Array(3).fill('gzip').join(','))), ProtocolError)
})

test('a bomb is not collected in memory, by whatever way, but can be streamed', async () => {
  const bomb = zlib.gzipSync(zlib.gzipSync(Buffer.alloc(3_000_000)))
  const fields = coded('gzip, gzip')
  const limited = (): BodySource => decoded(arrived(bomb).body, fields, 1_000_000)
  const tooLarge = { code: 'CONTENT_TOO_LARGE' }
  await assert.rejects(collect(limited()), tooLarge)
  const response = (): Response => responseFrom(200, 'OK', fields, limited(), 'http://a.test/', false)
  for (const method of ['text', 'bytes', 'json', 'blob', 'arrayBuffer', 'formData'] as const)
    await assert.rejects(response()[method](), tooLarge)
  // Made a stream, and cloned: it is the same content.
  const seen = response()
  assert.ok(seen.body)
  await assert.rejects(seen.text(), tooLarge)
  const clone = response().clone()
  await assert.rejects(clone.clone().text(), tooLarge)
  assert.equal((await readAll(limited())).length, 3_000_000)
  assert.equal((await collect(decoded(arrived(bomb).body, fields, 3_000_000))).length, 3_000_000)
  assert.equal((await collect(decoded(arrived(bomb).body, fields))).length, 3_000_000)
  // What is small enough to be decoded in one go is measured too.
  await assert.rejects(collect(decoded(arrived(zlib.gzipSync(Buffer.alloc(11))).body, coded('gzip'), 10)), tooLarge)
  assert.equal((await collect(decoded(arrived(zlib.gzipSync(Buffer.alloc(10))).body, coded('gzip'), 10))).length, 10)
})

test('a bomb is inflated no faster than it is read', async () => {
  const bytes = zlib.gzipSync(Buffer.alloc(200_000_000))
  const owner = new Owner()
  const source = decoded(owner.body, coded('gzip'))
  owner.push(bytes.subarray(0, 60_000))
  const before = process.memoryUsage().arrayBuffers
  assert.ok((await source.read()) !== undefined)
  await new Promise((resolve) => setTimeout(resolve, 50))
  // 60,000 bytes stand for some 58 MB.
  assert.ok(process.memoryUsage().arrayBuffers - before < 5_000_000)
  source.cancel(undefined)
})

test('cancel ends a waiting read with the reason, and the source with it', async () => {
  const owner = new Owner()
  const source = decoded(owner.body, coded('gzip'))
  owner.push(zlib.gzipSync(small).subarray(0, 12))
  const reading = readAll(source)
  const reason = new Error('enough')
  setImmediate(() => source.cancel(reason))
  await assert.rejects(reading, (error) => error === reason)
  assert.deepEqual(owner.cancelled, [reason])
  assert.throws(
    () => source.read(),
    (error) => error === reason,
  )
})

test('what cuts the content cuts what is decoded', async () => {
  const owner = new Owner()
  const source = decoded(owner.body, coded('br'))
  const reading = readAll(source)
  const error = new Error('reset')
  owner.body.fail(error)
  await assert.rejects(reading, (thrown) => thrown === error)
})

test('chunks share no memory, so they can be transferred away', async () => {
  const source = decoded(arrived(zlib.gzipSync(large)).body, coded('gzip'))
  let length = 0
  for (;;) {
    const chunk = await source.read()
    if (chunk === undefined) break
    length += chunk.length
    structuredClone(chunk.buffer, { transfer: [chunk.buffer as ArrayBuffer] })
  }
  assert.equal(length, large.length)
})
