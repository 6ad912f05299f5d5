import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PeerError, requestHead, responseHead, type Exchange } from '../http/index.ts'
import { recordingConnection, recordingHandler } from './recording.ts'

const bytes = Buffer.from('0123456789')

test('calls become lines, with content joined whatever its pieces', () => {
  const recording = recordingHandler()
  recording.onHead(responseHead(103, ['link', '</a>']), false)
  recording.onHead(responseHead(200), false)
  recording.onData(bytes, 2, 5, false)
  recording.onData(bytes, 5, 6, false)
  recording.onData(bytes, 0, 0, true)
  recording.onSent(3, true)
  recording.onClose(undefined)
  assert.deepEqual(recording.lines, ['head 103 link:</a>', 'head 200', 'data "2345"', 'end', 'close'])
  assert.deepEqual(recording.faults, [])
  assert.deepEqual([recording.received, recording.sent, recording.ended, recording.closed], [4, 3, true, true])
})

test('requests, trailers, errors and large content have lines too', () => {
  const recording = recordingHandler()
  recording.onHead(requestHead('POST', 'http', 'a.test', '/x', ['a', 'b']), false)
  const large = Buffer.alloc(100)
  recording.onData(large, 0, 100, false)
  recording.onTrailers(['sum', '1'])
  recording.onClose(new PeerError('PEER_RESET', 'gone'))
  assert.deepEqual(recording.lines, ['head POST http://a.test/x a:b', 'data 100 bytes', 'trailers sum:1', 'close PEER_RESET'])
  assert.equal(recordingHandler().lines.length, 0)
})

test('bytes are copied during the call', () => {
  const recording = recordingHandler()
  const buffer = Buffer.from('good')
  recording.onHead(responseHead(200), false)
  recording.onData(buffer, 0, 4, true)
  buffer.fill(0)
  assert.equal(recording.content.toString(), 'good')
})

test('it consumes what it gets unless told not to, and hooks run after the recording', () => {
  let consumed = 0
  const exchange = {
    consume: (count: number) => {
      consumed += count
    },
  } as Exchange
  const seen: number[] = []
  const recording = recordingHandler({ on: { onData: () => seen.push(recording.received) } })
  recording.exchange = exchange
  recording.onHead(responseHead(200), false)
  recording.onData(bytes, 0, 4, false)
  recording.autoConsume = false
  recording.onData(bytes, 4, 7, false)
  assert.deepEqual([consumed, seen], [4, [4, 7]])
})

test('breaches of the contract are written down', () => {
  const head = responseHead(200)
  const faultsOf = (story: (recording: ReturnType<typeof recordingHandler>) => void): string[] => {
    const recording = recordingHandler()
    story(recording)
    return recording.faults
  }
  assert.deepEqual(
    faultsOf((r) => r.onData(bytes, 0, 1, false)),
    ['data before the head'],
  )
  assert.deepEqual(
    faultsOf((r) => {
      r.onHead(head, true)
      r.onData(bytes, 0, 1, false)
    }),
    ['data after the end'],
  )
  assert.deepEqual(
    faultsOf((r) => {
      r.onHead(head, false)
      r.onHead(head, false)
    }),
    ['a head after the final head'],
  )
  assert.deepEqual(
    faultsOf((r) => {
      r.onHead(head, false)
      r.onData(bytes, 3, 3, false)
      r.onData(bytes, 3, 11, false)
    }),
    ['data without bytes and without end', 'data out of the bounds of its buffer'],
  )
  assert.deepEqual(
    faultsOf((r) => {
      r.onHead(head, false)
      r.onClose(undefined)
      r.onSent(1, true)
      r.onClose(undefined)
    }),
    ['a clean close before the message was received', 'a call after onClose', 'a call after onClose'],
  )
  assert.deepEqual(
    faultsOf((r) => {
      r.onHead(head, false)
      r.discarded = true
      r.onClose(undefined)
    }),
    [],
  )
  assert.deepEqual(
    faultsOf((r) => {
      r.onHead(responseHead(101), false)
      r.onHead(responseHead(100), true)
    }),
    ['a 101 head', 'a 1xx head with end'],
  )
})

test('a connection recording keeps lines, exchanges and faults', () => {
  const connection = recordingConnection()
  connection.onReady({ protocol: 'h1', maxExchanges: 1, extendedConnect: true })
  const exchange = {} as Exchange
  const handler = connection.onExchange(exchange)
  assert.equal(connection.exchanges[0], handler)
  assert.equal(connection.exchanges[0]?.exchange, exchange)
  connection.onCapacity(1)
  connection.onDraining()
  connection.onDrained(17, true)
  connection.onClose(undefined)
  assert.deepEqual(connection.lines, ['ready', 'exchange', 'capacity 1', 'draining', 'drained 17 true', 'close'])
  connection.onDraining()
  assert.deepEqual(connection.faults, ['the connection closed before its exchange', 'draining after onClose'])
})
