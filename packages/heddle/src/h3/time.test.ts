import assert from 'node:assert/strict'
import { requestHead, responseHead } from '../http/index.ts'
import { clientScript, ErrorCode, getFields, getHead, postFields, serverScript } from '../testing/h3-peer.ts'
import { recordingHandler } from '../testing/recording.ts'
import { worldTest } from '../testing/seeds.ts'

const seeds = { seeds: 4 }

worldTest('SETTINGS must come in time', seeds, (world) => {
  const { peer, connection } = serverScript(world, { handshake: false, options: { limits: { settingsTimeout: 2_000 } } })
  world.advance(1_900)
  peer.wantOpen('there is time')
  world.advance(200)
  peer.wantClose('and now there is none', ErrorCode.MissingSettings)
  assert.equal(connection.error?.code, 'HEAD_TIMEOUT')
})

worldTest('a head that comes octet by octet takes no longer than the limit', seeds, (world) => {
  const { peer, connection, engine } = serverScript(world, { options: { limits: { headTimeout: 3_000 } } })
  const stream = peer.open().sendBytes(Uint8Array.of(1, 60, 0, 0))
  for (let i = 0; i < 10; i++) {
    world.advance(400)
    if (stream.reset === undefined) stream.sendBytes(Uint8Array.of(0xd1))
  }
  peer.wantReset('the stream is over', stream, ErrorCode.RequestCancelled)
  peer.wantOpen('the connection is not')
  assert.equal(connection.exchanges.length, 0)
  assert.equal(engine.openExchanges, 0)
})

worldTest('content that stops coming, an answer that does not come, a peer that takes nothing', seeds, (world) => {
  const server = serverScript(world, { options: { limits: { bodyTimeout: 2_000 } } })
  const upload = server.peer.request(postFields, false).sendContent('abc')
  world.advance(2_100)
  server.peer.wantReset('the upload', upload, ErrorCode.RequestCancelled)
  assert.equal(server.connection.exchanges[0]?.error?.code, 'BODY_TIMEOUT')

  const client = clientScript(world, { options: { limits: { responseTimeout: 2_000, sendTimeout: 3_000 } }, quic: { streamWindow: 1_000 } })
  const [waiting, stalled] = [recordingHandler(), recordingHandler()]
  client.engine.open(waiting)?.sendHead(getHead(), true)
  const exchange = client.engine.open(stalled)
  exchange?.sendHead(requestHead('POST', 'http', 'origin.test', '/'), false)
  world.run()
  const stream = client.peer.wantStream('the upload', 4)
  // A peer that reads, and gives no window.
  Object.defineProperty(stream.quic, 'consume', { value: () => {} })
  exchange?.sendOwned(Buffer.alloc(10_000), true)
  world.advance(2_200)
  assert.equal(waiting.error?.code, 'HEAD_TIMEOUT')
  assert.equal(stalled.closed, false)
  world.advance(1_200)
  assert.equal(stalled.error?.code, 'SEND_TIMEOUT')
  client.peer.wantClose('every stream was stalled', ErrorCode.ExcessiveLoad)
})

worldTest('content that a handler does not consume is not late', seeds, (world) => {
  const { peer, connection } = serverScript(world, { options: { limits: { bodyTimeout: 2_000, streamWindow: 4_000 } } })
  peer.request(postFields, false)
  const stream = peer.request(postFields, false)
  const [first, second] = connection.exchanges
  assert.ok(first !== undefined && second !== undefined)
  second.autoConsume = false
  stream.sendContent(Buffer.alloc(3_000))
  world.advance(10_000)
  assert.equal(first.error?.code, 'BODY_TIMEOUT', 'of the first there is nothing to consume')
  assert.equal(second.closed, false)
  second.exchange?.consume(3_000)
  world.advance(1_900)
  assert.equal(second.closed, false, 'the time counts from what was consumed')
  world.advance(2_500)
  assert.equal(second.error?.code, 'BODY_TIMEOUT')
})

worldTest('a head that waits for the table of QPACK, whose entries do not come, is late like any other', seeds, (world) => {
  const { peer, connection, engine } = serverScript(world, { options: { limits: { headTimeout: 3_000 } } })
  // Required Insert Count 1, and a reference to the one entry.
  const stream = peer.open().sendBytes(Uint8Array.of(1, 3, 2, 0, 0x80), true)
  peer.wantOpen('it waits')
  assert.equal(engine.openExchanges, 1)
  world.advance(3_100)
  peer.wantReset('no longer', stream, ErrorCode.RequestCancelled)
  assert.equal(connection.exchanges.length, 0)
  assert.equal(engine.openExchanges, 0)
})

worldTest('keep-alive is wanted while there are exchanges, and no alarm is left when there are none', seeds, (world) => {
  const { peer, connection, double, engine } = serverScript(world)
  assert.equal(double.keptAlive, false)
  const stream = peer.request(getFields)
  assert.equal(double.keptAlive, true)
  connection.exchanges[0]?.exchange?.sendHead(responseHead(204), true)
  peer.wantHead('the answer', stream)
  assert.equal(double.keptAlive, false)
  peer.close(ErrorCode.NoError)
  world.run()
  assert.equal(engine.deadline, Infinity)
  assert.equal(world.armed, 0)
})
