import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Outbox } from '../bytes/index.ts'
import { requestHead, responseHead, type Exchange } from '../http/index.ts'
import { connectionInfo, Random, Recording, RecordingConnection } from '../testing/index.ts'
import { ClientConnection } from './client-connection.ts'
import { DebugFields, literalBlock } from './debug-fields.ts'
import { readDebugFrame, writeDebugFrame, type DebugFrame } from './debug-frame.ts'
import { preface } from './frame.ts'
import { ServerConnection } from './server-connection.ts'

const fields = ['x-a', 'b', 'cookie', 'a=1', 'content-length', '5', 'priority', 'u=1, i', 'te', 'trailers', 'host', 'a.test']
const pseudo = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'a.test', ':status', '200', ':protocol', 'websocket']

function randomFields(random: Random, isRequest: boolean): string[] {
  const start = isRequest ? pseudo.slice(0, 8) : [':status', random.pick(['200', '204', '100', '103', '404'])]
  if (isRequest && random.chance(0.2)) start[1] = random.pick(['POST', 'HEAD', 'CONNECT'])
  const lines = random.chance(0.9) ? start : []
  for (let count = random.integer(0, 3); count > 0; count--) {
    const at = random.integer(0, (random.chance(0.9) ? fields.length : pseudo.length) / 2 - 1) * 2
    lines.push(...(random.chance(0.9) ? fields : pseudo).slice(at, at + 2))
  }
  return lines
}

/** A frame that makes sense as a rule. */
function randomFrame(random: Random, isRequest: boolean): DebugFrame {
  const streamId = random.chance(0.05) ? random.integer(0, 0x7fff_ffff) : random.integer(0, 12)
  const end = random.chance(0.4)
  switch (random.integer(0, 11)) {
    case 0:
    case 1:
    case 2:
      return {
        type: 'HEADERS',
        streamId: streamId | 1,
        block: literalBlock(randomFields(random, isRequest)),
        end,
        endHeaders: random.chance(0.9),
      }
    case 3:
      return {
        type: 'DATA',
        streamId,
        data: random.bytes(random.length(300)),
        end,
        ...(random.chance(0.3) ? { padding: random.integer(0, 255) } : {}),
      }
    case 4:
      return { type: 'RST_STREAM', streamId, code: random.integer(0, 14) }
    case 5:
      return {
        type: 'SETTINGS',
        ack: random.chance(0.2),
        settings: random.chance(0.2) ? [] : [[random.integer(0, 10), random.pick([0, 1, 100, 16_384, 65_535, 0x7fff_ffff, 0xffff_ffff])]],
      }
    case 6:
      return { type: 'PING', ack: random.chance(0.5), data: random.bytes(8) }
    case 7:
      return { type: 'WINDOW_UPDATE', streamId, increment: random.pick([0, 1, 100, 65_535, 0x7fff_ffff]) }
    case 8:
      return { type: 'PRIORITY', streamId, dependency: { exclusive: end, dependsOn: random.integer(0, 12), weight: 7 } }
    case 9:
      return { type: 'PRIORITY_UPDATE', prioritizedId: streamId, value: random.pick(['u=0', 'u=7, i', '', '\xff']) }
    case 10:
      return { type: 'CONTINUATION', streamId, block: literalBlock(['x', 'y']), endHeaders: end }
    default:
      return random.chance(0.2)
        ? { type: 'GOAWAY', lastStreamId: streamId, code: 0, debug: 'x' }
        : {
            type: 'RAW',
            typeCode: random.integer(0, 255),
            flags: random.integer(0, 255),
            streamId,
            payload: random.bytes(random.length(30)),
          }
  }
}

/** What a peer sends: frames, some of their bits turned. */
function randomBytes(random: Random, isRequest: boolean): Buffer {
  const frames: Uint8Array[] = isRequest ? [preface] : []
  frames.push(writeDebugFrame({ type: 'SETTINGS', ack: false, settings: [] }))
  const mutates = random.chance(0.7)
  for (let count = random.integer(1, 40); count > 0; count--) {
    const wire = writeDebugFrame(randomFrame(random, isRequest))
    if (mutates && random.chance(0.1)) wire[random.integer(0, wire.length - 1)] = random.integer(0, 255)
    frames.push(mutates && random.chance(0.02) ? wire.subarray(0, random.integer(0, wire.length)) : wire)
  }
  return Buffer.concat(frames)
}

interface Run {
  readonly lines: string[]
  readonly output: Buffer
}

/** Runs one engine over `input`, cut by `cut`; checks what must always hold. */
function run(role: 'client' | 'server', input: Buffer, seed: number, cut: (left: number) => number): Run {
  const random = new Random(seed)
  let answered = 0
  const answers = (exchange: Exchange, recording: Recording): void => {
    recording.on = {
      onHead() {
        exchange.sendHead(responseHead(200, ['x-answer', 'value']), false)
        exchange.sendData(Buffer.alloc(40), 0, 40, answered++ % 2 === 0)
      },
    }
  }
  const connection = new RecordingConnection({
    onExchange(exchange) {
      const recording = new Recording()
      recording.exchange = exchange
      answers(exchange, recording)
      return recording
    },
  })
  const recordings: Recording[] = []
  const info = connectionInfo(role)
  const limits = { streamWindow: 2_000, connectionWindow: 70_000 }
  const engine =
    role === 'server'
      ? new ServerConnection(info, connection, { extendedConnect: true, limits }, 1000)
      : new ClientConnection(info, connection, { limits }, 1000)
  const out = new Outbox(Buffer.alloc(0), Infinity)
  if (engine instanceof ClientConnection) {
    for (let count = 5; count > 0; count--) {
      const recording = new Recording()
      recording.exchange = engine.open(recording)
      const post = random.chance(0.5)
      recording.exchange?.sendHead(requestHead(post ? 'POST' : 'GET', 'http', 'a.test', '/'), !post)
      if (post) recording.exchange?.sendData(random.bytes(500), 0, 500, random.chance(0.5))
      recordings.push(recording)
    }
  }
  engine.transmit(out, 1000)
  for (let at = 0; at < input.length;) {
    const piece = Buffer.from(input.subarray(at, at + cut(input.length - at)))
    at += piece.length
    engine.receive(piece, 0, piece.length, 1000)
    piece.fill(0xdb)
    engine.transmit(out, 1000)
    assert.ok(out.length < 20_000 + input.length * 8, 'output stays within reason')
    assert.ok(engine.sender.pinned < 1_000_000)
  }
  assert.ok(engine.exchanges.table.size <= 100)
  assert.ok(!Number.isNaN(engine.deadline))
  const lines = [...connection.lines]
  engine.receiveEnd(2000)
  engine.transmit(out, 2000)
  engine.receiveError(connection.error ?? (engine.lifetime.error as never), 3000)
  for (const recording of [...recordings, ...connection.exchanges]) {
    assert.deepEqual(recording.faults, [])
    assert.ok(recording.closed, 'every handler is told of the end')
    lines.push(...recording.lines)
  }
  assert.deepEqual(connection.faults, [])
  assert.equal(engine.openExchanges, 0)
  assert.equal(engine.sender.pinned, 0)
  assert.equal(engine.deadline, Infinity)
  return { lines, output: Buffer.from(out.buffer.subarray(0, out.length)) }
}

/** The output as frames, DATA of a stream joined: where it was cut depends on the turns. */
function meaning(output: Buffer): string[] {
  const isClient = output.subarray(0, preface.length).equals(preface)
  const fieldsRead = new DebugFields()
  const lines: string[] = []
  for (let rest = isClient ? output.subarray(preface.length) : output; rest.length > 0;) {
    const next = readDebugFrame(rest)
    assert.ok(next !== undefined, 'the output is whole frames')
    const { frame } = next
    rest = rest.subarray(next.length)
    assert.notEqual(frame.type, 'RAW', 'and such that everybody knows')
    if (frame.type === 'HEADERS') {
      lines.push(`HEADERS ${frame.streamId} ${String(fieldsRead.read(frame.block, isClient ? 'request' : 'response')?.join(' '))}`)
    } else if (frame.type === 'RST_STREAM' || frame.type === 'GOAWAY') lines.push(JSON.stringify(frame))
  }
  return lines
}

const rounds = Number(process.env['HEDDLE_SEEDS'] ?? 400)

for (const role of ['server', 'client'] as const) {
  test(`a ${role} takes whatever comes without a throw, within bounds, and cut anywhere it means the same`, () => {
    for (let seed = 1; seed <= rounds; seed++) {
      const random = new Random(seed)
      const input = randomBytes(random, role === 'server')
      try {
        const whole = run(role, input, seed, (left) => left)
        const cut = run(role, input, seed, () => random.integer(1, 40))
        // After a GOAWAY the connection closes as soon as it can, and how soon that is depends on the turns.
        if (whole.lines.includes('draining')) continue
        assert.deepEqual(cut.lines.filter(isStable), whole.lines.filter(isStable))
        assert.deepEqual(meaning(cut.output), meaning(whole.output))
      } catch (cause) {
        throw new Error(`seed ${seed}: ${String(cause)}`, { cause })
      }
    }
  })
}

/** How often capacity is told depends on the turns. */
function isStable(line: string): boolean {
  return !line.startsWith('capacity') && !line.startsWith('ready')
}

test('noise is no preface, and noise behind a preface is not HTTP/2 for long', () => {
  const random = new Random(7)
  for (let i = 0; i < 200; i++) {
    const noise = random.bytes(random.length(5000))
    run('server', Buffer.from(noise), i, (left) => left)
    run('server', Buffer.concat([preface, noise]), i, () => random.integer(1, 500))
    run('client', Buffer.from(noise), i, () => random.integer(1, 500))
  }
})
