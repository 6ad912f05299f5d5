/** Errors say which server they are about. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, HeddleError, NetworkError, ProtocolError } from '../http/index.ts'
import { Client } from './client.ts'
import { Bench, type DoubleStreams, type Sent } from './double.test.ts'

function ask(bench: Bench, name: string, url = 'https://secure.test:8443'): Sent {
  return bench.request(name, undefined, bench.pool.directory.find(url))
}

const messages = (sent: readonly Sent[]): (string | undefined)[] => sent.map(({ handler }) => handler.error?.message)

test('what ends a request, or the connection with all that are on it, comes with the name of the server', () => {
  const bench = new Bench()
  const sent = [ask(bench, 'reset'), ask(bench, 'a'), ask(bench, 'b')]
  bench.turn()
  const streams = bench.dials[0]?.acceptStreams() as DoubleStreams
  streams.reset(0, 2)
  const error = new ProtocolError('a frame of no length')
  for (const { handler } of streams.exchanges.splice(0)) handler.onClose(error)
  streams.close(error)
  const named = 'a frame of no length (https://secure.test:8443)'
  assert.deepEqual(messages(sent), ['reset (https://secure.test:8443)', named, named])
  assert.equal(error.message, 'a frame of no length')
  assert.ok(sent[1]?.handler.error instanceof ProtocolError)
})

test('so does a connection that cannot be made, and a queue that is full', () => {
  const bench = new Bench({ maxWaitingPerOrigin: 1 })
  const sent = [ask(bench, 'waits'), ask(bench, 'is too many'), ask(bench, 'six', 'http://[::1]')]
  bench.turn()
  for (const dial of bench.dials) dial.refuse()
  bench.turn()
  assert.deepEqual(messages(sent), [
    'refused (https://secure.test:8443)',
    'too many requests wait for a connection to https://secure.test:8443',
    'refused (http://[::1])',
  ])
})

test('a message that tells host and port is left as it is, and so is what this side did', () => {
  const bench = new Bench()
  for (const [url, message] of [
    ['https://secure.test', 'no connection to secure.test:443: connect ECONNREFUSED'],
    ['http://[::1]:81', 'no connection to [::1]:81: connect ECONNREFUSED'],
  ] as const) {
    const error = new NetworkError('CONNECT_FAILED', message)
    assert.equal(bench.pool.directory.find(url).errorAbout(error), error)
  }
  assert.equal(
    bench.pool.directory.find('http://t').errorAbout(new NetworkError('TLS_FAILED', 'it was not to be')).message,
    'it was not to be (http://t)',
  )

  const sent = [ask(bench, 'cancelled'), ask(bench, 'destroyed'), ask(bench, 'waits', 'http://never.test')]
  bench.turn()
  bench.dials[0]?.acceptStreams()
  sent[0]?.ticket.cancel(CancelReason.Cancelled)
  bench.turn()
  bench.pool.destroy(new HeddleError('SHUTDOWN', 'over'))
  bench.turn()
  bench.turn()
  assert.deepEqual(messages(sent), ['cancelled by this side', 'over', 'over'])
})

test('fetch rejects with it', async (t) => {
  const client = new Client({
    lookup: (_host, _options, done) => done(Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' }), '', 0),
  })
  t.after(() => client.destroy())
  await assert.rejects(client.fetch('https://nowhere.test/path'), { code: 'DNS_FAILED', message: /\(https:\/\/nowhere\.test\)$/ })
})
