import assert from 'node:assert/strict'
import { test } from 'node:test'
import { responseHead } from '../http/index.ts'
import { getFields, serverScript } from '../testing/h2-peer.ts'
import { World } from '../testing/index.ts'
import { ErrorCode } from './frame.ts'
import { SettingId } from './settings.ts'

/** Asks with each priority, lets all answer with `size` octets, and returns the streams in the order of their DATA frames. */
function order(
  priorities: readonly string[],
  size: number,
  before: (peer: ReturnType<typeof serverScript>['peer']) => void = () => {},
): number[] {
  const { peer, connection } = serverScript(new World(), { settings: [[SettingId.InitialWindowSize, 1_000_000]] })
  before(peer)
  for (const [at, priority] of priorities.entries()) {
    peer.sendHead(1 + 2 * at, priority === '' ? getFields : [...getFields, 'priority', priority], true)
  }
  peer.wantIdle('the requests')
  // The window of the connection is used up first, so that nothing leaves before all is there.
  const [blocker, ...others] = connection.exchanges
  blocker?.exchange?.sendHead(responseHead(200), false)
  blocker?.exchange?.sendOwned(Buffer.alloc(65_535), true)
  peer.wantHead('the first', 1, false)
  peer.wantContent('all there is room for', 1, 65_535, true)
  for (const { exchange } of others) {
    exchange?.sendHead(responseHead(200), false)
    exchange?.sendOwned(Buffer.alloc(size), true)
  }
  for (let at = 1; at < priorities.length; at++) peer.wantHead('a head', 1 + 2 * at, false)
  peer.send({ type: 'WINDOW_UPDATE', streamId: 0, increment: 10_000_000 })
  const served: number[] = []
  for (let left = (priorities.length - 1) * size; left > 0;) {
    const frame = peer.wantFrame('content', { type: 'DATA' })
    served.push(frame.streamId)
    left -= frame.data.length
  }
  return served
}

test('by urgency, most urgent first', () => {
  assert.deepEqual(order(['', 'u=7', 'u=0', 'u=5', 'u=1'], 20_000), [5, 5, 9, 9, 7, 7, 3, 3])
})

test('one by one of one urgency, unless they are incremental', () => {
  assert.deepEqual(order(['', 'u=3', 'u=3', 'u=3'], 40_000), [3, 3, 3, 5, 5, 5, 7, 7, 7])
  assert.deepEqual(order(['', 'i', 'i', 'i'], 40_000), [3, 5, 7, 3, 5, 7, 3, 5, 7])
})

test('those of which nothing was said share in turns', () => {
  assert.deepEqual(order(['', '', '', ''], 40_000), [3, 5, 7, 3, 5, 7, 3, 5, 7])
})

test('PRIORITY_UPDATE counts for requests that are there, and for those that come', () => {
  assert.deepEqual(
    order(['', '', 'u=1', ''], 10_000, (peer) =>
      peer.send({ type: 'PRIORITY_UPDATE', prioritizedId: 7, value: 'u=0' }, { type: 'PRIORITY_UPDATE', prioritizedId: 5, value: 'u=7' }),
    ),
    [7, 3, 5],
  )
  const { peer, connection } = serverScript(new World())
  peer.sendHead(1, getFields, true).send({ type: 'PRIORITY_UPDATE', prioritizedId: 1, value: 'u=2, i' })
  peer.wantIdle('told')
  assert.deepEqual(connection.exchanges[0]?.calls.at(-1), { call: 'priority', priority: { urgency: 2, incremental: true } })
})

test('what is said of requests that never come is bounded, and too much of it is an attack', () => {
  const { peer, engine } = serverScript(new World(), { options: { limits: { emptyBurst: 500, emptyRate: 0 } } })
  for (let id = 1; id <= 400; id += 2) peer.send({ type: 'PRIORITY_UPDATE', prioritizedId: id, value: 'u=1' })
  peer.wantIdle('noted, or not')
  for (let i = 0; i < 400; i++) peer.send({ type: 'PRIORITY_UPDATE', prioritizedId: 1, value: 'u=1' })
  peer.wantGoaway('enough', ErrorCode.EnhanceYourCalm)
  assert.equal(engine.openExchanges, 0)
})

test('a handler changes the priority of its own answer', () => {
  const { peer, connection } = serverScript(new World(), { settings: [[SettingId.InitialWindowSize, 0]] })
  peer.sendHead(1, getFields, true).sendHead(3, getFields, true)
  peer.wantIdle('two requests')
  for (const { exchange } of connection.exchanges) {
    exchange?.sendHead(responseHead(200), false)
    exchange?.sendOwned(Buffer.alloc(1000), true)
  }
  connection.exchanges[1]?.exchange?.setPriority({ urgency: 0, incremental: false })
  peer.wantHead('one', 1, false)
  peer.wantHead('two', 3, false)
  peer.send({ type: 'SETTINGS', ack: false, settings: [[SettingId.InitialWindowSize, 10_000]] })
  peer.wantFrame('taken', { type: 'SETTINGS', ack: true })
  peer.wantContent('the urgent one', 3, 1000, true)
  peer.wantContent('the other', 1, 1000, true)
})
