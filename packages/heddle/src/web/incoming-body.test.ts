import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { collect, IncomingBody, streamFrom, type IncomingOwner } from './index.ts'

class Owner implements IncomingOwner {
  wanted = 0
  consumed = 0
  cancelled: unknown[] = []
  onBodyWanted(): void {
    this.wanted++
  }
  onBodyConsumed(byteCount: number): void {
    this.consumed += byteCount
  }
  onBodyCancelled(reason: unknown): void {
    this.cancelled.push(reason)
  }
}

function feed(body: IncomingBody, bytes: Uint8Array): void {
  // In a larger buffer that is overwritten at once, as the driver's is.
  const buffer = Buffer.alloc(bytes.length + 20, 0xee)
  buffer.set(bytes, 10)
  body.push(buffer, 10, 10 + bytes.length)
  buffer.fill(0xdd)
}

const chunks = fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 30 })

test('what is fed comes out, in any interleaving with reads, and is credited as it is read', async () => {
  await fc.assert(
    fc.asyncProperty(chunks, fc.array(fc.boolean()), fc.boolean(), async (fed, reads, known) => {
      const whole = Buffer.concat(fed)
      const owner = new Owner()
      const body = new IncomingBody(owner, known ? whole.length : -1)
      const got: Uint8Array[] = []
      let waiting: Promise<void> | undefined
      for (const [i, chunk] of fed.entries()) {
        if (reads[i] === true && waiting === undefined) {
          const read = body.read()
          if (read instanceof Promise) {
            waiting = read.then((bytes) => {
              if (bytes !== undefined) got.push(bytes)
              waiting = undefined
            })
          } else got.push(read as Uint8Array)
        }
        feed(body, chunk)
        if (reads[i + 1] === true) await Promise.resolve()
        assert.equal(owner.consumed + body.held, Buffer.concat(fed.slice(0, i + 1)).length)
      }
      body.end()
      await waiting
      const rest = await collect(body)
      assert.deepEqual(Buffer.concat([...got, rest]), whole)
      assert.equal(owner.consumed, whole.length)
    }),
  )
})

test('a chunk given away is never written to again', () => {
  const body = new IncomingBody(new Owner(), 6)
  feed(body, Buffer.from('ab'))
  const first = body.read() as Uint8Array
  feed(body, Buffer.from('cd'))
  feed(body, Buffer.from('ef'))
  assert.equal(Buffer.from(first).toString(), 'ab')
  assert.equal(Buffer.from(body.read() as Uint8Array).toString(), 'cdef')
})

test('single bytes do not cost an array each', () => {
  const body = new IncomingBody(new Owner(), -1)
  for (let i = 0; i < 65_536; i++) feed(body, Buffer.from([i & 0xff]))
  let count = 0
  let length = 0
  body.end()
  for (let chunk = body.read() as Uint8Array | undefined; chunk !== undefined; chunk = body.read() as Uint8Array | undefined) {
    for (const byte of chunk) assert.equal(byte, length++ & 0xff)
    count++
  }
  assert.equal(length, 65_536)
  assert.ok(count < 20, `${count} arrays`)
})

test('a small message of known length needs one array', () => {
  const body = new IncomingBody(new Owner(), 4)
  feed(body, Buffer.from('ab'))
  feed(body, Buffer.from('cd'))
  body.end()
  const whole = body.take() as Uint8Array
  assert.equal(Buffer.from(whole).toString(), 'abcd')
  assert.equal(whole.buffer.byteLength, 4)
})

test('the first read is announced once, before it waits', async () => {
  const owner = new Owner()
  const body = new IncomingBody(owner, -1)
  const read = body.read()
  assert.equal(owner.wanted, 1)
  feed(body, Buffer.from('x'))
  await read
  void body.read()
  assert.equal(owner.wanted, 1)
})

test('a body that has arrived is taken whole, and counts as read', () => {
  const owner = new Owner()
  const body = new IncomingBody(owner, -1)
  feed(body, Buffer.from('ab'))
  assert.equal(body.take(), undefined)
  feed(body, Buffer.from('cd'))
  body.end(['t', '1'])
  assert.equal(Buffer.from(body.take() as Uint8Array).toString(), 'abcd')
  assert.equal(owner.consumed, 4)
  assert.equal(body.read(), undefined)
  assert.deepEqual(body.trailers, ['t', '1'])
})

test('a cut body rejects the read that waits, and every later one', async () => {
  const body = new IncomingBody(new Owner(), -1)
  const error = new Error('cut')
  const read = body.read()
  body.fail(error)
  await assert.rejects(read as Promise<unknown>, error)
  assert.throws(() => body.read(), error)
  body.end()
  assert.throws(() => body.read(), error)
})

test('bytes that arrived before the cut are dropped', () => {
  const body = new IncomingBody(new Owner(), -1)
  feed(body, Buffer.from('half'))
  body.fail(new Error('cut'))
  assert.equal(body.held, 0)
  assert.throws(() => body.read(), /cut/)
})

test('cancel tells the owner once and rejects later reads', () => {
  const owner = new Owner()
  const body = new IncomingBody(owner, -1)
  body.cancel('why')
  body.cancel('again')
  feed(body, Buffer.from('late'))
  body.end()
  assert.deepEqual(owner.cancelled, ['why'])
  assert.equal(body.held, 0)
  assert.throws(
    () => body.read(),
    (reason) => reason === 'why',
  )
})

test('cancel after the end gives the credit of what was not read', () => {
  const owner = new Owner()
  const body = new IncomingBody(owner, -1)
  feed(body, Buffer.from('abc'))
  body.end()
  body.cancel(undefined)
  assert.equal(owner.consumed, 3)
  assert.deepEqual(owner.cancelled, [])
})

test('a stream over it reads only when it is read, one chunk at a time', async () => {
  const owner = new Owner()
  const body = new IncomingBody(owner, -1)
  const stream = streamFrom(body)
  feed(body, Buffer.from('ab'))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(owner.consumed, 0)
  const reader = stream.getReader()
  assert.equal(Buffer.from((await reader.read()).value as Uint8Array).toString(), 'ab')
  assert.equal(owner.consumed, 2)
  feed(body, Buffer.from('cd'))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(owner.consumed, 2)
  await reader.cancel('enough')
  assert.deepEqual(owner.cancelled, ['enough'])
})

test('a stream over it serves readers that bring their own buffer, to the end', async () => {
  const body = new IncomingBody(new Owner(), -1)
  const reader = streamFrom(body).getReader({ mode: 'byob' })
  feed(body, Buffer.from('abc'))
  const first = await reader.read(new Uint8Array(2))
  assert.equal(Buffer.from(first.value as Uint8Array).toString(), 'ab')
  const second = await reader.read(new Uint8Array(2))
  assert.equal(Buffer.from(second.value as Uint8Array).toString(), 'c')
  const last = reader.read(new Uint8Array(2))
  body.end()
  assert.equal((await last).done, true)
})

test('arrived gives the trailers, or what cut the content', async () => {
  const whole = new IncomingBody(new Owner(), -1)
  const arrived = whole.arrived()
  whole.end(['a', '1'])
  assert.deepEqual(await arrived, ['a', '1'])
  const cut = new IncomingBody(new Owner(), -1)
  const rejected = cut.arrived()
  cut.fail(new Error('cut'))
  await assert.rejects(rejected, /cut/)
})
