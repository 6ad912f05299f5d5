import assert from 'node:assert/strict'
import { CancelledError, CancelReason, type Exchange } from '../http/index.ts'
import { codecSettings, State, WebSocketConnection } from '../ws/index.ts'
import type { ConformanceProtocol } from './conformance/stage.ts'
import { worldTest } from './seeds.ts'
import { EchoProgram } from './websocket/echo-program.ts'
import { http1Tunnels, http2Tunnels } from './websocket/engines.ts'
import { payloadText } from './websocket/peer-frame.ts'
import { allOfDeflate } from './websocket/rig.ts'
import { TestCodec } from './websocket/test-codec.ts'
import { TunnelStage } from './websocket/tunnel.ts'
import type { World } from './world.ts'

/** One WebSocket, and a program that does anything at any time. */
class Actor {
  readonly program: EchoProgram
  readonly codec: TestCodec
  /** Messages that were accepted whole, in words. */
  readonly given: string[]
  connection: WebSocketConnection | undefined
  /** Messages that came may have been thrown away. */
  discarded: boolean
  readonly #world: World
  readonly #role: 'client' | 'server'
  #inParts: Buffer[] | undefined

  constructor(world: World, role: 'client' | 'server') {
    const { random } = world
    const late = random.chance(0.5)
    this.program = new EchoProgram(false)
    this.codec = new TestCodec(codecSettings(role, allOfDeflate), {
      schedule: (run) => (late ? world.after(random.integer(0, 30), run) : run()),
    })
    this.given = []
    this.connection = undefined
    this.discarded = false
    this.#world = world
    this.#role = role
    this.#inParts = undefined
    if (random.chance(0.3)) this.program.on.onMessage = () => this.act()
  }

  readonly open = (exchange: Exchange): void => {
    const { codec, program } = this
    const role = this.#role
    const { random } = this.#world
    this.connection = new WebSocketConnection(exchange, program, {
      role,
      maskKey: () => random.integer(0, 0x7fff_ffff),
      deflate: { parameters: allOfDeflate, codec, threshold: 10 },
      fragmentSize: random.pick([Infinity, 1_000]),
    })
    program.connection = this.connection
  }

  /** Messages the program was told of. */
  get received(): string[] {
    return this.program.lines.filter((line) => /^(text|binary) /.test(line))
  }

  get over(): string | undefined {
    return this.program.lines.find((line) => line.startsWith('over '))
  }

  /** Does one thing. */
  act(): void {
    const { connection } = this
    const { random } = this.#world
    if (connection === undefined) return
    const bytes = random.bytes(random.length(30_000))
    const compress = random.chance(0.4)
    switch (random.integer(0, 11)) {
      case 0:
      case 1:
      case 2:
        if (this.#inParts === undefined)
          this.#give(bytes, () => connection.sendBytes(Uint8Array.from(bytes), true, compress, random.chance(0.5)))
        return
      case 3:
      case 4:
        if (this.#inParts === undefined) {
          const text = bytes.toString('base64')
          const before = connection.messagesAccepted
          connection.sendText(text, compress)
          if (connection.messagesAccepted > before) this.given.push(`text ${payloadText(Buffer.from(text), true)}`)
        }
        return
      case 5:
        this.#part(bytes, compress)
        return
      case 6:
        connection.sendPing(bytes.subarray(0, random.integer(0, 125)))
        return
      case 7:
        if (random.chance(0.5)) connection.pause()
        return
      case 8:
        connection.resume()
        return
      default:
        this.#end()
    }
  }

  #end(): void {
    const { random } = this.#world
    const connection = this.connection as WebSocketConnection
    switch (random.integer(0, 19)) {
      case 0:
        return connection.abort(new CancelledError(CancelReason.Cancelled, 'by the program'))
      case 1:
        return this.discard()
      case 2:
        return connection.exchange.cancel(CancelReason.Cancelled)
      case 3:
      case 4:
      case 5:
        connection.close(random.pick([1000, 1001, 4000]), 'reason')
    }
  }

  discard(): void {
    this.discarded = true
    this.connection?.discardMessages()
  }

  #give(bytes: Buffer, call: () => boolean): void {
    const connection = this.connection as WebSocketConnection
    const before = connection.messagesAccepted
    call()
    if (connection.messagesAccepted > before) this.given.push(`binary ${payloadText(bytes, false)}`)
  }

  #part(bytes: Buffer, compress: boolean): void {
    const connection = this.connection as WebSocketConnection
    if (connection.state !== State.Open) return
    if (this.#inParts === undefined) {
      this.#inParts = []
      connection.startMessage(true, compress)
    }
    this.#inParts.push(bytes)
    const end = this.#world.random.chance(0.5)
    connection.sendPart(bytes, end)
    if (!end) return
    this.given.push(`binary ${payloadText(Buffer.concat(this.#inParts), false)}`)
    this.#inParts = undefined
  }
}

function interleave(world: World, protocol: ConformanceProtocol): void {
  const { random } = world
  const stage = new TunnelStage(world, protocol)
  const client = new Actor(world, 'client')
  const server = new Actor(world, 'server')
  stage.open(client.open, server.open)
  const both = [client, server]
  const steps = random.integer(1, 60)
  for (let step = 0; step < steps; step++) world.after(random.integer(0, 200), () => random.pick(both).act())
  const loss = random.chance(0.2) ? random.pick(['reset', 'silence'] as const) : undefined
  if (loss !== undefined) world.after(random.integer(0, 200), () => stage.pair.lose(loss))
  world.advance(300)

  // What the faces do at the end: close, and after a while no longer wait.
  for (const actor of both) {
    actor.program.on = {}
    if (random.chance(0.2)) actor.discard()
    else actor.connection?.resume()
    actor.connection?.close(1000)
  }
  world.advance(5_000)
  for (const { connection } of both) connection?.abort(new CancelledError(CancelReason.Timeout, 'the peer does not close'))
  world.advance(5_000)

  for (const [one, other] of [
    [client, server],
    [server, client],
  ] as const) {
    const { connection, program, codec } = one
    if (connection === undefined) {
      assert.ok(loss !== undefined, 'the tunnel is open')
      continue
    }
    assert.equal(connection.state, State.Closed)
    assert.deepEqual(program.faults, [])
    assert.deepEqual(codec.faults, [])
    assert.equal(codec.released, true)
    assert.equal(program.lines.filter((line) => line.startsWith('over ')).length, 1)
    assert.deepEqual(one.received, other.given.slice(0, one.received.length), 'what arrives is what was sent, up to where it stopped')
    if (program.lines.at(-1)?.endsWith('clean')) {
      assert.equal(connection.bufferedAmount, 0)
      assert.equal(connection.messagesSent, connection.messagesAccepted)
    }
  }
  const bothClean = both.every(({ over }) => over?.endsWith('clean'))
  if (bothClean && loss === undefined) {
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      if (one.discarded) continue
      assert.equal(one.received.length, other.given.length, 'both ended well: nothing was lost')
    }
  }
  if (loss === undefined) stage.finish()
}

for (const [name, protocol] of [
  ['h1', http1Tunnels],
  ['h2', http2Tunnels],
] as const) {
  worldTest(`${name}: write, close, abort, pause and loss may meet in any order`, { seeds: 300 }, (world) => interleave(world, protocol))
}
