import assert from 'node:assert/strict'
import { responseHead, type Exchange, type ExchangeHandler, type Head } from 'heddle/http'
import { worldTest, type World } from 'heddle/testing'
import { worldServer } from './target.ts'

const host = 'Host: origin.test\r\n'

/** Answers with the request's content, after a while that the seed chooses, in pieces that it chooses. */
class Echo implements ExchangeHandler {
  readonly #world: World
  readonly #exchange: Exchange
  /** Answers at once, always. */
  readonly #prompt: boolean
  #content: Buffer<ArrayBuffer>

  constructor(world: World, exchange: Exchange, prompt: boolean) {
    this.#world = world
    this.#exchange = exchange
    this.#prompt = prompt
    this.#content = Buffer.alloc(0)
  }

  onHead(_head: Head, end: boolean): void {
    if (end) this.#answer()
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.#content = Buffer.concat([this.#content, buffer.subarray(start, limit)])
    this.#exchange.consume(limit - start)
    if (end) this.#answer()
  }

  onTrailers(): void {
    this.#answer()
  }

  onSent(): void {}
  onPriority(): void {}
  onClose(): void {}

  #answer(): void {
    if (this.#prompt || this.#world.random.chance(0.5)) this.#send()
    else this.#world.after(this.#world.random.integer(0, 30), () => this.#send())
  }

  #send(): void {
    const { random } = this.#world
    this.#exchange.sendHead(responseHead(200, ['content-length', String(this.#content.length)]), this.#content.length === 0)
    if (this.#content.length === 0) return
    const middle = random.integer(0, this.#content.length)
    this.#exchange.sendData(this.#content, 0, middle, false)
    this.#exchange.sendOwned(this.#content.subarray(middle), true)
  }
}

function request(path: string, content: Buffer<ArrayBuffer>, world: World): Buffer<ArrayBuffer> {
  const { random } = world
  if (content.length === 0 && random.chance(0.7)) return Buffer.from(`GET ${path} HTTP/1.1\r\n${host}\r\n`)
  if (random.chance(0.5))
    return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${host}Content-Length: ${content.length}\r\n\r\n`), content])
  const parts = [Buffer.from(`POST ${path} HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`)]
  for (let at = 0; at < content.length;) {
    const length = random.integer(1, content.length - at)
    parts.push(Buffer.from(`${length.toString(16)}\r\n`), content.subarray(at, at + length), Buffer.from('\r\n'))
    at += length
  }
  parts.push(Buffer.from(random.chance(0.5) ? '0\r\n\r\n' : '0\r\nX-Trailer: 1\r\n\r\n'))
  return Buffer.concat(parts)
}

worldTest('pipelined requests of every kind are answered in order, whatever the pace of either side', { seeds: 40 }, async (world) => {
  const { random } = world
  const burst = random.chance(0.4)
  const { server, connect, close } = await worldServer(world, { onExchange: (exchange) => new Echo(world, exchange, burst) })
  const { peer, socket } = connect({
    splits: random.pick(['none', 'random']),
    capacity: random.pick([10_000, 262_144]),
    delay: random.pick([0, 1, 10]),
  })
  const contents = Array.from({ length: random.integer(1, burst ? 3000 : 400) }, () =>
    Buffer.from(random.bytes(random.length(random.pick([0, 100, burst ? 1000 : 20_000])))),
  )
  for (const [i, content] of contents.entries()) {
    peer.send(request(`/${i}`, content, world))
    // The client stops reading now and then, and goes on some time later.
    if (random.chance(0.02)) {
      socket.pause()
      world.after(random.integer(1, 500), () => socket.resume())
    }
    if (burst) continue
    for (let steps = random.integer(0, 5); steps > 0; steps--) world.step()
  }
  world.run()
  const all = peer.received
  let at = 0
  for (const [i, content] of contents.entries()) {
    const head = all.indexOf('\r\n\r\n', at)
    assert.ok(head > 0, `answer ${i} of ${contents.length} came`)
    assert.match(all.toString('latin1', at, head), /^HTTP\/1\.1 200 /)
    at = head + 4 + content.length
    assert.ok(all.subarray(head + 4, at).equals(content), `answer ${i} is the right one`)
  }
  assert.equal(at, all.length)
  assert.equal(server.stats().exchanges, 0)
  peer.end()
  await close()
})
