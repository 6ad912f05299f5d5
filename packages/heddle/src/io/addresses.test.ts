import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { ipEnd } from './addresses.ts'
import { listen, systemClock, type Accepted } from './index.ts'

test('an IPv4 end of a socket of both families is an IPv4 end', () => {
  assert.deepEqual(ipEnd('::ffff:127.0.0.1', 80, 'IPv6'), { address: '127.0.0.1', port: 80, family: 'IPv4' })
  assert.deepEqual(ipEnd('127.0.0.1', 80, 'IPv4'), { address: '127.0.0.1', port: 80, family: 'IPv4' })
  for (const address of ['::1', '::ffff:0:7f00:1', '::ffff:', '::ffff:1.2.3', '64:ff9b::127.0.0.1']) {
    assert.deepEqual(ipEnd(address, 80, 'IPv6'), { address, port: 80, family: 'IPv6' })
  }
  assert.deepEqual(ipEnd(undefined, undefined, undefined), { address: '', port: 0, family: 'IPv4' })
})

test('a listener on all addresses tells an IPv4 peer as one', { timeout: 20_000 }, async (t) => {
  const { promise, resolve } = Promise.withResolvers<Accepted>()
  const listener = await listen({ clock: systemClock(), onConnection: resolve }).catch(() => undefined)
  if (listener?.address.family !== 'IPv6') {
    await listener?.stop()
    return t.skip('this machine has no IPv6')
  }
  const socket = connect(listener.address.port, '127.0.0.1')
  await once(socket, 'connect')
  const { info, socket: accepted } = await promise
  assert.deepEqual(info.remote, { address: '127.0.0.1', port: socket.localPort, family: 'IPv4' })
  assert.deepEqual(info.local, { address: '127.0.0.1', port: listener.address.port, family: 'IPv4' })
  accepted.destroy()
  socket.destroy()
  await listener.stop()
})
