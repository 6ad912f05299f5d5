/** A path is validated though what is in flight fills the window: it may all be lost with the path before (RFC 9000 §9.4). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientAddress, Echo, QuicWorld, RecordingApplication } from '../testing/index.ts'
import type { QuicConnection } from './connection.ts'

const size = 200_000

/** A server that sends much on each stream, and a client that only waits for it. */
class Download {
  readonly world: QuicWorld
  readonly client: QuicConnection
  readonly server: QuicConnection
  came: number

  constructor() {
    this.came = 0
    this.world = new QuicWorld({
      accept: () =>
        new RecordingApplication((stream) => {
          stream.sendOwned(new Uint8Array(size), true)
          return { onData() {}, onReset() {}, onStopSending() {}, onSent() {}, onClose() {} }
        }),
    })
    this.client = this.world.connected()
    this.world.pass(300)
    const [server] = this.world.accepted as [QuicConnection]
    this.server = server
    const stream = this.client.open(true, {
      onData: (_buffer, start, limit) => {
        this.came += limit - start
        stream?.consume(limit - start)
      },
      onReset() {},
      onStopSending() {},
      onSent() {},
      onClose() {},
    })
    stream?.send(new Uint8Array(1), 0, 1, true)
  }

  /** The client has another address, and one PING is all that it says. */
  moveTo(index: number, port?: number): void {
    this.world.address = clientAddress(index, port)
    this.client.pingWanted = true
  }
}

for (const [name, index, port] of [
  ['port', 1, 5_001],
  ['address', 2, 5_000],
] as const) {
  test(`a client that only waits moves to another ${name} while all that the window allows is under way`, () => {
    const download = new Download()
    const { world, server } = download
    world.run(() => download.came > 20_000)
    const { recovery } = server
    assert.ok(!recovery.canSend(world.now), 'the window is full')
    download.moveTo(index, port)
    // Everything under way is lost.
    world.flights = []
    const moved = world.now
    assert.ok(world.run(() => server.paths.current.validated && server.paths.current.route.remote.port === port, 1_000))
    assert.ok(world.now - moved <= 60, 'in two round trips at most')
    assert.ok(
      world.run(() => download.came === size, 5_000),
      `${download.came} octets of ${size}`,
    )
    assert.deepEqual(server.paths.current.route.remote, clientAddress(index, port))
  })
}

test('a challenge goes beside the window to the address before, too', () => {
  const download = new Download()
  const { world, server } = download
  world.run(() => download.came > 20_000)
  download.moveTo(1, 5_001)
  world.flights = []
  const before = world.log.length
  world.pass(25)
  const toOld = world.log.slice(before).filter(({ toServer, to }) => !toServer && to.port === clientAddress(1).port)
  assert.ok(toOld.length > 0 && toOld.every(({ bytes }) => bytes.length === 1_200), 'RFC 9000 §9.3.3')
  assert.ok(world.run(() => download.came === size, 5_000))
  assert.ok(server.paths.current.validated)
})

test('an answer to a challenge is held back by the window, as what a peer asks for without end must be (RFC 9000 §8.2.2)', () => {
  const world = new QuicWorld()
  const client = world.connected()
  world.pass(300)
  const [server] = world.accepted as [QuicConnection]
  const echo = new Echo(client, 400_000)
  world.run(() => !server.recovery.canSend(world.now))
  const sent = world.log.length
  for (let i = 0; i < 20; i++) server.paths.current.receiveChallenge(new Uint8Array(8).fill(i), 0)
  world.flush()
  assert.equal(world.log.length, sent)
  assert.ok(world.run(() => echo.isClosed && server.paths.current.responses.length === 0, 10_000))
})
