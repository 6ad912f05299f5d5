import assert from 'node:assert/strict'
import { codecSettings, WebSocketConnection, type WebSocketOptions } from '../../ws/index.ts'
import type { WebSocketCase } from './case.ts'
import { EchoProgram } from './echo-program.ts'
import { PlayedPeer } from './played-peer.ts'
import { TestCodec, type TestCodecOptions } from './test-codec.ts'
import { TunnelDouble } from './tunnel-double.ts'

/** The roles a peer plays in `played`. */
export function peersOf(played: WebSocketCase): readonly ('client' | 'server')[] {
  return played.peer === undefined ? ['client', 'server'] : [played.peer]
}

/** The options of the WebSocket that `played` is for, with a codec of its own. */
export function caseOptions(
  { deflate, limits, fragmentSize }: WebSocketCase,
  role: 'client' | 'server',
  codecOptions?: TestCodecOptions,
): WebSocketOptions & { readonly codec: TestCodec | undefined } {
  const codec = deflate === undefined ? undefined : new TestCodec(codecSettings(role, deflate), codecOptions)
  let masks = 0x1234_5678
  return {
    role,
    limits,
    fragmentSize,
    maskKey: role === 'server' ? undefined : () => (masks = (masks * 1_103_515_245 + 12_345) | 0),
    deflate: deflate === undefined || codec === undefined ? undefined : { parameters: deflate, codec, threshold: 0 },
    codec,
  }
}

/** Runs a case on the engine alone, its input cut at `cuts`. */
export function runCase(played: WebSocketCase, peerRole: 'client' | 'server', cuts: readonly number[]): void {
  const role = peerRole === 'client' ? 'server' : 'client'
  const tunnel = new TunnelDouble()
  const program = new EchoProgram()
  const peer = new PlayedPeer(played, peerRole)
  const options = caseOptions(played, role)
  const connection = new WebSocketConnection(tunnel, program, options)
  program.connection = connection
  let at = 0
  let failedAt = -1
  for (const cut of [...cuts, peer.octets.length]) {
    tunnel.receive(peer.octets.subarray(at, cut))
    if (failedAt < 0 && program.lines.includes('failing')) failedAt = cut
    tunnel.transmit()
    peer.receive(tunnel.take())
    at = cut
  }
  const { delivered } = tunnel
  if (peer.mayEnd(tunnel.ended)) tunnel.receiveEnd()
  tunnel.transmit()
  peer.receive(tunnel.take())
  tunnel.transmit()

  assert.deepEqual(program.lines, played.told, 'what the program is told')
  assert.deepEqual(peer.lines, played.answered, 'what the peer gets')
  assert.deepEqual([...program.faults, ...peer.faults, ...tunnel.faults, ...(options.codec?.faults ?? [])], [])
  assert.equal(tunnel.closed, true, 'the tunnel ended by itself')
  assert.equal(tunnel.consumed, delivered, 'credit is given for everything')
  assert.equal(connection.bufferedAmount, 0)
  if (options.codec !== undefined) assert.equal(options.codec.released, true, 'the codec is released')
  if (played.failsAt !== undefined && cuts.length === peer.octets.length - 1) {
    // A mask makes each header longer, but the first two octets come before it.
    assert.equal(failedAt, played.failsAt === 2 || peerRole === 'server' ? played.failsAt : played.failsAt + 4, 'when the fault is seen')
  }
}

/** Cuts that are worth trying for input of `length`: none, every one by itself, all of them, and some sizes of pieces. */
export function* usefulCuts(length: number): Generator<readonly number[]> {
  yield []
  if (length <= 160) for (let cut = 1; cut < length; cut++) yield [cut]
  for (const size of [1, 2, 3, 7, 1_460, 65_536]) {
    if (size < length && length / size <= 5_000) yield Array.from({ length: Math.ceil(length / size) - 1 }, (_, i) => (i + 1) * size)
  }
}
