import { deepEqual, equal, ok } from 'node:assert/strict'
import { worldTest } from 'heddle/testing'
import { get, message, ok as okResponse, wantHead } from './messages.ts'
import { Rig } from './rig.ts'

/** A link that holds little, so that what piles up piles up in the gateway. */
const narrow = { capacity: 16_384 }
const piece = Buffer.alloc(16_384, 0x61)
const total = 4 * 1024 * 1024
/**
 * What may lie between a writer and a reader that has stopped: the link's two directions of kernel
 * buffers, the receive window and the send queue of each leg with one read or turn more, and what
 * a socket keeps of one write.
 */
const mostBetween = 700_000

worldTest('a client that stops reading stops the upstream; nothing piles up, nothing is lost', { seeds: 3 }, async (world) => {
  const rig = await Rig.make(world, { clientLink: narrow })
  const upstream = rig.upstream('10.0.0.1', 8080, narrow)
  let client: { pause(): void; resume(): void; write(chunk: Uint8Array): void } | undefined
  let received = 0
  world.network.connect('gateway', 80, (_error, connection) => {
    const socket = connection!.socket
    client = { pause: () => void socket.pause(), resume: () => void socket.resume(), write: (chunk) => void socket.write(chunk) }
    socket.on('data', ((chunk: Uint8Array) => (received += chunk.length)) as never)
    socket.write(Buffer.from(get('/big')))
  })
  world.run()
  wantHead(upstream.peer(), 'the request')
  const socket = upstream.sockets[0]!
  upstream.peer().send(message(['HTTP/1.1 200 OK', `Content-Length: ${total}`]))
  world.run()
  client?.pause()
  let sent = 0
  // As fast as the link takes it, until it takes nothing more.
  while (sent < total && socket.writableLength === 0) {
    socket.write(piece)
    sent += piece.length
    world.run()
  }
  ok(sent < mostBetween, `${sent} bytes were taken for a reader that stands still`)
  ok(sent > 65_536, 'there is a window all the same')
  client?.resume()
  while (sent < total) {
    if (socket.writableLength === 0) {
      socket.write(piece)
      sent += piece.length
    }
    world.advance(1)
  }
  world.advance(1_000)
  ok(received > total)
  equal(rig.record().responseSize, total)
  deepEqual(rig.leftovers(), [])
})

worldTest('an upstream that stops reading stops the client', { seeds: 3 }, async (world) => {
  const rig = await Rig.make(world, { clientLink: narrow })
  const upstream = rig.upstream('10.0.0.1', 8080, narrow)
  let client: { write(chunk: Uint8Array): void; readonly writableLength: number } | undefined
  let answer = ''
  world.network.connect('gateway', 80, (_error, connection) => {
    client = connection!.socket
    connection!.socket.on('data', ((chunk: Uint8Array) => (answer += Buffer.from(chunk).toString('latin1'))) as never)
    connection!.socket.write(Buffer.from(message(['POST / HTTP/1.1', 'Host: a', `Content-Length: ${total}`])))
  })
  world.run()
  world.advance(10)
  wantHead(upstream.peer(), 'the request')
  const socket = upstream.sockets[0]!
  socket.pause()
  let sent = 0
  while (sent < total && client!.writableLength === 0) {
    client!.write(piece)
    sent += piece.length
    world.run()
  }
  ok(sent < mostBetween, `${sent} bytes were taken for a reader that stands still`)
  socket.resume()
  while (sent < total) {
    if (client!.writableLength === 0) {
      client!.write(piece)
      sent += piece.length
    }
    world.advance(1)
  }
  world.advance(1_000)
  equal(upstream.peer().received.length, total)
  upstream.peer().send(okResponse())
  world.advance(10)
  ok(answer.includes('200 OK'))
  equal(rig.record().requestSize, total)
  deepEqual(rig.leftovers(), [])
})

worldTest('a client that never reads is given up after sendTimeout, and its upstream with it', { seeds: 3 }, async (world) => {
  const rig = await Rig.make(world, { clientLink: narrow, listener: { limits: { sendTimeout: 5_000 } as never } })
  const upstream = rig.upstream()
  world.network.connect('gateway', 80, (_error, connection) => {
    connection!.socket.write(Buffer.from(get('/big')))
    connection!.socket.pause()
  })
  world.run()
  wantHead(upstream.peer(), 'the request')
  upstream.peer().send(message(['HTTP/1.1 200 OK', 'Content-Length: 1000000'], 'x'.repeat(500_000)))
  world.advance(20_000)
  equal(upstream.peer().closedBy === 'no', false)
  equal(rig.record().reason, 'client_timeout')
  deepEqual(rig.leftovers(), [])
})
