import assert from 'node:assert/strict'
import { responseHead } from '../http/index.ts'
import {
  clientScript,
  ErrorCode,
  getFields,
  getHead,
  postFields,
  serverScript,
  type Http3Peer,
  type PeerStream,
} from '../testing/h3-peer.ts'
import { recordingHandler } from '../testing/recording.ts'
import { worldTest } from '../testing/seeds.ts'
import type { World } from '../testing/world.ts'
import { reservedNumber } from './frame.ts'

const seeds = { seeds: 3 }
const budgets = { limits: { resetBurst: 20, resetRate: 1, emptyBurst: 50, emptyRate: 1 } }
const empty = { type: 'DATA', data: new Uint8Array(0) } as const

/** Does something until the connection is over, or `most` times. Returns how often. */
function repeat(world: World, peer: Http3Peer, most: number, act: () => void): number {
  let times = 0
  while (times < most && peer.error === undefined) {
    act()
    times++
    world.run()
  }
  return times
}

worldTest('rapid reset (CVE-2023-44487): a client that resets what it asked pays from a budget', seeds, (world) => {
  const { peer, connection, engine } = serverScript(world, { options: budgets })
  const times = repeat(world, peer, 100, () => peer.request(postFields, false).quic?.reset(ErrorCode.RequestCancelled))
  peer.wantClose('it was told', ErrorCode.ExcessiveLoad)
  assert.ok(times > 20 && times <= 23, `${times} resets`)
  assert.equal(engine.openExchanges, 0)
  assert.ok(connection.exchanges.every((recording) => recording.closed))
})

worldTest('the same by STOP_SENDING', seeds, (world) => {
  const { peer } = serverScript(world, { options: budgets })
  const times = repeat(world, peer, 100, () => peer.request(getFields).quic?.stopSending(ErrorCode.RequestCancelled))
  peer.wantClose('it was told', ErrorCode.ExcessiveLoad)
  assert.ok(times > 20 && times <= 23, `${times} times`)
})

worldTest('made you reset (CVE-2025-8671): malformed messages are paid for, too', seeds, (world) => {
  const { peer } = serverScript(world, { options: budgets })
  const times = repeat(world, peer, 100, () => peer.request([...getFields, 'Bad', '1']))
  peer.wantClose('it was told', ErrorCode.ExcessiveLoad)
  assert.ok(times > 20 && times <= 23, `${times} times`)
})

/** What costs a peer next to nothing. */
const cheap: readonly (readonly [why: string, act: (peer: Http3Peer, stream: PeerStream) => void])[] = [
  ['empty DATA', (_, stream) => stream.send(empty)],
  [
    'unknown frames without payload on a request stream',
    (_, stream) => stream.send({ type: 'UNKNOWN', frameType: reservedNumber(1), payload: empty.data }),
  ],
  [
    'unknown frames without payload on the control stream',
    (peer) => peer.control.send({ type: 'UNKNOWN', frameType: reservedNumber(1), payload: empty.data }),
  ],
  ['changes of priority', (peer) => peer.control.send({ type: 'PRIORITY_UPDATE', id: 400, value: 'u=1' })],
  ['MAX_PUSH_ID', (peer) => peer.control.send({ type: 'MAX_PUSH_ID', id: 1 })],
  ['GOAWAY', (peer) => peer.control.send({ type: 'GOAWAY', id: 1 })],
  ['streams of unknown types', (peer) => peer.open(false).sendBytes(Uint8Array.of(0x21), true)],
  ['streams that are reset before they say what they are', (peer) => peer.open(false).quic?.reset(1)],
]

for (const [why, act] of cheap) {
  worldTest(`a flood of ${why} is paid for`, seeds, (world) => {
    const { peer } = serverScript(world, { options: budgets })
    const stream = peer.request(postFields, false)
    const times = repeat(world, peer, 200, () => act(peer, stream))
    peer.wantClose('it was told', ErrorCode.ExcessiveLoad)
    assert.ok(times > 48 && times <= 53, `${times} times`)
  })
}

worldTest('DATA in octets that came together is waste; one by one it is not', seeds, (world) => {
  const { peer, connection } = serverScript(world, { options: budgets, quic: { pieces: 1_200 } })
  const slow = peer.request(postFields, false)
  for (let i = 0; i < 200; i++) {
    slow.sendContent('x')
    world.advance(5)
  }
  peer.wantOpen('each came alone')
  assert.equal(connection.exchanges[0]?.received, 200)
  for (let i = 0; i < 200; i++) slow.sendContent('x')
  peer.wantClose('these did not', ErrorCode.ExcessiveLoad)
})

worldTest('field blocks that do not end pin no more than the limit', seeds, (world) => {
  const { peer, engine } = serverScript(world, { options: { limits: { maxPinned: 300_000 } } })
  for (let i = 0; i < 20 && peer.error === undefined; i++) {
    // 60,000 octets announced, 30,000 come.
    peer
      .open()
      .sendBytes(Uint8Array.of(1, 0x80, 0, 0xea, 0x60))
      .sendBytes(new Uint8Array(30_000))
    world.run()
    assert.ok(engine.receiver.pinned < 400_000)
  }
  peer.wantClose('it was told', ErrorCode.ExcessiveLoad)
  assert.equal(engine.receiver.pinned, 0)
})

worldTest('announced and not sent costs no memory', seeds, (world) => {
  const { peer, engine } = serverScript(world)
  for (let i = 0; i < 50; i++) peer.open().sendBytes(Uint8Array.of(1, 0x80, 0, 0xea, 0x60, 0))
  world.run()
  assert.ok(engine.receiver.pinned <= 50 * 256, `${engine.receiver.pinned}`)
})

worldTest(
  'answers that a client does not take pin no more than the limit; what its sender sees to itself does not count',
  seeds,
  (world) => {
    for (const exempt of [false, true]) {
      const { peer, connection } = serverScript(world, { options: { limits: { maxPinned: 500_000 } }, quic: { streamWindow: 1_000 } })
      for (let i = 0; i < 10 && peer.error === undefined; i++) {
        const stream = peer.request(getFields)
        Object.defineProperty(stream.quic, 'consume', { value: () => {} })
        const exchange = connection.exchanges.at(-1)?.exchange
        if (exempt) exchange?.exemptQueue?.()
        exchange?.sendHead(responseHead(200), false)
        exchange?.sendData(Buffer.alloc(100_000), 0, 100_000, false)
        world.run()
      }
      if (exempt) peer.wantOpen('nothing counts')
      else peer.wantClose('it was told', ErrorCode.ExcessiveLoad)
    }
  },
)

worldTest('an answer that was given away does not count, whatever its size; it is there before it is sent', seeds, (world) => {
  const { peer, engine, connection } = serverScript(world, { options: { limits: { maxPinned: 50_000 } } })
  for (const end of ['whole', 'reset'] as const) {
    const stream = peer.request(getFields)
    const exchange = connection.exchanges.at(-1)?.exchange
    exchange?.sendHead(responseHead(200), false)
    exchange?.sendOwned(Buffer.alloc(200_000), true)
    if (end === 'reset') stream.quic?.stopSending(ErrorCode.RequestCancelled)
    world.run()
    peer.wantOpen(end)
    assert.equal(engine.sender.queued, 0)
  }
})

worldTest('a bomb of references (QPACK) is 431, and costs no memory', seeds, (world) => {
  const { peer } = serverScript(world)
  const block = Buffer.alloc(60_000, 0xd1)
  block.writeUInt16BE(0, 0)
  const stream = peer.open().sendBytes(Buffer.concat([Uint8Array.of(1, 0x80, 0, 0xea, 0x60), block]), true)
  peer.wantReset('it is malformed before it is too large', stream, ErrorCode.MessageError)
  peer.wantOpen('the connection stands')
})

worldTest('more blocked streams than allowed (RFC 9204 §2.1.2)', seeds, (world) => {
  const { peer } = serverScript(world, { options: { limits: { blockedStreams: 4 } } })
  for (let i = 0; i < 4; i++) peer.open().sendBytes(Uint8Array.of(1, 3, 2, 0, 0x80), true)
  peer.wantOpen('so many may wait')
  peer.open().sendBytes(Uint8Array.of(1, 3, 2, 0, 0x80), true)
  peer.wantClose('and no more', ErrorCode.DecompressionFailed)
})

worldTest('priorities of requests that never come are few', seeds, (world) => {
  const { peer, connection } = serverScript(world)
  for (let i = 0; i < 100; i++) peer.control.send({ type: 'PRIORITY_UPDATE', id: 4 * i, value: 'u=1' })
  world.run()
  const requests = Array.from({ length: 40 }, () => peer.request(getFields))
  assert.equal(requests.length, 40)
  const urgencies = connection.exchanges.map(({ exchange }) => (exchange as unknown as { urgency: number }).urgency)
  assert.equal(urgencies.filter((urgency) => urgency === 1).length, 32)
})

worldTest('a server cannot make a client hold more than it reads: settings, unknown frames, interim heads', seeds, (world) => {
  const { peer, engine, connection } = clientScript(world, { handshake: false })
  const handler = recordingHandler()
  engine.open(handler)?.sendHead(getHead(), true)
  world.run()
  const settings = Array.from({ length: 200 }, (_, i) => [reservedNumber(i), 1] as const)
  peer.handshake(settings)
  peer.wantClose('so many settings are none', ErrorCode.ExcessiveLoad)
  assert.equal(handler.error?.wireCode, ErrorCode.ExcessiveLoad)
  assert.equal(connection.closed, true)
})

worldTest('nothing is left of exchanges that are over', seeds, (world) => {
  const { peer, engine, connection } = serverScript(world)
  for (let i = 0; i < 60; i++) {
    const stream = peer.request(postFields, false).sendContent('abc', i % 3 !== 0)
    world.run()
    if (i % 3 === 0) stream.quic?.reset(ErrorCode.RequestCancelled)
    else connection.exchanges.at(-1)?.exchange?.sendHead(responseHead(200), true)
    world.run()
  }
  assert.equal(engine.openExchanges, 0)
  assert.equal(engine.exchanges.streams, 0)
  assert.equal(engine.exchanges.unconsumed, 0)
  assert.equal(engine.sender.queued, 0)
  assert.equal(engine.receiver.pinned, 0)
})
