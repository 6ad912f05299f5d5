import assert from 'node:assert/strict'
import { test } from 'node:test'
import { World, type ScriptedPeer } from 'heddle/testing'
import { worldServer } from './target.ts'

const host = 'Host: origin.test\r\n'
const head = /HTTP\/1\.1 (\d{3}) [^\r]*\r\n(?:[^\r]+\r\n)*\r\n/
const ok = /HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)*\r\n(\d+)\n/

function wantStatus(peer: ScriptedPeer, why: string, status: number): void {
  assert.match(peer.want(why, head).toString('latin1'), new RegExp(`^HTTP/1.1 ${status} `), why)
}

const heads: Record<string, readonly [string, number]> = {
  '101 field lines': [`GET / HTTP/1.1\r\n${host}${'A: b\r\n'.repeat(100)}\r\n`, 431],
  'a section beyond 64 KiB': [`GET / HTTP/1.1\r\n${host}${`X-A: ${'a'.repeat(8000)}\r\n`.repeat(9)}\r\n`, 431],
  'a line beyond 16 KiB': [`GET / HTTP/1.1\r\n${host}X-A: ${'a'.repeat(16_400)}\r\n\r\n`, 431],
  'a line that never ends': [`GET / HTTP/1.1\r\n${host}X-A: ${'a'.repeat(200_000)}`, 431],
  'a name that never ends': [`GET / HTTP/1.1\r\n${host}${'a'.repeat(200_000)}`, 431],
  'a target beyond 16 KiB': [`GET /${'a'.repeat(16_400)} HTTP/1.1\r\n${host}\r\n`, 414],
  'a target that never ends': [`GET /${'a'.repeat(200_000)}`, 414],
}
for (const [name, [bytes, status]] of Object.entries(heads)) {
  test(`header flood: ${name}`, async () => {
    for (const splits of ['none', 'random'] as const) {
      const { world, asked, connect, close } = await worldServer(new World({ seed: 4 }))
      const { peer } = connect({ splits })
      peer.send(bytes)
      wantStatus(peer, name, status)
      world.advance(2000)
      assert.notEqual(peer.closedBy, 'no')
      assert.deepEqual(asked, [])
      await close()
    }
  })
}

test('limits are exact: 100 field lines and a line of 16 KiB are served', async () => {
  const { asked, connect, close } = await worldServer(new World())
  const { peer } = connect()
  peer.send(`GET /lines HTTP/1.1\r\n${host}${'A: b\r\n'.repeat(99)}\r\n`)
  peer.want('100 field lines', ok)
  peer.send(`GET /long HTTP/1.1\r\n${host}X-A: ${'a'.repeat(16_384 - 5)}\r\n\r\n`)
  peer.want('a line of 16 KiB', ok)
  assert.deepEqual(asked, ['/lines', '/long'])
  peer.end()
  await close()
})

test('endless empty lines are no way to keep a connection', async () => {
  const { world, connect, close } = await worldServer(new World())
  const { peer } = connect()
  const feed = (): void => {
    if (peer.closedBy !== 'no') return
    peer.send('\r\n'.repeat(10))
    world.after(100, feed)
  }
  feed()
  world.advance(15_000)
  assert.notEqual(peer.closedBy, 'no')
  await close()
})

test('pipelining flood by a client that reads nothing: the server stops reading', async () => {
  const { world, server, asked, connect, close } = await worldServer(new World())
  const { peer, socket } = connect()
  socket.pause()
  const batch = `GET /size/1000 HTTP/1.1\r\n${host}\r\n`.repeat(10_000)
  for (let i = 0; i < 20; i++) peer.send(batch)
  world.advance(30_000)
  const { bytesRead, bytesWritten, exchanges } = server.stats()
  assert.ok(bytesRead < 1_500_000, `${bytesRead} of ${batch.length * 20} bytes were read`)
  assert.ok(bytesWritten < 2_500_000, `${bytesWritten} bytes were written`)
  // One runs; the others are answered, and their answers wait in 64 KiB.
  assert.ok(exchanges < 100, `${exchanges} exchanges`)
  assert.ok(asked.length < 10_000)
  world.advance(60_000)
  assert.equal(server.stats().connections, 0, 'it is dropped in the end')
  socket.destroy()
  await close()
})

test('10,000 pipelined requests are answered one by one, in order', async () => {
  const { server, asked, connect, close } = await worldServer(new World({ seed: 9 }))
  const { peer } = connect({ splits: 'random' })
  let sent = ''
  for (let i = 0; i < 10_000; i++) sent += `GET /${i} HTTP/1.1\r\n${host}\r\n`
  peer.send(sent)
  peer.world.run()
  assert.equal(asked.length, 10_000)
  assert.ok(asked.every((path, i) => path === `/${i}`))
  assert.equal(peer.received.toString('latin1').split('HTTP/1.1 200 OK\r\n').length - 1, 10_000)
  const { writes } = server.stats()
  assert.ok(writes < 2000, `${writes} writes for 10,000 answers`)
  peer.end()
  await close()
})

test('chunks of one byte: served, at a bounded cost', async () => {
  const { world, connect, close } = await worldServer(new World())
  const { peer } = connect()
  const count = 200_000
  peer.send(`POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`)
  const before = process.cpuUsage()
  const some = '1\r\nx\r\n'.repeat(1000)
  for (let i = 0; i < count; i += 1000) peer.send(some)
  peer.send('0\r\n\r\n')
  world.run()
  const { user, system } = process.cpuUsage(before)
  assert.match(peer.want('an answer', ok).toString('latin1'), new RegExp(`\\n${count}\\n$`))
  assert.ok(user + system < 5_000_000, `${(user + system) / 1000} ms for ${count} chunks`)
  peer.end()
  await close()
})

const chunkAbuse: Record<string, string> = {
  'one long extension': `3;${'x'.repeat(5000)}\r\nabc\r\n`,
  'many short extensions': `3;x=123456\r\nabc\r\n`.repeat(1000),
  'an extension that never ends': `3;${'x'.repeat(300_000)}`,
  'a size of endless zeros': '0'.repeat(300_000),
  'zeros before the size, in every chunk': `${'0'.repeat(200)}3\r\nabc\r\n`.repeat(1000),
}
for (const [name, chunks] of Object.entries(chunkAbuse)) {
  test(`chunk abuse: ${name}`, async () => {
    const { world, connect, close } = await worldServer(new World())
    const { peer } = connect()
    peer.send(`POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`).send(chunks)
    wantStatus(peer, name, 400)
    world.advance(2000)
    assert.notEqual(peer.closedBy, 'no')
    await close()
  })
}

test('trailer floods are refused as header floods are', async () => {
  for (const [trailers, status] of [
    ['A: b\r\n'.repeat(101), 431],
    [`X-A: ${'a'.repeat(20_000)}\r\n`, 431],
    [`X-A: ${'a'.repeat(8000)}\r\n`.repeat(9), 431],
  ] as const) {
    const { world, connect, close } = await worldServer(new World())
    const { peer } = connect()
    peer.send(`POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n${trailers}\r\n`)
    wantStatus(peer, 'a trailer flood', status)
    world.advance(2000)
    assert.notEqual(peer.closedBy, 'no')
    await close()
  }
})

test('a declared length over the limit is refused with 413 before the content, an undeclared one when it is passed', async () => {
  const { world, asked, connect, close } = await worldServer(new World(), { limits: { maxContentLength: 1000 } })
  const declared = connect().peer
  declared.send(`POST /declared HTTP/1.1\r\n${host}Content-Length: 1001\r\n\r\n`)
  wantStatus(declared, 'too much is announced', 413)
  assert.deepEqual(asked, [])
  const streamed = connect().peer
  streamed.send(`POST /streamed HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n${`64\r\n${'x'.repeat(100)}\r\n`.repeat(11)}`)
  wantStatus(streamed, 'too much comes', 413)
  const allowed = connect().peer
  allowed.send(`POST /allowed HTTP/1.1\r\n${host}Content-Length: 1000\r\n\r\n${'x'.repeat(1000)}`)
  allowed.want('just enough', ok)
  world.advance(2000)
  assert.notEqual(declared.closedBy, 'no')
  assert.notEqual(streamed.closedBy, 'no')
  allowed.end()
  await close()
})

test('an upload nobody wants is drained a little, then cut', async () => {
  const { world, server, connect, close } = await worldServer(new World(), {
    onExchange: (exchange) => ({
      onHead() {
        exchange.discard()
        exchange.sendHead({ method: '', scheme: '', authority: '', path: '', protocol: '', status: 403, fields: [] }, true)
      },
      onData() {},
      onTrailers() {},
      onSent() {},
      onPriority() {},
      onClose() {},
    }),
  })
  const { peer } = connect()
  peer.send(`POST / HTTP/1.1\r\n${host}Content-Length: 100000000\r\n\r\n`)
  const chunk = Buffer.alloc(65_536)
  for (let i = 0; i < 200; i++) peer.send(chunk)
  wantStatus(peer, 'the answer comes', 403)
  world.advance(2000)
  assert.notEqual(peer.closedBy, 'no')
  const { bytesRead, connections } = server.stats()
  assert.ok(bytesRead < 1_000_000, `${bytesRead} bytes were read`)
  assert.equal(connections, 0)
  await close()
})
