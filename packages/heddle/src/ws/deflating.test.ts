import assert from 'node:assert/strict'
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib'
import { test } from 'node:test'
import { CancelledError, CancelReason } from '../http/index.ts'
import { deflated, frame, hex, sample, text, utf8 } from '../testing/websocket/case.ts'
import type { ReceivedFrame } from '../testing/websocket/peer-frame.ts'
import { allOfDeflate, Rig, type RigOptions } from '../testing/websocket/rig.ts'
import { encodeFrame } from './index.ts'
import type { PreparedMessage } from './message-handler.ts'

/** Work of the codec that is not done yet. */
class Jobs {
  readonly list: (() => void)[] = []
  readonly schedule = (run: () => void): void => void this.list.push(run)

  next(): void {
    const job = this.list.shift()
    assert.ok(job !== undefined, 'the codec is at work')
    job()
  }
}

function lateRig(options: Partial<RigOptions> = {}): { rig: Rig; jobs: Jobs } {
  const jobs = new Jobs()
  return { jobs, rig: new Rig({ deflate: allOfDeflate, schedule: jobs.schedule, ...options }) }
}

/** What the payloads of a compressed message carry. */
function inflated(frames: readonly ReceivedFrame[]): string {
  const payload = Buffer.concat([...frames.map((each) => each.payload), hex('00 00 ff ff')])
  return inflateRawSync(payload, { finishFlush: constants.Z_SYNC_FLUSH }).toString()
}

test('one compressed message is one frame', () => {
  for (const role of ['client', 'server'] as const) {
    const rig = new Rig({ role, deflate: allOfDeflate })
    rig.connection.sendText('Hello'.repeat(100), true)
    const { frames } = rig
    assert.deepEqual(
      frames.map(({ fin, reserved, opcode }) => [fin, reserved, opcode]),
      [[true, 4, 1]],
    )
    assert.equal(inflated(frames), 'Hello'.repeat(100))
    assert.deepEqual(rig.faults, [])
  }
})

test('in frames of a size, only the first has RSV1', () => {
  const rig = new Rig({ deflate: allOfDeflate, fragmentSize: 10 })
  rig.connection.sendBytes(sample(60), true, true, false)
  const { frames } = rig
  assert.ok(frames.length > 3)
  assert.deepEqual(
    frames.map(({ fin, reserved, opcode }) => `${fin} ${reserved} ${opcode}`),
    frames.map((_, i) => `${i === frames.length - 1} ${i === 0 ? 4 : 0} ${i === 0 ? 2 : 0}`),
  )
  assert.equal(inflated(frames), sample(60).toString())
})

test('a message in parts is compressed as one', () => {
  const rig = new Rig({ deflate: allOfDeflate })
  const { connection } = rig
  connection.startMessage(false, true)
  for (const part of ['one ', 'two ', 'one ', '']) connection.sendPart(part, part === '')
  const { frames } = rig
  assert.deepEqual(
    frames.map(({ fin, reserved, opcode }) => `${fin} ${reserved} ${opcode}`),
    ['false 4 1', 'false 0 0', 'false 0 0', 'true 0 0'],
  )
  assert.equal(inflated(frames), 'one two one ')
})

test('short messages are not compressed, nor those that shall not be', () => {
  for (const [takeover, most] of [
    [true, 128],
    [false, 1_024],
  ] as const) {
    const deflate = takeover ? allOfDeflate : { ...allOfDeflate, serverNoContextTakeover: true }
    const rig = new Rig({ deflate, threshold: 'default' })
    rig.connection.sendText('a'.repeat(most - 1), true)
    rig.connection.sendText('a'.repeat(most), true)
    rig.connection.sendText('é'.repeat(most / 2), true)
    rig.connection.sendBytes(sample(most), true, true, false)
    rig.connection.sendBytes(sample(most), true, false, false)
    assert.deepEqual(
      rig.frames.map(({ reserved }) => reserved),
      [0, 4, 4, 4, 0],
    )
  }
})

test('a side that may not compress with so small a window sends as it is', () => {
  const rig = new Rig({ role: 'client', deflate: { ...allOfDeflate, clientMaxWindowBits: 8 } })
  rig.connection.sendText('Hello'.repeat(100), true)
  assert.deepEqual(
    rig.frames.map(({ reserved }) => reserved),
    [0],
  )
})

test('while the codec is at work, messages keep their order and control frames pass', () => {
  const { rig, jobs } = lateRig()
  const { connection } = rig
  connection.sendText('first', true)
  connection.sendText('second', false)
  const third = utf8('third')
  connection.sendBytes(third, false, true, false)
  third.fill(0x78)
  connection.sendText('fourth', false)
  connection.sendPing(utf8('ping'))
  assert.deepEqual(rig.sent, ['ping 4 70696e67'])
  assert.equal(jobs.list.length, 1)
  assert.equal(connection.bufferedAmount, 22)
  assert.equal(connection.messagesAccepted, 4)
  jobs.next()
  const first = rig.frames
  assert.equal(inflated(first.slice(0, 1)), 'first')
  assert.equal(first[1]?.payload.toString(), 'second')
  assert.equal(first.length, 2)
  assert.equal(connection.bufferedAmount, 22)
  rig.tunnel.transmit()
  assert.equal(connection.bufferedAmount, 11)
  jobs.next()
  const second = rig.frames
  assert.equal(second[1]?.payload.toString(), 'fourth')
  assert.equal(
    inflateRawSync(Buffer.concat([second[0]?.payload as Buffer, hex('00 00 ff ff')]), {
      finishFlush: constants.Z_SYNC_FLUSH,
      dictionary: utf8('first'),
    }).toString(),
    'third',
  )
  rig.tunnel.transmit()
  assert.equal(connection.messagesSent, 4)
  assert.equal(connection.bufferedAmount, 0)
  assert.deepEqual(rig.faults, [])
})

test('close waits for what was accepted before', () => {
  const { rig, jobs } = lateRig()
  rig.connection.sendText('first', true)
  rig.connection.sendText('second', true)
  rig.connection.close(1001, 'bye')
  assert.equal(rig.connection.sendText('third', true), false)
  assert.deepEqual(rig.sent, [])
  jobs.next()
  assert.equal(rig.frames.length, 1)
  jobs.next()
  assert.deepEqual(
    rig.frames.map(({ opcode }) => opcode),
    [1, 8],
  )
  assert.equal(jobs.list.length, 0)
})

test("the answer to the peer's Close waits for what was accepted before", () => {
  const { rig, jobs } = lateRig()
  rig.connection.sendText('first', true)
  rig.receive(frame(0x88, hex('03e8')))
  assert.deepEqual(rig.sent, [])
  assert.equal(rig.tunnel.ended, false)
  jobs.next()
  assert.deepEqual(
    rig.frames.map(({ opcode }) => opcode),
    [1, 8],
  )
  assert.equal(rig.tunnel.ended, true)
  rig.tunnel.receiveEnd()
  rig.tunnel.transmit()
  assert.deepEqual(rig.told, ['peer closes 1000 ""', 'over 1000 clean'])
})

test('a sender is held back while much waits for the codec, and told when it may go on', () => {
  const { rig, jobs } = lateRig({ limits: { maxQueuedBytes: 1_000 } })
  const told: string[] = []
  rig.program.on.onSent = (count, writable) => void told.push(`${count} ${writable}`)
  assert.equal(rig.connection.sendBytes(sample(600), true, true, false), true)
  assert.equal(rig.connection.sendBytes(sample(600), true, true, false), false)
  assert.equal(rig.connection.writable, false)
  rig.tunnel.transmit()
  assert.deepEqual(told, [])
  jobs.next()
  assert.deepEqual(told, ['0 true'])
  assert.equal(rig.connection.writable, true)
})

test('results that come when it is over change nothing', () => {
  for (const end of ['abort', 'reset', 'fault'] as const) {
    const { rig, jobs } = lateRig()
    rig.receive(frame(0xc1, deflated('one')))
    rig.connection.sendText('two', true)
    rig.connection.sendText('three', true)
    if (end === 'abort') rig.connection.abort(new CancelledError(CancelReason.Cancelled))
    else if (end === 'reset') rig.tunnel.close(new CancelledError(CancelReason.Cancelled))
    else rig.connection.codecFailed('deflate', new Error('of zlib'))
    rig.tunnel.transmit()
    rig.tunnel.take()
    const told = rig.told
    while (jobs.list.length > 0) jobs.next()
    assert.deepEqual(rig.sent, [], end)
    assert.deepEqual(rig.told, [], end)
    if (end !== 'fault') assert.deepEqual(told, ['over 1006 CANCELLED'])
    assert.equal(rig.connection.bufferedAmount, 8, 'what was lost is still counted')
    assert.deepEqual(rig.faults, [])
  }
})

test('a codec that fails to compress ends the connection with 1011', () => {
  const rig = new Rig({ deflate: allOfDeflate })
  rig.connection.codecFailed('deflate', new Error('of zlib'))
  assert.deepEqual(rig.sent, ['close 1011'])
  rig.tunnel.receiveEnd()
  rig.tunnel.transmit()
  assert.deepEqual(rig.told, ['failing', 'over 1006 HANDLER_FAILED'])
  assert.deepEqual(rig.program.error?.cause, new Error('of zlib'))
})

// ── Receiving ─────────────────────────────────────────────────────────────────────────────────────

test('while the codec inflates, input waits, no credit is given, and the order is kept', () => {
  const { rig, jobs } = lateRig()
  rig.receive(frame(0xc1, deflated('first')), text('second'), frame(0x89, 'ping'), frame(0xc2, deflated('third')))
  rig.receive(text('fourth'))
  assert.deepEqual(rig.told, [])
  assert.deepEqual(rig.sent, [])
  assert.equal(rig.tunnel.consumed, 0)
  jobs.next()
  assert.deepEqual(rig.told, ['text "first"', 'text "second"', 'ping 4 70696e67'])
  assert.deepEqual(rig.sent, ['pong 4 70696e67'])
  assert.equal(rig.tunnel.consumed, 0)
  jobs.next()
  assert.deepEqual(rig.told, ['binary 5 7468697264', 'text "fourth"'])
  assert.equal(rig.tunnel.consumed, rig.tunnel.delivered)
  assert.deepEqual(rig.faults, [])
})

test('the end of the tunnel waits for the messages before it', () => {
  const { rig, jobs } = lateRig()
  rig.receive(frame(0xc1, deflated('first')), frame(0x88, hex('03e8')))
  rig.tunnel.receiveEnd()
  rig.tunnel.transmit()
  assert.deepEqual(rig.told, [])
  jobs.next()
  rig.tunnel.transmit()
  assert.deepEqual(rig.told, ['text "first"', 'peer closes 1000 ""', 'over 1000 clean'])
})

test('a message that was inflated in a pause waits for its end', () => {
  const { rig, jobs } = lateRig()
  rig.receive(frame(0xc1, deflated('first')), text('second'))
  rig.connection.pause()
  jobs.next()
  assert.deepEqual(rig.told, [])
  rig.connection.resume()
  assert.deepEqual(rig.told, ['text "first"', 'text "second"'])
  assert.equal(rig.tunnel.consumed, rig.tunnel.delivered)
})

test('messages thrown away are not inflated', () => {
  const { rig, jobs } = lateRig()
  rig.receive(frame(0xc1, deflated('first')), frame(0xc1, deflated('second')), frame(0x89, ''))
  rig.connection.discardMessages()
  jobs.next()
  assert.equal(jobs.list.length, 0)
  assert.deepEqual(rig.told, ['ping 0 '])
  assert.equal(rig.tunnel.consumed, rig.tunnel.delivered)
})

test('the largest message may be incompressible', () => {
  const bytes = Buffer.alloc(100_000)
  for (let i = 0, state = 1; i < bytes.length; i++) bytes[i] = (state = (state * 48_271) % 2_147_483_647) >> 8
  const payload = deflated(bytes)
  assert.ok(payload.length > bytes.length)
  const rig = new Rig({ deflate: allOfDeflate, limits: { maxMessageSize: bytes.length } })
  let received = 0
  rig.program.on.onMessage = (_buffer, start, limit) => void (received = limit - start)
  rig.receive(frame(0xc2, payload))
  assert.equal(received, bytes.length)
})

// ── Prepared messages ─────────────────────────────────────────────────────────────────────────────

function prepare(message: string): PreparedMessage & { readonly asked: number[] } {
  const payload = utf8(message)
  const asked: number[] = []
  const compressedPayload = (windowBits: number): Buffer => {
    asked.push(windowBits)
    return Buffer.from(deflateRawSync(payload, { windowBits, finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4))
  }
  return {
    binary: false,
    payload,
    frame: encodeFrame(payload, false, false),
    compressedPayload,
    compressedFrame: (windowBits) => encodeFrame(compressedPayload(windowBits), false, true),
    asked,
  }
}

test('a prepared message is compressed by itself, and what follows does not refer to what was before it', () => {
  for (const role of ['client', 'server'] as const) {
    const rig = new Rig({ role, deflate: { ...allOfDeflate, serverMaxWindowBits: 12, clientMaxWindowBits: 12 } })
    const prepared = prepare('the same words for all '.repeat(10))
    rig.connection.sendText('the same words for all', true)
    rig.connection.sendPrepared(prepared, true)
    rig.connection.sendText('the same words for all', true)
    rig.connection.sendPrepared(prepared, false)
    const [, second, third, plain] = rig.frames
    assert.equal(inflated([second as ReceivedFrame]), 'the same words for all '.repeat(10))
    assert.equal(inflated([third as ReceivedFrame]), 'the same words for all')
    assert.equal(plain?.reserved, 0)
    assert.ok(prepared.asked.every((bits) => bits === 12))
  }
})

test('a prepared message waits for its turn', () => {
  const { rig, jobs } = lateRig()
  const prepared = prepare('for all '.repeat(10))
  rig.connection.sendText('first', true)
  rig.connection.sendPrepared(prepared, true)
  rig.connection.sendPrepared(prepared, false)
  assert.equal(rig.connection.bufferedAmount, 5 + 160)
  assert.deepEqual(rig.sent, [])
  jobs.next()
  const [, second, third] = rig.frames
  assert.equal(inflated([second as ReceivedFrame]), 'for all '.repeat(10))
  assert.equal(third?.payload.toString(), 'for all '.repeat(10))
  assert.deepEqual(rig.faults, [])
})
