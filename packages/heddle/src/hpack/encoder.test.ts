import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Outbox } from '../bytes/index.ts'
import { SectionRole } from '../fieldcode/index.ts'
import { Head, requestHead, responseHead, UsageError } from '../http/index.ts'
import { Decoder } from './decoder.ts'
import { Encoder } from './encoder.ts'

const limits = { maxFieldLines: 100, maxFieldSectionSize: 65_536, maxFieldLineSize: 16_384 }

function encoded(write: (out: Outbox) => void): Buffer {
  const out = new Outbox(Buffer.alloc(0), 1 << 20)
  write(out)
  return Buffer.from(out.buffer.subarray(0, out.length))
}

const response = (encoder: Encoder, head: Head, date = '', omitLength = false): Buffer =>
  encoded((out) => encoder.writeResponse(head, date, omitLength, out))

function fieldsOf(decoder: Decoder, block: Buffer, role: SectionRole = SectionRole.Response): readonly string[] | undefined {
  return decoder.decode(block, 0, block.length, role)?.fields
}

test('a head that comes again costs an octet for each line, and from the third time on a copy of them', () => {
  const encoder = new Encoder()
  const blocks = Array.from({ length: 5 }, () => response(encoder, responseHead(200, ['server', 'heddle', 'x-a', 'b'])))
  assert.ok((blocks[0]?.length ?? 0) > 10)
  for (const block of blocks.slice(1)) assert.equal(block.toString('hex'), '88bfbe')
  const decoder = new Decoder(limits)
  for (const block of blocks) assert.deepEqual(fieldsOf(decoder, block), ['server', 'heddle', 'x-a', 'b'])
})

test('a remembered block is not used once the table has changed', () => {
  const encoder = new Encoder()
  const decoder = new Decoder(limits)
  const head = responseHead(200, ['x-a', 'b'])
  for (let i = 0; i < 40; i++) {
    assert.deepEqual(fieldsOf(decoder, response(encoder, head)), ['x-a', 'b'])
    if (i % 7 === 6)
      assert.deepEqual(fieldsOf(decoder, response(encoder, responseHead(200, ['x-other', String(i)]))), ['x-other', String(i)])
  }
})

test('heads that differ in one word are told apart', () => {
  const encoder = new Encoder()
  const decoder = new Decoder(limits)
  const heads = [
    requestHead('GET', 'http', 'a.test', '/'),
    requestHead('GET', 'http', 'a.test', '/x'),
    requestHead('GET', 'http', 'b.test', '/'),
    requestHead('GET', 'https', 'a.test', '/'),
    requestHead('HEAD', 'http', 'a.test', '/'),
    requestHead('GET', 'http', 'a.test', '/', ['x', 'y']),
    requestHead('GET', 'http', 'a.test', '/', ['x', 'z']),
    requestHead('CONNECT', 'http', 'a.test', '/', [], 'websocket'),
    requestHead('CONNECT', 'http', 'a.test', '/', [], 'connect-udp'),
  ]
  for (let round = 0; round < 3; round++) {
    for (const head of heads) {
      for (let times = 0; times < 3; times++) {
        const block = encoded((out) => encoder.writeRequest(head, out))
        assert.deepEqual(decoder.decode(block, 0, block.length, SectionRole.Request)?.head, head)
      }
    }
  }
})

test('the date is part of what is remembered', () => {
  const encoder = new Encoder()
  const decoder = new Decoder(limits)
  const head = responseHead(200, ['x', 'y'])
  for (const date of ['one', 'one', 'one', 'two', 'two', 'two', 'one']) {
    assert.deepEqual(fieldsOf(decoder, response(encoder, head, date)), ['x', 'y', 'date', date])
  }
  assert.deepEqual(fieldsOf(decoder, response(encoder, responseHead(200, ['date', 'own']), 'one')), ['date', 'own'])
})

test('a size update goes in front of a remembered block', () => {
  const encoder = new Encoder()
  const decoder = new Decoder(limits)
  const head = responseHead(200, ['content-type', 'text/plain'])
  for (const size of [4096, 0, 4096, 100]) {
    decoder.allowTableSize(size)
    encoder.allowTableSize(size)
    for (let times = 0; times < 4; times++) assert.deepEqual(fieldsOf(decoder, response(encoder, head)), head.fields)
  }
})

test('fields of the connection are left out, and te but for trailers', () => {
  const encoder = new Encoder()
  const fields = ['connection', 'x', 'te', 'gzip', 'host', 'a', 'upgrade', 'h2c', 'http2-settings', 'x', 'te', 'trailers', 'x', 'y']
  assert.deepEqual(fieldsOf(new Decoder(limits), response(encoder, responseHead(200, fields))), ['te', 'trailers', 'x', 'y'])
})

test('a length is left out where there is no content, and nothing of that is remembered', () => {
  const encoder = new Encoder()
  const decoder = new Decoder(limits)
  const head = responseHead(204, ['content-length', '0', 'x', 'y'])
  for (let times = 0; times < 3; times++) {
    assert.deepEqual(fieldsOf(decoder, response(encoder, head, '', true)), ['x', 'y'])
    assert.deepEqual(fieldsOf(decoder, response(encoder, head)), ['content-length', '0', 'x', 'y'])
  }
})

test('what cannot be sent is refused before anything of it is written, and the table stays as it was', () => {
  const encoder = new Encoder()
  const decoder = new Decoder(limits)
  for (const bad of [
    ['x', 'y', 'Bad', 'z'],
    ['x-new', 'value', 'x', 'a\r\nb'],
    ['x-new', 'value', 'odd'],
    ['', 'x'],
  ]) {
    const out = new Outbox(Buffer.alloc(0), 1 << 20)
    assert.throws(() => encoder.writeResponse(responseHead(200, bad), '', false, out), UsageError)
    assert.throws(() => encoder.writeTrailers(bad, out), UsageError)
    assert.throws(() => encoder.writeRequest(requestHead('GET', 'http', 'a', '/', bad), out), UsageError)
    assert.equal(out.length, 0)
  }
  assert.deepEqual(fieldsOf(decoder, response(encoder, responseHead(200, ['x-new', 'value']))), ['x-new', 'value'])
})

test('blocks with secrets are not remembered', () => {
  const encoder = new Encoder()
  const head = requestHead('GET', 'https', 'a.test', '/', ['authorization', 'Bearer abc'])
  const blocks = Array.from({ length: 4 }, () => encoded((out) => encoder.writeRequest(head, out)))
  const decoder = new Decoder(limits)
  for (const block of blocks) {
    // Never indexed: name 23 of the static table, as 0001xxxx.
    assert.ok(block.includes(Buffer.from([0x1f, 0x08])))
    assert.deepEqual(fieldsOf(decoder, block, SectionRole.Request), ['authorization', 'Bearer abc'])
  }
})
