import assert from 'node:assert/strict'
import { responseHead } from '../http/index.ts'
import { clientScript, getFields, getHead, serverScript, type Http3Peer, type PeerStream } from '../testing/h3-peer.ts'
import { recordingHandler, RecordingConnection } from '../testing/recording.ts'
import type { Random } from '../testing/random.ts'
import { worldTest } from '../testing/seeds.ts'
import { literalSection } from './debug-fields.ts'
import { longFrameHeader, writeDebugFrame, type DebugFrame } from './debug-frame.ts'

const types = [0, 0, 0, 1, 1, 3, 4, 5, 7, 0xd, 0x21, 0x40, 2, 6, 0xf0700, 0xf0701]

/** Octets that look like frames, or do not. */
function nonsense(random: Random): Uint8Array {
  const roll = random.fraction()
  if (roll < 0.1) return random.bytes(random.length(50))
  if (roll < 0.15) return longFrameHeader(random.pick(types), random.pick([0, 1, 100, 2 ** 30, 2 ** 62 - 512]))
  const frame = frameOf(random)
  const bytes = Buffer.from(writeDebugFrame(frame))
  if (random.chance(0.2)) bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255)
  return random.chance(0.1) ? bytes.subarray(0, random.integer(0, bytes.length)) : bytes
}

function frameOf(random: Random): DebugFrame {
  const id = random.pick([0, 1, 3, 4, 8, 400, 2 ** 40])
  return random.pick<DebugFrame>([
    { type: 'DATA', data: random.bytes(random.length(300)) },
    {
      type: 'HEADERS',
      block: literalSection(random.pick([getFields, [':status', '200'], [':status', '103'], ['a', 'b'], ['content-length', '5']])),
    },
    { type: 'HEADERS', block: random.bytes(random.integer(0, 10)) },
    { type: 'SETTINGS', settings: [[random.integer(0, 40), random.integer(0, 3)]] },
    { type: 'GOAWAY', id },
    { type: 'MAX_PUSH_ID', id },
    { type: 'CANCEL_PUSH', id },
    { type: 'PRIORITY_UPDATE', id, value: random.pick(['u=1', 'i', '', '\u00ff;;,']) },
    { type: 'UNKNOWN', frameType: random.pick(types), payload: random.bytes(random.length(100)) },
  ])
}

function attack(peer: Http3Peer, random: Random, streams: PeerStream[]): void {
  if (streams.length === 0 || random.chance(0.2)) {
    const isOneWay = random.chance(0.4)
    const stream = peer.open(!isOneWay)
    streams.push(stream)
    if (isOneWay) stream.sendBytes(Uint8Array.of(random.pick([0, 2, 3, 0x21, 1])))
  }
  const stream = random.pick(streams)
  const roll = random.fraction()
  if (roll < 0.05) stream.quic?.reset(0x10c)
  else if (roll < 0.1) stream.quic?.stopSending(0x10c)
  else if (!stream.ended) {
    const end = random.chance(0.1)
    stream.sendBytes(nonsense(random), end)
    if (end) streams.splice(streams.indexOf(stream), 1)
  }
}

worldTest(
  'a server survives whatever a client says: nothing throws, no handler is called out of order, nothing is left',
  { seeds: 300 },
  (world) => {
    const { random } = world
    const handler = new RecordingConnection({
      onExchange(exchange) {
        const recording = recordingHandler()
        world.after(random.integer(0, 10), () => {
          if (random.chance(0.2)) exchange.discard()
          if (recording.closed || random.chance(0.2)) return
          exchange.sendHead(responseHead(200), false)
          exchange.sendData(Buffer.from('answer'), 0, 6, random.chance(0.8))
        })
        return recording
      },
    })
    const { peer, engine, faults } = serverScript(world, { handler, handshake: random.chance(0.8) })
    const streams: PeerStream[] = []
    for (let i = 0; i < 60 && peer.error === undefined; i++) {
      attack(peer, random, streams)
      if (random.chance(0.5)) world.advance(random.integer(0, 5))
      assert.ok(engine.receiver.pinned < 1_000_000 && engine.sender.queued < 1_000_000)
    }
    peer.close(0x100)
    world.run()
    world.advance(10)
    assert.deepEqual([...faults, ...handler.faults, ...handler.exchanges.flatMap((recording) => recording.faults)], [])
    assert.equal(handler.closed, true)
    assert.equal(engine.openExchanges, 0)
    assert.equal(engine.receiver.pinned, 0)
    assert.equal(engine.sender.queued, 0)
    assert.equal(engine.exchanges.unconsumed, 0)
  },
)

worldTest('a client survives whatever a server says', { seeds: 300 }, (world) => {
  const { random } = world
  const { peer, engine, connection, faults } = clientScript(world, { handshake: random.chance(0.8) })
  const handlers = Array.from({ length: 5 }, () => recordingHandler())
  for (const handler of handlers) {
    const exchange = engine.open(handler)
    handler.exchange = exchange
    exchange?.sendHead(getHead(), random.chance(0.5))
  }
  world.run()
  const streams = [...peer.accepted].filter(([id]) => (id & 2) === 0).map(([, stream]) => stream)
  for (let i = 0; i < 60 && peer.error === undefined; i++) {
    attack(peer, random, streams)
    if (random.chance(0.5)) world.advance(random.integer(0, 5))
  }
  peer.close(0x100)
  world.run()
  assert.deepEqual([...faults, ...connection.faults, ...handlers.flatMap((handler) => handler.faults)], [])
  assert.ok(handlers.every((handler) => handler.closed))
  assert.equal(connection.closed, true)
  assert.equal(engine.openExchanges, 0)
  assert.equal(engine.receiver.pinned, 0)
})
