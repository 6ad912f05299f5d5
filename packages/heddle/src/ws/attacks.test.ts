import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryNow } from '../testing/leaks.ts'
import { deflated, frame, hex, ping } from '../testing/websocket/case.ts'
import { encodePeerFrame } from '../testing/websocket/peer-frame.ts'
import { allOfDeflate, Rig } from '../testing/websocket/rig.ts'

/** A message of 16 MiB, of which `arrived` octets come. */
function begun(arrived: number): Buffer {
  return encodePeerFrame(frame(0x82, Buffer.alloc(arrived), { declared: 16n << 20n }), true)
}

test('a Ping flood by a peer that takes no Pong: few wait, one owed, then it is over', () => {
  const rig = new Rig()
  const pings = Array.from({ length: 100 }, (_, i) => ping(`${i}`))
  let rounds = 0
  while (!rig.tunnel.ended && rounds < 100) {
    rig.receive(...pings)
    rounds++
    assert.ok(rig.tunnel.waiting < 64 * 6 + 200, `${rig.tunnel.waiting} octets wait`)
  }
  // The first call uses up the 64; a thousand more may come in others.
  assert.equal(rounds, 12)
  const sent = rig.sent
  assert.equal(sent.length, 65)
  assert.equal(sent.at(-1), 'close 1008')
  assert.deepEqual(rig.told.slice(-1), ['failing'])
})

test('a Ping flood by a peer that takes its Pongs is answered, if not one by one', () => {
  const rig = new Rig()
  const pings = Array.from({ length: 10_000 }, () => ping('x'))
  for (let round = 0; round < 5; round++) {
    rig.receive(...pings)
    rig.tunnel.transmit()
    // The last of those that could not be answered.
    rig.tunnel.transmit()
    assert.equal(rig.sent.length, 65)
  }
  assert.equal(rig.tunnel.ended, false)
})

test('the last Ping of many is the one that is answered', () => {
  const rig = new Rig()
  rig.receive(...Array.from({ length: 500 }, (_, i) => ping(`${i}`)))
  rig.tunnel.transmit()
  const payloads = rig.frames.map(({ payload }) => payload.toString())
  assert.deepEqual(payloads, [...Array.from({ length: 64 }, (_, i) => `${i}`), '499'])
})

test('memory grows with what arrives, not with what is announced', async () => {
  const rigs = Array.from({ length: 1_000 }, () => new Rig())
  const octets = begun(1)
  const before = await memoryNow()
  for (const rig of rigs) rig.tunnel.receive(octets)
  const grown = (await memoryNow()) - before
  assert.ok(grown < 4 * 1_024 * 1_000, `${grown} bytes for 1,000 messages of 16 MiB of which one octet has come`)
  assert.equal(rigs.filter((rig) => rig.tunnel.ended).length, 0)
})

test('endless fragments of next to nothing end at the limit, and take no memory by the piece', () => {
  const rig = new Rig()
  rig.receive(frame(0x01, 'a'))
  const pieces = Array.from({ length: 1_000 }, () => frame(0x00))
  let count = 1
  while (!rig.tunnel.ended) {
    rig.receive(...pieces)
    count += 1_000
    assert.ok(count < 20_000)
  }
  assert.ok(count >= 16_384)
  assert.deepEqual(rig.sent, ['close 1009'])
})

test('a message that grows without end stops at the limit, before it is all there', () => {
  const rig = new Rig({ limits: { maxMessageSize: 100_000 } })
  rig.receive(frame(0x02, Buffer.alloc(60_000)))
  // Its header is enough.
  rig.tunnel.receive(encodePeerFrame(frame(0x00, '', { declared: 60_000n }), true))
  assert.deepEqual(rig.sent, ['close 1009'])
})

test('a deflate bomb is stopped while it is inflated', () => {
  const rig = new Rig({ deflate: allOfDeflate })
  const bomb = deflated(Buffer.alloc(100 * 1_024 * 1_024))
  assert.ok(bomb.length < 200_000)
  rig.receive(frame(0xc2, bomb))
  assert.deepEqual(rig.sent, ['close 1009'])
  assert.deepEqual(rig.told, ['failing'])
})

test('what the codec is told to stop at is the limit of the connection', () => {
  const asked: number[] = []
  const rig = new Rig({ deflate: allOfDeflate, limits: { maxMessageSize: 12_345 } })
  const { codec } = rig
  assert.ok(codec !== undefined)
  const { inflate } = codec
  codec.inflate = (sink, buffer, start, limit, kept, most) => {
    asked.push(most)
    inflate.call(codec, sink, buffer, start, limit, kept, most)
  }
  rig.receive(frame(0xc2, deflated(Buffer.alloc(12_345))))
  assert.deepEqual(rig.told.length, 1)
  rig.receive(frame(0xc2, deflated(Buffer.alloc(12_346))))
  assert.deepEqual(rig.sent, ['close 1009'])
  assert.deepEqual(asked, [12_345, 12_345])
})

test('a peer that goes on sending while its message is inflated gets no credit', () => {
  const jobs: (() => void)[] = []
  const rig = new Rig({ deflate: allOfDeflate, schedule: (run) => void jobs.push(run) })
  for (let i = 0; i < 50; i++) rig.receive(frame(0xc1, deflated('x'.repeat(1_000))))
  assert.equal(rig.tunnel.consumed, 0)
  assert.equal(jobs.length, 1, 'and one thing is done at a time')
})

test('text with a fault is refused in the middle of 16 MiB', () => {
  const rig = new Rig()
  rig.tunnel.receive(encodePeerFrame(frame(0x81, Buffer.concat([Buffer.alloc(5_000, 0x61), hex('c0')]), { declared: 16n << 20n }), true))
  assert.deepEqual(rig.sent, ['close 1007'])
})

test('connections that failed hold nothing of what came', async () => {
  const rigs = Array.from({ length: 200 }, () => new Rig())
  const octets = begun(60_000)
  const behind = Buffer.alloc(30_000)
  const before = await memoryNow()
  for (const rig of rigs) rig.tunnel.receive(octets)
  const held = (await memoryNow()) - before
  for (const rig of rigs) rig.connection.codecFailed('deflate', undefined)
  for (const rig of rigs) rig.tunnel.receive(behind)
  const left = (await memoryNow()) - before
  assert.ok(held > 12_000_000, `${held} bytes were held`)
  // The pool of the process keeps 64 buffers of 64 KiB for others.
  assert.ok(left < 64 * 65_536 + 1_500_000, `${left} bytes are held`)
  assert.equal(rigs.filter((rig) => rig.tunnel.ended).length, 200)
})
