import assert from 'node:assert/strict'
import { Outbox } from '../bytes/index.ts'
import { CancelReason, requestHead, responseHead, type Fields } from '../http/index.ts'
import { Encoder } from '../qpack/index.ts'
import { serverScript, type PeerStream } from '../testing/h3-peer.ts'
import { connectionInfo, Recording, RecordingConnection, worldTest, type Random } from '../testing/index.ts'
import { quicDoubles } from '../testing/quic-double.ts'
import { ClientConnection } from './client-connection.ts'
import { writeDebugFrame } from './debug-frame.ts'
import { StreamType } from './frame.ts'
import { ServerConnection } from './server-connection.ts'
import { SettingId } from './settings.ts'

const names = ['accept', 'x-a', 'x-b', 'user-agent', 'cookie', 'authorization', 'content-type', 'x-long-name-of-a-field']
const values = ['', 'a', '*/*', 'text/plain', 'session=0123456789abcdef', 'x'.repeat(300), 'y'.repeat(60)]

function someFields(random: Random): Fields {
  return Array.from({ length: random.integer(0, 6) }, () => [
    random.pick(names),
    random.chance(0.4) ? `value ${random.integer(0, 50)}` : random.pick(values),
  ]).flat()
}

/** Octets of a section, as the encoder writes it. */
function written(write: (out: Outbox) => void): Buffer {
  const out = new Outbox(Buffer.alloc(0), Infinity)
  write(out)
  return Buffer.from(out.buffer.subarray(0, out.length))
}

interface Asked {
  readonly path: string
  readonly fields: Fields
  readonly trailers: Fields
  readonly recording: Recording
  cancelled: boolean
}

/** A server that answers with the fields and trailers it was sent, and what it was sent by path. */
function echo(served: Map<string, Recording>): RecordingConnection {
  return new RecordingConnection({
    onExchange(exchange) {
      const recording = new Recording()
      recording.on = {
        onHead(head, end) {
          served.set(head.path, recording)
          exchange.sendHead(responseHead(200, head.fields), false)
          if (end) exchange.sendTrailers(['x-end', 'true'])
        },
        onData(_buffer, _start, _limit, end) {
          if (end) exchange.sendTrailers(['x-end', 'true'])
        },
        onTrailers(fields) {
          exchange.sendTrailers(fields)
        },
      }
      return recording
    },
  })
}

worldTest('fields and trailers arrive as they were sent, over streams that overtake each other, through resets', { seeds: 60 }, (world) => {
  const { random } = world
  const doubles = quicDoubles(world, {
    streamWindow: 65_536,
    connectionWindow: 1_048_576,
    sendBuffer: 65_536,
    maxStreams: 100,
    delay: 1,
    jitter: random.pick([0, 5, 40]),
    pieces: random.pick([1_200, 'random']),
  })
  const served = new Map<string, Recording>()
  const clientHandler = new RecordingConnection()
  const serverHandler = echo(served)
  const limits = (): object => ({ headerTableSize: random.pick([0, 100, 400, 4096]), blockedStreams: random.pick([0, 1, 3, 16]) })
  const client = new ClientConnection(connectionInfo('client'), clientHandler, doubles.client, { limits: limits() }, world.now())
  const server = new ServerConnection(connectionInfo('server'), serverHandler, doubles.server, { limits: limits() }, world.now())
  doubles.client.application = client
  doubles.server.application = server
  doubles.client.start()
  doubles.server.start()
  world.run()
  const asked: Asked[] = []
  for (let i = 0; i < 60; i++) {
    const recording = new Recording()
    const exchange = client.open(recording)
    if (exchange === undefined) {
      world.run()
      continue
    }
    recording.exchange = exchange
    const request: Asked = { path: `/${i}`, fields: someFields(random), trailers: someFields(random), recording, cancelled: false }
    asked.push(request)
    exchange.sendHead(requestHead('POST', 'http', 'origin.test', request.path, request.fields), false)
    if (random.chance(0.5)) exchange.sendData(random.bytes(50), 0, 50, false)
    exchange.sendTrailers(request.trailers)
    if (random.chance(0.15)) {
      request.cancelled = true
      if (random.chance(0.5)) exchange.cancel(CancelReason.Cancelled)
      else world.after(random.integer(0, 60), () => exchange.cancel(CancelReason.Cancelled))
    }
    if (random.chance(0.4)) world.advance(random.integer(0, 20))
  }
  world.run()
  assert.ok(asked.length > 30)
  for (const { path, fields, trailers, recording, cancelled } of asked) {
    assert.ok(recording.closed, path)
    assert.deepEqual(recording.faults, [])
    if (cancelled) continue
    assert.equal(recording.error, undefined, path)
    assert.deepEqual(served.get(path)?.head?.fields, fields)
    assert.deepEqual(recording.head?.fields, fields)
    assert.deepEqual(recording.trailers, trailers.length === 0 ? ['x-end', 'true'] : trailers)
  }
  assert.deepEqual([...doubles.faults, ...clientHandler.faults, ...serverHandler.faults], [])
  assert.equal(doubles.client.closedWith ?? doubles.server.closedWith, undefined)
  // Every section was acknowledged or its stream given up: nothing pins the tables for ever.
  assert.equal(client.qpack.encoder.outstandingSections, 0)
  assert.equal(server.qpack.encoder.outstandingSections, 0)
})

/** A scripted client that writes its sections with an encoder of its own, and lets the instructions come late. */
worldTest(
  'messages whose head waits for the table are read in order when it comes, and what is reset meanwhile is forgotten',
  { seeds: 60 },
  (world) => {
    const { random } = world
    const served = new Map<string, Recording>()
    const handler = echo(served)
    const { engine, peer, double, faults } = serverScript(world, {
      handler,
      options: { limits: { headerTableSize: 4096, blockedStreams: 16 } },
      settings: [[SettingId.QpackMaxTableCapacity, 0]],
    })
    const encoder = new Encoder({ maxBlockedStreams: 16 })
    encoder.allow(4096, 16)
    const instructions = peer.openCritical(StreamType.Encoder)
    const asked: {
      readonly stream: PeerStream
      readonly path: string
      readonly fields: Fields
      readonly trailers: Fields
      readonly content: Buffer
      readonly open: boolean
      reset: boolean
    }[] = []
    for (let i = 0; i < 14; i++) {
      const stream = peer.open()
      const fields = someFields(random)
      const trailers = random.chance(0.5) ? someFields(random) : []
      const content = random.bytes(random.length(200))
      const pieces: Buffer[] = []
      const head = requestHead('POST', 'http', 'origin.test', `/${i}`, fields)
      pieces.push(writeFrame(written((out) => encoder.writeRequest(stream.id, head, out))))
      if (content.length > 0) pieces.push(Buffer.from(writeDebugFrame({ type: 'DATA', data: content })))
      if (trailers.length > 0) pieces.push(writeFrame(written((out) => encoder.writeTrailers(stream.id, trailers, out))))
      const octets = Buffer.concat(pieces)
      const cut = random.integer(0, octets.length)
      stream.sendBytes(octets.subarray(0, cut))
      if (random.chance(0.5)) world.run()
      const open = random.chance(0.4)
      stream.sendBytes(octets.subarray(cut), !open)
      asked.push({ stream, path: `/${i}`, fields, trailers, content, open, reset: false })
      if (random.chance(0.3)) world.run()
    }
    world.run()
    peer.wantOpen('all of it is in order')
    const waiting = asked.filter(({ path }) => !served.has(path))
    assert.ok(waiting.length > 0, 'some wait for the table')
    // Of those that have not ended, some never will, whether they wait or not.
    for (const request of asked) {
      if (!request.open) continue
      request.reset = random.chance(0.5)
      if (request.reset) request.stream.quic?.reset(0x10c)
      else request.stream.sendEnd()
    }
    world.run()
    // The instructions come in pieces.
    for (let at = 0; at < encoder.instructions.length;) {
      const count = random.integer(1, 40)
      instructions.sendBytes(Buffer.from(encoder.instructions.buffer.subarray(at, Math.min(at + count, encoder.instructions.length))))
      at += count
      if (random.chance(0.5)) world.run()
    }
    peer.wantOpen('the table is there')
    for (const { path, fields, trailers, content, reset } of asked) {
      const recording = served.get(path)
      if (reset) assert.ok(recording === undefined || recording.closed, path)
      else {
        assert.deepEqual(recording?.head?.fields, fields)
        assert.deepEqual(recording.content, Buffer.from(content))
        assert.deepEqual(recording.trailers ?? [], trailers)
        assert.ok(recording.ended)
      }
    }
    // What the server says on its decoder stream releases every section.
    const told = peer.theirs(StreamType.Decoder).received
    assert.equal(encoder.receive(told, 0, told.length), undefined)
    assert.equal(encoder.outstandingSections, 0)
    assert.equal(engine.openExchanges, 0)
    assert.equal(double.closedWith, undefined)
    assert.deepEqual([...faults, ...handler.faults, ...handler.exchanges.flatMap((recording) => recording.faults)], [])
  },
)

function writeFrame(block: Buffer): Buffer {
  return Buffer.from(writeDebugFrame({ type: 'HEADERS', block }))
}

/** What may come of compression that is broken: RFC 9204 §6, and errors of single messages. */
const expectedCodes: ReadonlySet<number> = new Set([0x200, 0x201, 0x202, 0x107])

worldTest(
  'sections and instructions with turned bits end in an answer, a reset or one of three errors, never in a throw',
  { seeds: 150 },
  (world) => {
    const { random } = world
    const handler = echo(new Map())
    const { engine, peer, double, faults } = serverScript(world, {
      handler,
      options: { limits: { headerTableSize: random.pick([100, 4096]), blockedStreams: random.pick([0, 4]) } },
      settings: [
        [SettingId.QpackMaxTableCapacity, 4096],
        [SettingId.QpackBlockedStreams, 16],
      ],
    })
    const encoder = new Encoder()
    encoder.allow(random.pick([100, 4096]), 16)
    const toDecoder = peer.openCritical(StreamType.Encoder)
    const toEncoder = peer.openCritical(StreamType.Decoder)
    const turned = (octets: Buffer, probability: number): Buffer => {
      if (octets.length > 0 && random.chance(probability)) octets[random.integer(0, octets.length - 1)] = random.integer(0, 255)
      return random.chance(probability / 2) ? octets.subarray(0, random.integer(0, octets.length)) : octets
    }
    for (let i = 0; i < 20 && !double.isOver; i++) {
      const stream = peer.open()
      const head = requestHead('GET', 'http', 'origin.test', `/${i}`, someFields(random))
      const block = turned(
        written((out) => encoder.writeRequest(stream.id, head, out)),
        0.2,
      )
      const { instructions } = encoder
      if (random.chance(0.8)) {
        toDecoder.sendBytes(turned(Buffer.from(instructions.buffer.subarray(0, instructions.length)), 0.05))
        instructions.length = 0
      }
      stream.sendBytes(writeFrame(block), random.chance(0.9))
      if (random.chance(0.1)) toEncoder.sendBytes(random.bytes(random.integer(1, 4)))
      if (random.chance(0.1)) stream.quic?.reset(0x10c)
      if (random.chance(0.7)) world.run()
      assert.ok(engine.qpack.pinned < 100_000)
    }
    world.run()
    if (double.closedWith !== undefined)
      assert.ok(expectedCodes.has(double.closedWith.code), `${double.closedWith.code}: ${double.closedWith.reason}`)
    assert.deepEqual([...faults, ...handler.faults, ...handler.exchanges.flatMap((recording) => recording.faults)], [])
  },
)
