import assert from 'node:assert/strict'
import { test } from 'node:test'
import { World } from '../testing/index.ts'
import { StreamDriver } from './tcp-driver.ts'
import { TestEngine } from './test-engine.test.ts'

test('an engine that makes place for another: the turn goes on with the new one, and is counted there', () => {
  const world = new World()
  const [socket, peer] = world.link()
  const [first, second] = [new TestEngine(), new TestEngine()]
  const total = { writes: 0, bytesRead: 0, bytesWritten: 0 }
  const driver = new StreamDriver(socket, world)
  let answer = ''
  peer.on('data', (chunk) => (answer += Buffer.from(chunk).toString()))
  first.onReceive = (bytes) => {
    driver.replace(second, total)
    second.receive(bytes, 0, bytes.length, world.now())
    second.send('hello')
  }
  second.deadline = world.now() + 50
  driver.attach(first)
  peer.write(Buffer.from('abc'))
  world.run()
  assert.equal(answer, 'hello')
  assert.deepEqual(total, { writes: 1, bytesRead: 3, bytesWritten: 5 }, 'in the turn of the read')
  assert.equal(socket.writes, 1)

  peer.write(Buffer.from('defg'))
  world.advance(100)
  peer.end()
  world.run()
  assert.deepEqual(first.calls, ['receive 3'])
  assert.deepEqual(second.calls, ['receive 3', 'receive 4', 'expire', 'end'])

  second.send(' again')
  world.run()
  assert.equal(answer, 'hello again', 'dirt of the new engine is written')
  first.send('not heard')
  world.run()
  assert.equal(answer, 'hello again')
  socket.destroy()
  world.run()
  assert.equal(first.error, undefined)
  assert.equal(second.error?.code, 'NETWORK_ERROR')
})

test('an engine may make place when its time is up or the peer ends', () => {
  for (const how of ['expire', 'end']) {
    const world = new World()
    const [socket, peer] = world.link()
    const [first, second] = [new TestEngine(), new TestEngine()]
    const driver = new StreamDriver(socket, world)
    const change = (): void => {
      driver.replace(second)
      second.closing = 'close'
    }
    first.deadline = how === 'expire' ? world.now() + 10 : Infinity
    first.onExpire = change
    first.onEnd = change
    driver.attach(first)
    if (how === 'end') peer.end()
    let ended = false
    peer.on('end', () => (ended = true))
    peer.resume()
    world.advance(100)
    assert.ok(ended, how)
    peer.end()
    world.run()
  }
})

test('an engine that has left is not replaced', () => {
  const world = new World()
  const [socket, peer] = world.link()
  const [first, second] = [new TestEngine(), new TestEngine()]
  const driver = new StreamDriver(socket, world)
  driver.attach(first)
  socket.destroy()
  world.run()
  driver.replace(second)
  peer.write(Buffer.from('abc'))
  world.run()
  assert.deepEqual(second.calls, [])
})
