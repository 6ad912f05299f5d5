import assert from 'node:assert/strict'
import type { HeddleError } from '../http/index.ts'
import { worldTest, type LinkSocket, type World } from '../testing/index.ts'
import { Response, serve, type Request, type Server, type ServeOptions } from './index.ts'

function start(world: World, options: ServeOptions): Promise<Server> {
  return serve({ clock: world, listen: world.network.serve, hostname: 'h', port: 80, onError: () => {}, ...options })
}

/** A client that sends what the test says and keeps what comes. */
class Visitor {
  socket!: LinkSocket
  text = ''
  closed = false

  static async come(world: World): Promise<Visitor> {
    const visitor = new Visitor()
    await new Promise<void>((resolve, reject) => {
      world.network.connect('h', 80, (error, connection) => {
        if (connection === undefined) return reject(error as Error)
        visitor.socket = connection.socket
        visitor.socket.on('data', (chunk) => (visitor.text += Buffer.from(chunk).toString('latin1')))
        visitor.socket.on('end', () => visitor.socket.end())
        visitor.socket.on('close', () => (visitor.closed = true))
        visitor.socket.on('error', () => {})
        resolve()
      })
    })
    return visitor
  }

  send(text: string): void {
    this.socket.write(Buffer.from(text, 'latin1'))
  }
}

async function assertQuiet(world: World, server: Server): Promise<void> {
  await world.complete(server.close({ deadline: 0 }), 60_000)
  await world.settle()
  const { connections, exchanges, deadlines } = server.stats()
  assert.deepEqual({ connections, exchanges, deadlines }, { connections: 0, exchanges: 0, deadlines: 0 })
  assert.equal(world.armed, 0)
}

worldTest('time limits: no head, no content, no next request', { seeds: 3 }, async (world) => {
  let reason: unknown
  const server = await start(world, {
    fetch: async (request) => {
      request.signal.addEventListener('abort', () => (reason = request.signal.reason))
      return new Response(await request.text())
    },
  })
  const silent = await world.complete(Visitor.come(world))
  const slow = await world.complete(Visitor.come(world))
  slow.send('GET / HTTP/1.1\r\nhost:')
  const stopped = await world.complete(Visitor.come(world))
  stopped.send('POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nhalf')
  const idle = await world.complete(Visitor.come(world))
  idle.send('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
  await world.settle({ until: world.now() + 9000 })
  assert.deepEqual([slow.closed, stopped.closed, idle.closed], [false, false, false])
  await world.settle({ until: world.now() + 2000 })
  assert.match(slow.text, /^HTTP\/1\.1 408 /)
  assert.ok(silent.closed || silent.text.startsWith('HTTP/1.1 408 '))
  await world.settle({ until: world.now() + 20_000 })
  assert.match(stopped.text, /^HTTP\/1\.1 408 /)
  assert.equal((reason as HeddleError).code, 'BODY_TIMEOUT')
  assert.equal(idle.closed, false)
  await world.settle({ until: world.now() + 30_000 })
  assert.equal(idle.closed, true)
  await assertQuiet(world, server)
})

worldTest('a client that takes nothing is dropped, and the source freed', { seeds: 3 }, async (world) => {
  let cancelled: unknown
  let request!: Request
  const server = await start(world, {
    fetch: (one) => {
      request = one
      return new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
          cancel: (reason) => void (cancelled = reason),
        }),
      )
    },
  })
  const visitor = await world.complete(Visitor.come(world))
  visitor.socket.pause()
  visitor.send('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
  await world.settle({ until: world.now() + 59_000 })
  assert.equal(server.stats().exchanges, 1)
  await world.settle({ until: world.now() + 3000 })
  assert.equal((cancelled as HeddleError).code, 'SEND_TIMEOUT')
  assert.equal(request.signal.reason, cancelled)
  await assertQuiet(world, server)
})

worldTest('close cuts at its deadline and leaves no timer behind', { seeds: 3 }, async (world) => {
  const server = await start(world, { fetch: () => new Promise<Response>(() => {}) })
  const visitor = await world.complete(Visitor.come(world))
  visitor.send('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
  await world.settle({ until: world.now() + 10 })
  const began = world.now()
  await world.complete(server.close({ deadline: 5000 }), 60_000)
  assert.ok(world.now() - began >= 5000 && world.now() - began < 6000, `${world.now() - began} ms`)
  assert.equal(visitor.closed, true)
  await assertQuiet(world, server)
})

worldTest('whatever handlers and clients do, complete answers are right and nothing is left behind', { seeds: 40 }, async (world) => {
  const { random } = world
  const told: unknown[] = []
  const server = await start(world, {
    onError: (error) => void told.push(error),
    fetch: async (request) => {
      const { pathname } = new URL(request.url)
      const kind = pathname.slice(1)
      const signal = random.chance(0.5) ? request.signal : undefined
      if (random.chance(0.5)) await world.sleep(random.integer(0, 50))
      if (kind === 'throw') throw new Error('thrown')
      if (kind === 'unread') return new Response('unread:ok')
      if (kind === 'echo') return new Response(`echo:${await request.text()}`)
      if (kind === 'pipe') return new Response(request.body, { headers: { 'x-kind': 'pipe' } })
      if (kind === 'partly') {
        const reader = request.body?.getReader()
        await reader?.read()
        if (random.chance(0.5)) await reader?.cancel()
        return new Response('partly:ok')
      }
      return new Response(
        (async function* content() {
          for (let i = 0; i < 5; i++) {
            if (signal?.aborted === true) throw signal.reason
            yield `part ${i};`
            await world.sleep(random.integer(0, 10))
          }
        })(),
      )
    },
  })
  const visit = async (): Promise<void> => {
    await world.sleep(random.integer(0, 500))
    const visitor = await Visitor.come(world)
    const kind = random.pick(['throw', 'unread', 'echo', 'pipe', 'partly', 'stream'])
    const content = 'x'.repeat(random.integer(0, 200_000))
    const chunked = random.chance(0.5)
    const body = chunked ? `${content.length > 0 ? `${content.length.toString(16)}\r\n${content}\r\n` : ''}0\r\n\r\n` : content
    const head = `POST /${kind} HTTP/1.1\r\nhost: h\r\n${chunked ? 'transfer-encoding: chunked' : `content-length: ${content.length}`}\r\n${random.chance(0.3) ? 'connection: close\r\n' : ''}\r\n`
    const text = head + body
    const cutAt = random.chance(0.3) ? random.integer(1, text.length) : text.length
    for (let at = 0; at < cutAt && !visitor.closed;) {
      const next = Math.min(cutAt, at + random.integer(1, random.chance(0.5) ? 100 : 100_000))
      visitor.send(text.slice(at, next))
      at = next
      if (random.chance(0.3)) await world.sleep(random.integer(0, 20))
    }
    if (cutAt < text.length) {
      if (random.chance(0.5)) visitor.socket.destroy()
      else visitor.socket.end()
      return
    }
    for (let i = 0; i < 100 && !visitor.closed && !isComplete(visitor.text); i++) await world.sleep(50)
    check(visitor.text, kind, content)
    visitor.socket.destroy()
  }
  const visits: Promise<void>[] = []
  for (let i = 0; i < 30; i++) visits.push(visit())
  await world.complete(Promise.all(visits), 600_000)
  for (const error of told) assert.match((error as Error).message, /^thrown$/)
  await assertQuiet(world, server)
})

function isComplete(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1]
  return length === undefined ? text.endsWith('\r\n0\r\n\r\n') : text.length >= end + 4 + Number(length)
}

function check(text: string, kind: string, content: string): void {
  // What was refused because the rest of the content was too much to drain has its answer all the same.
  assert.ok(isComplete(text), `no whole answer to ${kind}: ${text.slice(0, 200)}`)
  const [head, body] = [text.slice(0, text.indexOf('\r\n\r\n')), text.slice(text.indexOf('\r\n\r\n') + 4)]
  assert.equal(head.slice(9, 12), kind === 'throw' ? '500' : '200')
  const plain = /transfer-encoding: chunked/i.test(head) ? unchunked(body) : body
  if (kind === 'echo') assert.equal(plain, `echo:${content}`)
  else if (kind === 'pipe') assert.equal(plain, content)
  else if (kind === 'stream') assert.equal(plain, 'part 0;part 1;part 2;part 3;part 4;')
  else if (kind !== 'throw') assert.equal(plain, `${kind}:ok`)
}

function unchunked(body: string): string {
  let text = ''
  for (let at = 0; ;) {
    const lineEnd = body.indexOf('\r\n', at)
    const size = Number.parseInt(body.slice(at, lineEnd), 16)
    if (size === 0) return text
    text += body.slice(lineEnd + 2, lineEnd + 2 + size)
    at = lineEnd + 2 + size + 2
  }
}
