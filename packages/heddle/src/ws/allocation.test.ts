import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getHeapStatistics } from 'node:v8'
import { isUtf8 } from 'node:buffer'
import type { Exchange } from '../http/index.ts'
import { binary, fragments, frame, ping, sample, text } from '../testing/websocket/case.ts'
import { Nowhere } from '../testing/websocket/nowhere.ts'
import { encodePeerFrame, type PeerFrame } from '../testing/websocket/peer-frame.ts'
import { encodeFrame, WebSocketConnection, type MessageHandler, type PreparedMessage } from './index.ts'

class Counter implements MessageHandler {
  messages = 0
  onMessage(): void {
    this.messages++
  }
  onPing(): void {
    this.messages++
  }
  onPong(): void {}
  onSent(): void {}
  onPeerClose(): void {}
  onClose(): void {}
}

interface Bench {
  readonly tunnel: Nowhere
  readonly counter: Counter
  readonly connection: WebSocketConnection
}

function bench(role: 'client' | 'server'): Bench {
  const tunnel = new Nowhere()
  const counter = new Counter()
  const connection = new WebSocketConnection(tunnel as unknown as Exchange, counter, { role, maskKey: () => 0x1234_5678, isUtf8 })
  return { tunnel, counter, connection }
}

/**
 * Bytes the engine allocates for each of `count` things that a call of `run` does, once its code is compiled: the least
 * of some rounds. The compiler works in a thread of its own, which on a busy machine may take its time: rounds go on
 * until one is within `budget`, or for 20 s.
 */
function allocatedEach(count: number, budget: number, run: () => void): number {
  const rounds = 20
  for (let i = 0; i < rounds * 4; i++) run()
  let least = Infinity
  const end = performance.now() + 20_000
  for (let attempt = 0; attempt < 5 || (least > budget && performance.now() < end); attempt++) {
    const cost = asking()
    const before = total()
    for (let i = 0; i < rounds; i++) run()
    least = Math.min(least, (total() - before - cost) / (rounds * count))
  }
  return least
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

test('what is allocated is seen', () => {
  let kept: unknown
  const each = allocatedEach(1_000, 100, () => {
    for (let i = 0; i < 1_000; i++) kept = [i]
  })
  assert.deepEqual(kept, [999])
  assert.ok(each > 20 && each < 100, `${each} bytes an array of one`)
})

function reading(name: string, budget: number, role: 'client' | 'server', frames: readonly PeerFrame[], messages: number): void {
  void test(`reading ${name}: at most ${budget} bytes each`, () => {
    const { counter, connection, tunnel } = bench(role)
    const octets = Buffer.concat(Array.from({ length: 1_000 }, () => frames.map((each) => encodePeerFrame(each, role === 'server'))).flat())
    // As a socket gives it: in reads of 64 KiB, which masks are taken off from in place.
    const input = Buffer.alloc(65_536)
    const run = (): void => {
      for (let at = 0; at < octets.length; at += 65_536) {
        const count = octets.copy(input, 0, at, at + 65_536)
        connection.onData(input, 0, count, false)
      }
      tunnel.report()
    }
    const each = allocatedEach(1_000 * frames.length, budget, run)
    assert.ok(counter.messages >= 100_000 * messages, `${counter.messages} messages`)
    assert.ok(each <= budget, `${each} bytes a frame`)
  })
}

reading('binary of 64', 2, 'server', [binary(sample(64))], 1)
reading('binary of 1,000', 2, 'server', [binary(sample(1_000))], 1)
reading('text of 64', 2, 'client', [text(sample(64))], 1)
// Of text a view is taken for `isUtf8`.
reading('text of 1,000', 150, 'client', [text(sample(1_000))], 1)
reading('text that is not ASCII', 2, 'client', [text('κόσμε 🙂 世界')], 1)
reading('messages in fragments', 20, 'client', fragments(2, sample(100), sample(100), sample(100)), 1)
// Each takes a view, to be answered from.
reading('Pings', 200, 'client', [frame(0x82, 'x'), ping('abc')], 2)

function writing(
  name: string,
  budget: number,
  role: 'client' | 'server',
  send: (connection: WebSocketConnection) => void,
  count = 1_000,
): void {
  void test(`writing ${name}: at most ${budget} bytes each`, () => {
    const { connection, tunnel } = bench(role)
    const run = (): void => {
      for (let i = 0; i < count; i++) {
        send(connection)
        if ((i & 31) === 31) tunnel.report()
      }
      tunnel.report()
    }
    const each = allocatedEach(count, budget, run)
    assert.equal(connection.messagesSent, connection.messagesAccepted)
    assert.ok(connection.messagesSent >= count * 100)
    assert.ok(each <= budget, `${each} bytes a frame`)
  })
}

const small = sample(64)
const large = sample(100_000)
const ascii = sample(64).toString()
const words = 'κόσμε 🙂 世界 '.repeat(10)
const prepared: PreparedMessage = {
  binary: true,
  payload: small,
  frame: encodeFrame(small, true, false),
  compressedPayload: () => undefined,
  compressedFrame: () => undefined,
}
for (const role of ['server', 'client'] as const) {
  writing(`binary of 64, ${role}`, 2, role, (connection) => void connection.sendBytes(small, true, false, false))
  writing(`binary of 100,000, ${role}`, 20, role, (connection) => void connection.sendBytes(large, true, false, false), 50)
  writing(`binary of 100,000 that is owned, ${role}`, 20, role, (connection) => void connection.sendBytes(large, true, false, true), 50)
  writing(`text of 64, ${role}`, 2, role, (connection) => void connection.sendText(ascii, false))
  writing(`text that is not ASCII, ${role}`, 2, role, (connection) => void connection.sendText(words, false))
  writing(`a prepared message, ${role}`, 2, role, (connection) => void connection.sendPrepared(prepared, true))
}
