import assert from 'node:assert/strict'
import { HeddleError, NetworkError, responseHead } from '../http/index.ts'
import { clientScript, ErrorCode, getFields, getHead, postFields, serverScript } from '../testing/h3-peer.ts'
import { recordingHandler } from '../testing/recording.ts'
import { worldTest } from '../testing/seeds.ts'
import { StreamType } from './frame.ts'

const seeds = { seeds: 6 }

worldTest('a server that shuts down says GOAWAY twice, serves what was under way, and refuses the rest (RFC 9114 §5.2)', seeds, (world) => {
  const { peer, engine, connection, double } = serverScript(world)
  const first = peer.request(postFields, false)
  const control = peer.theirs(StreamType.Control)
  peer.wantFrame('SETTINGS', control, { type: 'SETTINGS' })
  engine.shutdown()
  engine.shutdown()
  const { id } = peer.wantFrame('a GOAWAY that refuses nothing', control, { type: 'GOAWAY' })
  assert.ok(id > 2 ** 61 && id % 4 === 0)
  const second = peer.request(getFields)
  assert.equal(connection.exchanges.length, 2, 'what was under way is served')
  world.advance(20)
  peer.wantFrame('a round trip later the one that counts', control, { type: 'GOAWAY', id: 8 })
  const third = peer.request(getFields)
  peer.wantReset('what comes later is refused', third, ErrorCode.RequestRejected)
  peer.wantStopSending('wholly', third, ErrorCode.RequestRejected)
  assert.equal(connection.exchanges.length, 2)
  for (const { exchange } of connection.exchanges) exchange?.sendHead(responseHead(204), true)
  first.sendEnd()
  peer.wantHead('the first is answered', first)
  peer.wantHead('the second is answered', second)
  peer.wantOpen('the client has its time to close')
  world.advance(1_000)
  peer.wantClose('in peace', ErrorCode.NoError)
  assert.equal(connection.closed, true)
  assert.equal(connection.error, undefined)
  assert.equal(double.keptAlive, false)
})

worldTest('a server that shuts down is closed by its client', seeds, (world) => {
  const { peer, engine, connection } = serverScript(world)
  engine.shutdown()
  world.run()
  peer.close(ErrorCode.NoError)
  world.run()
  assert.equal(connection.closed, true)
  assert.equal(connection.error, undefined)
})

worldTest('a client that shuts down says so, finishes, and closes', seeds, (world) => {
  const { peer, engine, connection } = clientScript(world)
  const handler = recordingHandler()
  engine.open(handler)?.sendHead(getHead(), true)
  world.run()
  engine.shutdown()
  assert.equal(engine.open(recordingHandler()), undefined)
  const control = peer.theirs(StreamType.Control)
  peer.wantFrame('SETTINGS', control, { type: 'SETTINGS' })
  peer.wantFrame('it takes no push', control, { type: 'GOAWAY', id: 0 })
  peer.wantOpen('a request is under way')
  peer.wantStream('it', 0).sendHead([':status', '204'], true)
  peer.wantClose('in peace', ErrorCode.NoError)
  assert.equal(handler.error, undefined)
  assert.equal(connection.error, undefined)
  assert.equal(connection.closed, true)
})

worldTest("a server's GOAWAY ends what it does not process, to be tried again elsewhere", seeds, (world) => {
  const { peer, engine, connection, double } = clientScript(world)
  const handlers = [recordingHandler(), recordingHandler(), recordingHandler()]
  for (const handler of handlers.slice(0, 2)) engine.open(handler)?.sendHead(getHead(), true)
  engine.open(handlers[2] as ReturnType<typeof recordingHandler>)
  world.run()
  peer.control.send({ type: 'GOAWAY', id: 4 })
  world.run()
  assert.deepEqual(
    handlers.map(({ error }) => error?.unprocessed),
    [undefined, true, true],
  )
  assert.equal(engine.openable, 0)
  assert.ok(connection.lines.includes('draining'))
  peer.wantStopSending('the second is taken back', peer.wantStream('it', 4), ErrorCode.RequestCancelled)
  peer.wantOpen('the first is under way')
  peer.wantStream('it', 0).sendHead([':status', '204'], true)
  peer.wantClose('then nothing is left', ErrorCode.NoError)
  assert.equal(handlers[0]?.error, undefined)
  assert.equal(connection.error, undefined)
  assert.equal(double.keptAlive, false)
})

worldTest('a smaller GOAWAY takes more with it, an equal one nothing', seeds, (world) => {
  const { peer, engine, connection } = clientScript(world)
  const handlers = [recordingHandler(), recordingHandler()]
  for (const handler of handlers) engine.open(handler)?.sendHead(getHead(), true)
  world.run()
  peer.control.send({ type: 'GOAWAY', id: 2 ** 62 - 512 }, { type: 'GOAWAY', id: 8 }, { type: 'GOAWAY', id: 8 })
  world.run()
  assert.deepEqual([handlers[0]?.closed, handlers[1]?.closed], [false, false])
  peer.control.send({ type: 'GOAWAY', id: 0 })
  world.run()
  assert.deepEqual([handlers[0]?.error?.unprocessed, handlers[1]?.error?.unprocessed], [true, true])
  assert.equal(connection.lines.filter((line) => line === 'draining').length, 1)
})

worldTest('a connection that waits for its last octets to arrive is closed behind them, but not for ever', seeds, (world) => {
  const { peer, engine, connection } = serverScript(world)
  const stream = peer.request(postFields, false)
  const { exchange } = connection.exchanges[0] as { exchange: NonNullable<(typeof connection.exchanges)[0]['exchange']> }
  engine.shutdown()
  exchange.discard()
  exchange.sendHead(responseHead(200), true)
  peer.wantHead('the answer', stream)
  assert.equal(engine.openExchanges, 0)
  // The client neither ends its request nor resets it: QUIC has the stream still.
  peer.wantStopSending('it was told', stream, ErrorCode.NoError)
  world.advance(10_000)
  peer.wantClose('it was waited for', ErrorCode.NoError)
  assert.equal(connection.error, undefined)
})

worldTest('the path is lost: every exchange ends with what QUIC says, and what never left may be tried again', seeds, (world) => {
  const { engine, connection, double } = clientScript(world)
  const [sent, opened] = [recordingHandler(), recordingHandler()]
  engine.open(sent)?.sendHead(getHead(), true)
  world.run()
  engine.open(opened)
  double.lose('reset')
  world.advance(1)
  assert.ok(sent.error instanceof NetworkError && opened.error instanceof NetworkError)
  assert.deepEqual([sent.error.unprocessed, opened.error.unprocessed], [false, true])
  assert.equal(connection.error?.code, 'NETWORK_ERROR')
  assert.equal(engine.open(recordingHandler()), undefined)
})

worldTest('the peer closes in the middle: with a code, and with H3_NO_ERROR', seeds, (world) => {
  for (const code of [ErrorCode.NoError, ErrorCode.InternalError]) {
    const { peer, engine, connection } = clientScript(world)
    const handler = recordingHandler()
    engine.open(handler)?.sendHead(getHead(), true)
    world.run()
    peer.close(code)
    world.run()
    assert.equal(handler.error?.code, 'PEER_CLOSED')
    assert.equal(handler.error.wireCode, code)
    assert.equal(connection.error?.wireCode, code)
    assert.equal(connection.closed, true)
  }
})

worldTest('abort ends everything at once, with the error it was given', seeds, (world) => {
  const { peer, engine, connection } = serverScript(world)
  peer.request(getFields)
  const error = new HeddleError('SHUTDOWN', 'enough')
  engine.abort(error)
  assert.equal(connection.closed, false, 'handlers are told in the next run')
  peer.wantClose('at once', ErrorCode.NoError)
  assert.equal(connection.exchanges[0]?.error, error)
  assert.equal(connection.error, error)
  assert.equal(engine.deadline, Infinity)
})

worldTest('an idle server says GOAWAY, so that a request that meets it is known as unprocessed', seeds, (world) => {
  const { peer, connection } = serverScript(world, { options: { limits: { idleTimeout: 5_000 } } })
  const control = peer.theirs(StreamType.Control)
  peer.wantFrame('SETTINGS', control, { type: 'SETTINGS' })
  world.advance(5_001)
  peer.wantFrame('goodbye', control, { type: 'GOAWAY', id: 0 })
  peer.wantReset('a request that meets it', peer.request(getFields), ErrorCode.RequestRejected)
  world.advance(2_000)
  peer.wantClose('then it closes', ErrorCode.NoError)
  assert.equal(connection.error, undefined)
})
