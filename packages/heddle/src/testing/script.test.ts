import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConnectionHandler, Exchange, HeddleError, Instant, OutboxLike } from '../http/index.ts'
import { EngineLoop } from './engine-loop.ts'
import { enginePair, type ConnectionEngine } from './pair.ts'
import { script, type FrameCodec } from './script.ts'
import { worldTest } from './seeds.ts'
import { World } from './world.ts'

/**
 * A toy protocol: every line is answered with the same line in upper case. `stop` stops reading for
 * 100 ms, `bye` closes after the answer, `die` resets, a client begins with what `say` gives it.
 */
class EchoEngine implements ConnectionEngine {
  wantsInput = true
  closing: 'no' | 'end' | 'close' | 'reset' = 'no'
  deadline: Instant = Infinity
  onDirty: () => void = () => {}
  openable = 0
  openExchanges = 0
  readonly lines: string[] = []
  readonly handler: ConnectionHandler
  #partial = ''
  #queue = ''
  #closed = false

  constructor(handler: ConnectionHandler) {
    this.handler = handler
  }

  say(text: string): void {
    this.#queue += text
    this.onDirty()
  }

  receive(buffer: Uint8Array, start: number, limit: number, now: Instant): void {
    const parts = (this.#partial + Buffer.from(buffer.subarray(start, limit)).toString('latin1')).split('\n')
    this.#partial = parts.pop() as string
    for (const line of parts) {
      this.lines.push(line)
      if (line === 'stop') {
        this.wantsInput = false
        this.deadline = now + 100
      } else if (line === 'die') this.closing = 'reset'
      else if (line !== line.toUpperCase()) this.#queue += `${line.toUpperCase()}\n`
      if (line === 'bye') this.closing = 'close'
    }
  }

  receiveEnd(): void {
    this.closing = 'close'
  }

  receiveError(error: HeddleError): void {
    if (this.#closed) return
    this.#closed = true
    this.handler.onClose(error)
  }

  transmit(out: OutboxLike): boolean {
    const part = this.#queue.slice(0, out.room)
    out.writeLatin1(part)
    this.#queue = this.#queue.slice(part.length)
    if (this.closing !== 'no' && !this.#closed && this.#queue === '') {
      this.#closed = true
      this.handler.onClose(undefined)
    }
    return this.#queue !== ''
  }

  expire(now: Instant): void {
    assert.ok(now >= this.deadline)
    this.deadline = Infinity
    this.wantsInput = true
  }

  open(): Exchange | undefined {
    return undefined
  }
  shutdown(): void {}
  abort(): void {}
}

const echo = (_info: unknown, handler: ConnectionHandler): EchoEngine => new EchoEngine(handler)

test('a script sends, wants text, bytes, patterns and predicates, and sees idleness and the close', () => {
  const world = new World()
  const { peer, connection } = script(world, echo)
  peer.send('one\ntwo\nthree\n')
  peer.want('the first line', 'ONE\n')
  peer.want('the second line', Buffer.from('TWO'))
  assert.equal(peer.want('the rest', /\n[A-Z]+/).toString(), '\nTHREE')
  peer.want('the line feed', (received) => (received[0] === 10 ? 1 : -1))
  peer.wantIdle('all is answered')
  peer.send('bye\n')
  peer.want('the last answer', 'BYE\n')
  peer.wantClose('it was told to', 'end')
  assert.deepEqual(connection.lines, ['close'])
})

test('what is not there, or too much, fails with the reason, what came and the seed', () => {
  const { peer } = script(new World({ seed: 5 }), echo)
  peer.send('one\n')
  assert.throws(() => peer.want('a greeting', 'HELLO'), /a greeting: wanted "HELLO"; received "ONE\\n", open \(seed 5\)/)
  assert.throws(() => peer.want('a greeting', /HELLO/), /wanted \/HELLO\//)
  assert.throws(() => peer.want('only from the front', /NE/), /only from the front/)
  assert.throws(() => peer.wantIdle('nothing'), /nothing: wanted nothing; received "ONE/)
  assert.throws(() => peer.wantClose('an end', 'end'), /an end: wanted the connection's end/)
  peer.send('die\n')
  peer.want('the answer', 'ONE\n')
  peer.wantClose('it died', 'reset')
  assert.throws(() => peer.wantClose('an end', 'end'), /closed by reset/)
})

test('a peer speaks in frames through a codec', () => {
  const codec: FrameCodec<string> = {
    read: (bytes) => {
      const at = bytes.indexOf(10)
      return at < 0 ? undefined : { frame: bytes.subarray(0, at).toString(), length: at + 1 }
    },
    write: (frame) => Buffer.from(`${frame}\n`),
    describe: (frame) => `line ${frame}`,
  }
  const frames = script(new World(), echo).peer.frames(codec)
  frames.send('a', 'b')
  assert.equal(
    frames.want('the first', (frame) => frame === 'A'),
    'A',
  )
  assert.throws(() => frames.want('a C', (frame) => frame === 'C'), /a C: another frame came: line B/)
  frames.want('the second', (frame) => frame === 'B')
  assert.throws(() => frames.want('a third', () => true), /a third/)
})

worldTest('input waits while the engine does not want it, and alarms reach the engine', { seeds: 10 }, (world) => {
  const { peer, engine, loop } = script(world, echo, { splits: 'bytewise' })
  peer.send('stop\nlater\n')
  peer.wantIdle('it stopped reading')
  assert.deepEqual(engine.lines, ['stop'])
  assert.equal(loop.waiting, 6)
  world.advance(100)
  peer.want('it goes on', 'LATER\n')
})

test('an engine that sends after it closed, or waits for nothing, is found out', () => {
  const world = new World()
  const liar = new EchoEngine({ onClose() {} } as unknown as ConnectionHandler)
  liar.transmit = () => true
  const sink = { blocked: false, onBytes() {}, onEnd() {}, onReset() {} }
  const loop = new EngineLoop(world, liar, sink)
  world.run()
  assert.deepEqual(loop.faults, ['transmit reports more to send and sends nothing'])

  const late = new EchoEngine({ onClose() {} } as unknown as ConnectionHandler)
  const lateLoop = new EngineLoop(world, late, sink)
  late.closing = 'end'
  late.onDirty()
  world.run()
  late.say('too late')
  world.run()
  assert.deepEqual(lateLoop.faults, ['bytes sent after FIN'])
})

worldTest('two engines talk in memory, whatever the cuts and the room', { seeds: 20 }, (world) => {
  const lines = Array.from({ length: world.random.integer(1, 30) }, (_, i) => `line ${i} ${'x'.repeat(world.random.length(5000))}`)
  const pair = enginePair(world, { client: echo, server: echo, splits: 'random', room: 'random' })
  for (const line of lines) pair.client.say(`${line}\n`)
  world.run()
  assert.deepEqual(pair.server.lines, lines)
  assert.deepEqual(
    pair.client.lines,
    lines.map((line) => line.toUpperCase()),
  )
  assert.deepEqual(pair.faults, [])
})

test('an engine is not asked for more while the other side does not take what is there', () => {
  const world = new World()
  const pair = enginePair(world, { client: echo, server: echo, room: 1000 })
  pair.client.say('stop\n')
  world.run()
  pair.client.say(`${'X'.repeat(500_000)}\n`)
  world.run()
  assert.deepEqual(pair.server.lines, ['stop'])
  assert.ok(pair.client.transmit({ buffer: Buffer.alloc(0), length: 0, room: 0, reserve() {}, writeBytes() {}, writeLatin1() {} }))
  world.advance(100)
  assert.equal(pair.server.lines.length, 2)
  assert.deepEqual(pair.faults, [])
})

test('a lost connection reaches both engines as an error, or neither', () => {
  for (const loss of ['reset', 'silence'] as const) {
    const world = new World()
    const closes: string[] = []
    const handler = (name: string): ConnectionHandler =>
      ({ onClose: (error?: HeddleError) => closes.push(`${name} ${error?.code}`) }) as unknown as ConnectionHandler
    const pair = enginePair(world, { client: echo, server: echo, clientHandler: handler('client'), serverHandler: handler('server') })
    world.run()
    pair.lose(loss)
    pair.client.say('hello\n')
    world.run()
    assert.deepEqual(closes.toSorted(), loss === 'reset' ? ['client PEER_RESET', 'server PEER_RESET'] : [])
    assert.deepEqual(pair.server.lines, [])
  }
})
