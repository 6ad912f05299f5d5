import assert from 'node:assert/strict'
import { describe } from 'node:test'
import type { Exchange, ExchangeHandler, HeddleError } from '../../http/index.ts'
import { WebSocketConnection } from '../../ws/index.ts'
import type { ConformanceProtocol } from '../conformance/stage.ts'
import { worldTest } from '../seeds.ts'
import type { World } from '../world.ts'
import type { WebSocketCase } from './case.ts'
import { webSocketCases } from './cases.ts'
import { EchoProgram } from './echo-program.ts'
import { PlayedPeer } from './played-peer.ts'
import { caseOptions, peersOf } from './run-case.ts'
import { TunnelStage } from './tunnel.ts'

/** How much of {@link webSocketConformance} is run. */
export interface WebSocketConformanceOptions {
  /** Seeds per case. Default 2. */
  readonly seeds?: number
}

/**
 * Registers `node:test` tests that run every WebSocket case over `protocol`, whose server opens tunnels for
 * `websocket`: a WebSocket at one end, in each role, and a peer at the other that sends octets in pieces.
 */
export function webSocketConformance(name: string, protocol: ConformanceProtocol, options: WebSocketConformanceOptions = {}): void {
  const { seeds = 2 } = options
  for (const heading of new Set(webSocketCases.map((played) => played.heading))) {
    void describe(`${name}: ${heading}`, () => {
      for (const played of webSocketCases.filter((candidate) => candidate.heading === heading)) {
        worldTest(played.name, { seeds }, (world) => {
          for (const peerRole of peersOf(played)) runOver(world, protocol, played, peerRole)
        })
      }
    })
  }
}

function runOver(world: World, protocol: ConformanceProtocol, played: WebSocketCase, peerRole: 'client' | 'server'): void {
  const { random } = world
  const role = peerRole === 'client' ? 'server' : 'client'
  const program = new EchoProgram()
  const peer = new PeerEnd(world, new PlayedPeer(played, peerRole))
  // A fault lets go of what the codec still has: what is answered before it would be a matter of luck.
  const slow = random.chance(0.5) && !(played.told.includes('failing') && played.answered.length > 1)
  const codecs = caseOptions(played, role, { schedule: (run) => (slow ? world.after(random.integer(0, 20), run) : run()) })
  const stage = new TunnelStage(world, protocol)
  const webSocket = (exchange: Exchange): void => {
    program.connection = new WebSocketConnection(exchange, program, codecs)
  }
  const playPeer = (exchange: Exchange): void => peer.open(exchange)
  if (role === 'client') stage.open(webSocket, playPeer)
  else stage.open(playPeer, webSocket)
  world.run()

  const who = `as a ${role}`
  assert.deepEqual(program.lines, played.told, `what the program is told, ${who}`)
  assert.deepEqual(peer.played.lines, played.answered, `what the peer gets, ${who}`)
  assert.deepEqual([...program.faults, ...peer.played.faults, ...(codecs.codec?.faults ?? [])], [])
  assert.equal(program.connection?.bufferedAmount, 0)
  assert.equal(peer.closed, true, 'the tunnel ended by itself')
  assert.equal(peer.error, undefined, 'the tunnel ended well')
  stage.finish()
}

/** The peer's end of a tunnel: sends what the case says, in pieces chosen by the seed, as far as it may. */
class PeerEnd implements ExchangeHandler {
  readonly played: PlayedPeer
  closed = false
  error: HeddleError | undefined
  readonly #world: World
  readonly #most: number
  #exchange: Exchange | undefined
  #sentTo = 0
  #blocked = false
  #otherEnded = false
  #ended = false

  constructor(world: World, played: PlayedPeer) {
    this.played = played
    this.#world = world
    // Many pieces of a few octets, for what is short.
    this.#most = Math.max(world.random.pick([1, 20, 100_000]), Math.ceil(played.octets.length / 200))
  }

  open(exchange: Exchange): void {
    this.#exchange = exchange
    exchange.handler = this
    this.#pump()
  }

  #pump(): void {
    const { octets } = this.played
    const exchange = this.#exchange as Exchange
    while (this.#sentTo < octets.length && !this.#blocked) {
      const start = this.#sentTo
      this.#sentTo = Math.min(octets.length, start + this.#world.random.integer(1, this.#most))
      this.#blocked = !exchange.sendData(octets, start, this.#sentTo, false)
    }
    if (this.#ended || this.#sentTo < octets.length || !this.played.mayEnd(this.#otherEnded)) return
    this.#ended = true
    exchange.sendData(octets, 0, 0, true)
  }

  onHead(): void {}

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.played.receive(buffer.subarray(start, limit))
    if (limit > start) this.#exchange?.consume(limit - start)
    if (end) this.#otherEnded = true
    this.#pump()
  }

  onTrailers(): void {}

  onSent(_byteCount: number, writable: boolean): void {
    if (!writable) return
    this.#blocked = false
    this.#pump()
  }

  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    this.closed = true
    this.error = error
  }
}
