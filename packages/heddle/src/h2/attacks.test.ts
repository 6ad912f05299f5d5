import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Outbox } from '../bytes/index.ts'
import { responseHead, type ConnectionHandler, type Exchange, type HeddleError } from '../http/index.ts'
import { clientScript, getFields, getHead, postFields } from '../testing/h2-peer.ts'
import { connectionInfo, memoryNow, Recording, World } from '../testing/index.ts'
import { literalBlock } from './debug-fields.ts'
import { readDebugFrame, writeDebugFrame, type DebugFrame } from './debug-frame.ts'
import { ErrorCode, preface } from './frame.ts'
import type { Http2Limits } from './limits.ts'
import { ServerConnection } from './server-connection.ts'

/** A server under attack, run by hand: what arrives, and whether the attacker reads the answers. */
class Victim implements ConnectionHandler {
  readonly engine: ServerConnection
  readonly exchanges: Exchange[]
  /** Open exchanges whose handler was not told of their end. */
  live: number
  now: number
  reads: boolean
  error: HeddleError | undefined
  closed: boolean
  sent: number
  readonly #out: Outbox
  #nextId: number
  #respond: (exchange: Exchange) => void

  constructor(options: { reads?: boolean; limits?: Partial<Http2Limits>; respond?: (exchange: Exchange) => void } = {}) {
    this.exchanges = []
    this.live = 0
    this.now = 1000
    this.reads = options.reads ?? true
    this.error = undefined
    this.closed = false
    this.sent = 0
    this.#out = new Outbox(Buffer.alloc(0), 0)
    this.#nextId = 1
    this.#respond = options.respond ?? (() => {})
    this.engine = new ServerConnection(connectionInfo('server'), this, { limits: options.limits ?? {} }, this.now)
    this.engine.onDirty = () => {}
    this.feed(preface)
    this.frames({ type: 'SETTINGS', ack: false, settings: [] }, { type: 'SETTINGS', ack: true, settings: [] })
  }

  /** A fresh number for a stream. */
  get nextId(): number {
    const id = this.#nextId
    this.#nextId += 2
    return id
  }

  frames(...frames: DebugFrame[]): void {
    this.feed(Buffer.concat(frames.map(writeDebugFrame)))
  }

  feed(bytes: Uint8Array): void {
    if (this.over) return
    this.engine.receive(bytes, 0, bytes.length, this.now)
    this.turn()
  }

  turn(): void {
    const out = this.#out
    do {
      out.length = 0
      out.limit = this.reads ? 65_536 : 0
      const waits = this.engine.transmit(out, this.now)
      this.sent += out.length
      if (!waits || !this.reads) break
    } while (out.length > 0)
  }

  get lastFrame(): DebugFrame | undefined {
    const { buffer, length } = this.#out
    let last: DebugFrame | undefined
    for (let at = 0; at < length;) {
      const next = readDebugFrame(buffer.subarray(at, length))
      if (next === undefined) break
      last = next.frame
      at += next.length
    }
    return last
  }

  get over(): boolean {
    return this.engine.closing !== 'no' || this.engine.lifetime.stage !== 0
  }

  /** Sends until the connection is given up. Returns how often. */
  repeat(most: number, attack: (victim: Victim) => void): number {
    for (let times = 0; times < most; times++) {
      if (this.over) return times
      attack(this)
    }
    return this.over ? most : Infinity
  }

  /** The attack was seen, it was named, and nothing is left of it. */
  assertDefended(code: number = ErrorCode.EnhanceYourCalm): void {
    assert.ok(this.over, 'the connection is given up')
    const { error } = this.engine.lifetime
    assert.equal(error?.wireCode, code, String(error?.message))
    assert.equal(this.live, 0, 'every handler was told')
    assert.equal(this.engine.openExchanges, 0)
    assert.deepEqual(this.engine.exchanges.table.all(), [])
    this.now += 1_000
    this.engine.expire(this.now)
    this.now += 120_000
    if (this.engine.deadline <= this.now) this.engine.expire(this.now)
    assert.equal(this.engine.deadline, Infinity)
  }

  onReady(): void {}
  onExchange(exchange: Exchange): Recording {
    this.exchanges.push(exchange)
    this.live++
    const recording = new Recording({ on: { onClose: () => this.live-- } })
    recording.exchange = exchange
    const { on } = recording
    recording.on = { ...on, onHead: () => this.#respond(exchange) }
    return recording
  }
  onCapacity(): void {}
  onDraining(): void {}
  onDrained(): void {}
  onClose(error: HeddleError | undefined): void {
    this.closed = true
    this.error = error
  }
}

const get = literalBlock(getFields)
const post = literalBlock([...postFields, 'content-length', '1'])
const headers = (streamId: number, block: Uint8Array, end: boolean): DebugFrame => ({
  type: 'HEADERS',
  streamId,
  block,
  end,
  endHeaders: true,
})
const raw = (typeCode: number, flags: number, streamId: number, payload: Uint8Array): DebugFrame => ({
  type: 'RAW',
  typeCode,
  flags,
  streamId,
  payload,
})

test('rapid reset (CVE-2023-44487): after a burst the connection is given up', () => {
  const victim = new Victim()
  const times = victim.repeat(100_000, (one) => {
    const id = one.nextId
    one.frames(headers(id, get, true), { type: 'RST_STREAM', streamId: id, code: ErrorCode.Cancel })
  })
  assert.ok(times <= 201, `${times} times`)
  assert.deepEqual([victim.lastFrame?.type, (victim.lastFrame as { code?: number }).code], ['GOAWAY', ErrorCode.EnhanceYourCalm])
  victim.assertDefended()
})

test('rapid reset in one read is no cheaper, and has no more handlers at once than requests may be open', () => {
  let most = 0
  const victim: Victim = new Victim({ respond: () => (most = Math.max(most, victim.live)) })
  const frames: DebugFrame[] = []
  for (let i = 0; i < 1000; i++) {
    const id = victim.nextId
    frames.push(headers(id, get, true), { type: 'RST_STREAM', streamId: id, code: ErrorCode.Cancel })
  }
  victim.frames(...frames)
  assert.ok(victim.exchanges.length <= 201)
  assert.equal(most, 1)
  victim.assertDefended()
})

test('a client that cancels now and then is no attacker', () => {
  const victim = new Victim()
  for (let i = 0; i < 2000; i++) {
    const id = victim.nextId
    victim.frames(headers(id, get, true), { type: 'RST_STREAM', streamId: id, code: ErrorCode.Cancel })
    victim.now += 60
  }
  assert.equal(victim.over, false)
})

test('CONTINUATION flood (CVE-2024-27316): by number, by size, and of empty frames', () => {
  for (const [block, limits] of [
    [literalBlock(['x', 'y']), {}],
    [new Uint8Array(0), {}],
    [literalBlock(['x', 'y'.repeat(16_000)]), { maxContinuations: 1e9 }],
    [new Uint8Array(0), { maxContinuations: 1e9 }],
  ] as const) {
    const victim = new Victim({ limits })
    victim.frames({ type: 'HEADERS', streamId: 1, block: get, end: true, endHeaders: false })
    const times = victim.repeat(100_000, (one) => one.frames({ type: 'CONTINUATION', streamId: 1, block, endHeaders: false }))
    assert.ok(times <= 1_002, `${times} frames`)
    assert.ok(victim.engine.sender.pinned < 1_000_000)
    victim.assertDefended()
  }
})

const madeYouReset: Record<string, (id: number) => DebugFrame[]> = {
  'WINDOW_UPDATE by 0': (id) => [headers(id, get, true), { type: 'WINDOW_UPDATE', streamId: id, increment: 0 }],
  'WINDOW_UPDATE by 2^31 - 1': (id) => [headers(id, get, true), { type: 'WINDOW_UPDATE', streamId: id, increment: 0x7fff_ffff }],
  'DATA beyond content-length': (id) => [headers(id, post, false), { type: 'DATA', streamId: id, data: new Uint8Array(10), end: false }],
  'DATA on a half-closed stream': (id) => [headers(id, get, true), { type: 'DATA', streamId: id, data: new Uint8Array(10), end: false }],
  'HEADERS on a half-closed stream': (id) => [headers(id, get, true), headers(id, literalBlock(['x', 'y']), true)],
  'PRIORITY of 4 octets': (id) => [headers(id, get, true), raw(2, 0, id, new Uint8Array(4))],
  'PRIORITY that depends on itself': (id) => [headers(id, get, true), raw(2, 0, id, Uint8Array.of(0, 0, id >>> 8, id, 0))],
  'malformed trailers': (id) => [headers(id, literalBlock(postFields), false), headers(id, literalBlock([':path', '/']), true)],
  'a malformed head': (id) => [headers(id, literalBlock(['x', 'y']), true)],
  'fields too large': (id) => [headers(id, literalBlock([...getFields, 'x', 'y'.repeat(12_000)]), true)],
}

for (const [form, attack] of Object.entries(madeYouReset)) {
  test(`made-you-reset (CVE-2025-8671): ${form}`, () => {
    const victim = new Victim({ limits: { maxFieldLineSize: 10_000 } })
    const times = victim.repeat(100_000, (one) => one.frames(...attack(one.nextId)))
    assert.ok(times <= 201, `${times} times`)
    victim.assertDefended()
  })
}

test('more streams than allowed, again and again', () => {
  const victim = new Victim({ limits: { maxConcurrentStreams: 10 } })
  const times = victim.repeat(100_000, (one) => one.frames(headers(one.nextId, get, true)))
  assert.ok(times <= 211, `${times} times`)
  assert.equal(victim.exchanges.length, 10)
  victim.assertDefended()
})

test('HPACK bomb: a large entry, referred to as often as fits', async () => {
  const victim = new Victim()
  // The entry of 4,000 octets enters the table and is referred to 16,000 times: 64 MB of fields.
  const insert = Buffer.concat([Buffer.from([0x40, 1, 0x78, 127, 0xa1 - 0, 0x1e]), Buffer.alloc(127 + 0x21 + (0x1e << 7), 0x79)])
  victim.frames(headers(1, Buffer.concat([get, insert]), true))
  assert.equal(victim.exchanges.length, 1)
  const bomb = Buffer.concat([get, Buffer.alloc(16_000, 0xbe)])
  const before = await memoryNow()
  const started = performance.now()
  const times = victim.repeat(10_000, (one) => one.frames(headers(one.nextId + 2, bomb, true)))
  assert.ok(performance.now() - started < 5_000, 'it is cheap to see')
  assert.equal(victim.exchanges.length, 1, 'no handler sees one')
  assert.ok(times <= 201, `${times} times`)
  assert.ok((await memoryNow()) - before < 8e6)
  victim.assertDefended()
})

test('HTTP/2 bomb (CVE-2026-49975): many tiny fields on many streams that take no answer', async () => {
  const answer = responseHead(200, Array.from({ length: 40 }, (_, i) => [`x-${i}`, 'y'.repeat(50)]).flat())
  const victim = new Victim({
    respond(exchange) {
      exchange.sendHead(answer, false)
      // A handler that heeds back pressure.
      while (exchange.sendData(Buffer.alloc(4096), 0, 4096, false));
    },
  })
  victim.frames({ type: 'SETTINGS', ack: false, settings: [[4, 0]] })
  const tiny = Buffer.concat([get, Buffer.alloc(95, 0x90)])
  const before = await memoryNow()
  for (let i = 0; i < 250; i++) victim.frames(headers(victim.nextId, tiny, true))
  assert.equal(victim.exchanges.length, 100, 'the limit of streams holds')
  const pinned = (await memoryNow()) - before
  assert.ok(pinned < 16e6, `${pinned} octets for 100 streams`)
  assert.ok(victim.engine.sender.pinned <= 100 * 70_000)
  victim.now += 60_100
  victim.engine.expire(victim.now)
  victim.turn()
  assert.equal(victim.live, 0, 'and after a minute it is over')
  assert.equal(victim.engine.sender.pinned, 0)
})

const provoked: Record<string, (victim: Victim) => DebugFrame> = {
  PING: () => ({ type: 'PING', ack: false, data: new Uint8Array(8) }),
  SETTINGS: () => ({ type: 'SETTINGS', ack: false, settings: [[4, 65_535]] }),
  'malformed requests': ({ nextId }) => headers(nextId, literalBlock(['x', 'y']), true),
}

for (const [name, attack] of Object.entries(provoked)) {
  test(`a flood of ${name} by a peer that never reads`, () => {
    const victim = new Victim({ limits: { resetBurst: 1e9 } })
    victim.frames(headers(victim.nextId, get, true))
    victim.reads = false
    const times = victim.repeat(100_000, (one) => one.frames(attack(one)))
    assert.ok(times <= 1_002, `${times} frames`)
    assert.ok(victim.engine.sender.pinned < 100_000)
    assert.equal(victim.engine.closing, 'reset', 'there is nobody to say goodbye to')
    victim.assertDefended()
  })
}

test('heads for a peer that never reads: what they pin is bounded', () => {
  const answer = responseHead(200, ['x', '~'.repeat(10_000)])
  const victim = new Victim({
    reads: false,
    limits: { maxConcurrentStreams: 1e9, maxPinned: 1_000_000 },
    respond: (exchange) => exchange.sendHead(answer, true),
  })
  const times = victim.repeat(100_000, (one) => one.frames(headers(one.nextId, get, true)))
  assert.ok(times <= 110, `${times} requests`)
  assert.ok(victim.engine.sender.pinned < 1_100_000)
})

const empty: Record<string, (id: number) => DebugFrame> = {
  'empty DATA': (id) => ({ type: 'DATA', streamId: id, data: new Uint8Array(0), end: false }),
  'DATA of one octet': (id) => ({ type: 'DATA', streamId: id, data: new Uint8Array(1), end: false }),
  'DATA of padding only': (id) => ({ type: 'DATA', streamId: id, data: new Uint8Array(0), end: false, padding: 100 }),
  'RST_STREAM on closed streams': () => ({ type: 'RST_STREAM', streamId: 1, code: 8 }),
}

for (const [name, attack] of Object.entries(empty)) {
  test(`a flood of ${name}`, () => {
    const victim = new Victim()
    victim.frames(headers(1, get, true), { type: 'RST_STREAM', streamId: 1, code: 8 }, headers(3, literalBlock(postFields), false))
    const times = victim.repeat(100_000, (one) => one.frames(attack(3)))
    assert.ok(times <= 1_002, `${times} frames`)
    victim.assertDefended()
  })
}

test('small messages at a rate of people, and larger ones at any rate, are no flood', () => {
  const victim = new Victim()
  victim.frames(headers(1, literalBlock(postFields), false))
  for (let i = 0; i < 5000; i++) {
    victim.frames({ type: 'DATA', streamId: 1, data: new Uint8Array(1), end: false })
    victim.now += 11
  }
  for (let i = 0; i < 50_000; i++) victim.frames({ type: 'DATA', streamId: 1, data: new Uint8Array(5), end: false })
  assert.equal(victim.over, false)
})

test('a word at a time on many streams, and one of many words in a piece, are no flood', () => {
  const victim = new Victim()
  const ids = Array.from({ length: 100 }, () => victim.nextId)
  for (const id of ids) victim.frames(headers(id, literalBlock(postFields), false))
  const word = (streamId: number): DebugFrame => ({ type: 'DATA', streamId, data: Buffer.from('and'), end: false })
  for (let i = 0; i < 1_000; i++) {
    victim.now++
    victim.frames(...ids.map(word))
  }
  assert.equal(victim.over, false, victim.error?.message ?? '')

  const { peer, engine } = clientScript(new World())
  engine.open(new Recording())?.sendHead(getHead(), true)
  peer.wantHead('a request', 1, true)
  peer.sendHead(1, [':status', '200'], false)
  for (let i = 0; i < 20_000; i++) peer.send(word(1))
  peer.wantIdle('whoever asked for it may stop it')
  assert.equal(engine.openExchanges, 1)
  for (let i = 0; i < 1_001; i++) peer.send({ type: 'DATA', streamId: 1, data: new Uint8Array(0), end: false })
  peer.wantFrame('nothing is nothing', { type: 'GOAWAY', lastStreamId: 0, code: ErrorCode.EnhanceYourCalm })
})

test('window dribble: credit of an octet at a time', () => {
  const victim = new Victim({
    respond(exchange) {
      exchange.sendHead(responseHead(200), false)
      exchange.sendOwned(new Uint8Array(1_000_000), true)
    },
  })
  victim.frames({ type: 'SETTINGS', ack: false, settings: [[4, 0]] }, headers(1, get, true))
  const sentBefore = victim.sent
  const times = victim.repeat(100_000, (one) => one.frames({ type: 'WINDOW_UPDATE', streamId: 1, increment: 1 }))
  assert.ok(times <= 1_001, `${times} times`)
  assert.ok(victim.sent - sentBefore < 20_000)
  victim.assertDefended()
})

test('credit of an octet at a time that nobody waits for is harmless', () => {
  const victim = new Victim()
  victim.frames(headers(1, get, true))
  for (let i = 0; i < 50_000; i++) victim.frames({ type: 'WINDOW_UPDATE', streamId: 1, increment: 1 })
  assert.equal(victim.over, false)
})

test('hostile SETTINGS: windows, tables and frame sizes that jump', () => {
  const victim = new Victim({
    respond(exchange) {
      exchange.sendHead(responseHead(200, ['x-field', 'value']), false)
      exchange.sendOwned(new Uint8Array(100), false)
    },
  })
  for (let i = 0; i < 100; i++) victim.frames(headers(victim.nextId, get, true))
  const started = performance.now()
  const jumps = Array.from({ length: 2_730 }, (_, i) => [[1, 4][i & 1] as number, i % 4 < 2 ? 0 : 100_000] as const)
  for (let i = 0; i < 200; i++) {
    victim.frames({ type: 'SETTINGS', ack: false, settings: jumps })
    victim.frames({ type: 'SETTINGS', ack: false, settings: [[4, i & 1 ? 0 : 0x7fff_0000], [5, i & 1 ? 16_384 : 0xff_ffff], [3, i], [6, i]] }) // prettier-ignore
  }
  assert.ok(performance.now() - started < 3_000)
  assert.equal(victim.over, false)
  assert.equal(victim.live, 100)
  victim.frames({ type: 'SETTINGS', ack: false, settings: [[4, 0x7fff_ffff]] }, { type: 'WINDOW_UPDATE', streamId: 1, increment: 1_000 })
  assert.equal(victim.live, 99, 'a window that overflows ends its stream')
})

test('stream-0 overflow (CVE-2026-21714): an error of the connection that leaves nothing behind', async () => {
  const before = await memoryNow()
  for (let i = 0; i < 300; i++) {
    const victim = new Victim({
      respond(exchange) {
        exchange.sendHead(responseHead(200), false)
        exchange.sendData(Buffer.alloc(60_000), 0, 60_000, false)
      },
    })
    victim.frames({ type: 'SETTINGS', ack: false, settings: [[4, 0]] })
    for (let n = 0; n < 20; n++) victim.frames(headers(victim.nextId, get, true))
    assert.ok(victim.engine.sender.pinned > 1_000_000)
    victim.frames({ type: 'WINDOW_UPDATE', streamId: 0, increment: 0x7fff_ffff })
    assert.equal(victim.engine.sender.pinned, 0)
    victim.assertDefended(ErrorCode.FlowControlError)
  }
  const more = (await memoryNow()) - before
  assert.ok(more < 10e6, `${more} octets more after 300 connections`)
})

// ── Attacks by servers ──────────────────────────────────────────────────────────────────────────────

function victimClient(): ReturnType<typeof clientScript> & { recording: Recording } {
  const script = clientScript(new World())
  const recording = new Recording()
  recording.exchange = script.engine.open(recording)
  recording.exchange?.sendHead(getHead(), true)
  script.peer.wantHead('a request', 1, true)
  return { ...script, recording }
}

test('a server that never gets to the point: interim responses without end', () => {
  const { peer, recording } = victimClient()
  for (let i = 0; i < 101; i++) peer.sendHead(1, [':status', '103'], false)
  peer.wantReset('enough', 1, ErrorCode.EnhanceYourCalm)
  assert.equal(recording.error?.code, 'PROTOCOL_ERROR')
})

test('a response with too many fields ends its exchange with a name for it', () => {
  const { peer, recording } = victimClient()
  peer.sendHead(1, [':status', '200', ...Array.from({ length: 101 }, () => ['x', 'y']).flat()], true)
  peer.wantReset('enough', 1, ErrorCode.Cancel)
  assert.equal(recording.error?.code, 'FIELDS_TOO_LARGE')
})

test('a server that provokes resets without end', () => {
  const { peer, engine, connection } = victimClient()
  for (let id = 1; id <= 401; id += 2) {
    peer.sendHead(id, ['no', 'status'], true)
    peer.wantReset('a fault', id, ErrorCode.ProtocolError)
    if (peer.peer.closedBy !== 'no' || engine.openable === 0) break
    engine.open(new Recording())?.sendHead(getHead(), true)
    peer.wantHead('another request', id + 2, true)
  }
  peer.wantGoaway('enough', ErrorCode.EnhanceYourCalm)
  assert.equal(engine.openExchanges, 0)
  assert.equal(connection.error?.wireCode, ErrorCode.EnhanceYourCalm)
})

test('a server that floods with PING or SETTINGS in one read', () => {
  for (const frame of [
    { type: 'PING', ack: false, data: new Uint8Array(8) },
    { type: 'SETTINGS', ack: false, settings: [] },
  ] as const) {
    const { engine, recording } = victimClient()
    const wire = writeDebugFrame(frame)
    const flood = Buffer.concat(Array.from({ length: 1_001 }, () => wire))
    engine.receive(flood, 0, flood.length, 1000)
    assert.equal(engine.lifetime.error?.wireCode, ErrorCode.EnhanceYourCalm)
    engine.receiveEnd(1000)
    engine.receiveError(engine.lifetime.error as HeddleError, 1000)
    assert.ok(recording.closed)
  }
})

test('small bodies whose end comes in a frame of its own are no flood', () => {
  const victim = new Victim({
    respond: (exchange) => {
      exchange.sendHead(responseHead(200, []), true)
      exchange.discard()
    },
  })
  const post = literalBlock(postFields)
  const content = (data: string, endStream: boolean, streamId: number): DebugFrame => ({
    type: 'DATA',
    streamId,
    data: Buffer.from(data),
    end: endStream,
  })
  for (let i = 0; i < 5_000; i++) {
    const id = victim.nextId
    victim.frames(headers(id, post, false), content('x', false, id), content('', true, id))
  }
  assert.equal(victim.exchanges.length, 5_000)
  assert.equal(victim.over, false, victim.error?.message ?? '')
})
