import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { serve, type Server } from 'heddle/server'
import { memoryNow, Random } from 'heddle/testing'
import { host, malformed, smuggled } from './malformed.ts'
import { Target } from './target.ts'

const cases = malformed.flatMap(({ cases: all, message }) => Object.values(all).map(message))
const valid = `POST /valid HTTP/1.1\r\n${host}Content-Length: 3\r\nX-A: b\r\n\r\nabc`

interface Attack {
  readonly bytes: Buffer
  /** What the attacker does once the bytes are written: waits for the server, ends its side, or is gone. */
  readonly after: 'wait' | 'end' | 'reset'
}

/** One of many ways to be a nuisance. */
function attack(random: Random): Attack {
  switch (random.integer(0, 7)) {
    case 0:
      return { bytes: random.bytes(1 + random.length(5000)), after: 'end' }
    case 1:
      return { bytes: Buffer.from(valid.slice(0, random.integer(0, valid.length - 1)), 'latin1'), after: random.pick(['end', 'reset']) }
    case 2:
      // What a TLS client says first.
      return { bytes: Buffer.concat([Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]), random.bytes(507)]), after: 'wait' }
    case 3:
      return { bytes: Buffer.from(`GET / HTTP/1.1\r\n${host}${'X-A: b\r\n'.repeat(random.integer(100, 5000))}\r\n`), after: 'wait' }
    case 4: {
      const bytes = Buffer.from(valid + smuggled.replace('smuggled', 'second'), 'latin1')
      bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255)
      return { bytes, after: random.pick(['end', 'reset']) }
    }
    default:
      return { bytes: Buffer.from(random.pick(cases) + smuggled, 'latin1'), after: 'wait' }
  }
}

/** Carries out one attack; returns what the server said. */
function carryOut(port: number, { bytes, after }: Attack): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    let answer = ''
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString('latin1')
    })
    socket.on('error', () => {})
    socket.on('end', () => socket.end())
    socket.on('close', () => resolve(answer))
    socket.write(bytes, () => {
      if (after === 'end') socket.end()
      else if (after === 'reset') socket.resetAndDestroy()
    })
  })
}

/** Carries out `count` attacks, a hundred at a time. Returns the answers that were none of refusal. */
async function attackAll(port: number, random: Random, count: number): Promise<string[]> {
  const odd: string[] = []
  let left = count
  const attacker = async (): Promise<void> => {
    while (left-- > 0) {
      const { bytes, after } = attack(random)
      const answer = await carryOut(port, { bytes, after })
      // A changed octet can leave a request valid; whoever only waits has sent nothing valid.
      if (after === 'wait' && !/^HTTP\/1\.1 [45]\d\d /.test(answer))
        odd.push(`${JSON.stringify(bytes.toString('latin1').slice(0, 200))} → ${JSON.stringify(answer)}`)
    }
  }
  await Promise.all(Array.from({ length: 100 }, attacker))
  return odd
}

/** A client that asks one thing after the other on one connection and notes the longest wait. */
class GoodClient {
  served = 0
  longest = 0
  failure: string | undefined
  readonly #socket: Socket
  #since = 0
  #answer = ''

  constructor(port: number) {
    this.#socket = connect({ port, host: '127.0.0.1' })
    this.#socket.on('data', (chunk: Buffer) => this.#read(chunk.toString('latin1')))
    this.#socket.on('close', () => {
      this.failure ??= 'its connection was closed'
    })
    this.#ask()
  }

  close(): void {
    this.failure ??= ''
    this.#socket.destroy()
  }

  #ask(): void {
    this.#since = performance.now()
    this.#answer = ''
    this.#socket.write(`POST /good HTTP/1.1\r\n${host}Content-Length: 5\r\n\r\nhello`)
  }

  #read(text: string): void {
    this.#answer += text
    if (!this.#answer.endsWith('\r\n\r\n5\n')) return
    if (!this.#answer.startsWith('HTTP/1.1 200 ')) this.failure ??= this.#answer
    this.served++
    this.longest = Math.max(this.longest, performance.now() - this.#since)
    setTimeout(() => this.#ask(), 5)
  }
}

async function until(condition: () => boolean, why: string): Promise<void> {
  const end = performance.now() + 5000
  while (!condition()) {
    assert.ok(performance.now() < end, why)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

test(
  '10,000 malformed connections: refused, a good client is served meanwhile, and the memory comes back',
  { timeout: 60_000 },
  async () => {
    const asked = new Set<string>()
    const server: Server = await serve({
      hostname: '127.0.0.1',
      // Octets that never make a line are only given up by time.
      limits: { headTimeout: 1000, drainTimeout: 100 },
      onExchange: (exchange) => new Target(exchange, { push: (path: string) => asked.add(path) }),
    })
    const good = new GoodClient(server.port)
    const random = new Random(2026)
    // Caches and compiled code have their size after this.
    await attackAll(server.port, random, 500)
    await until(() => server.stats().connections === 1, 'the attackers are gone')
    const before = await memoryNow()

    const start = performance.now()
    const odd = await attackAll(server.port, random, 10_000)
    const took = performance.now() - start
    await until(() => server.stats().connections === 1, 'the attackers are gone')

    assert.deepEqual(odd, [], 'every malformed message is refused')
    assert.equal(asked.has('/smuggled'), false, 'nothing was smuggled')
    assert.ok(took < 30_000, `${took} ms`)
    assert.equal(good.failure, undefined)
    assert.ok(good.served > 100, `${good.served} good requests`)
    assert.ok(good.longest < 2000, `a good request waited ${good.longest} ms`)
    const { exchanges, deadlines, accepted } = server.stats()
    assert.ok(accepted >= 10_501)
    assert.ok(exchanges <= 1 && deadlines <= 1, `${exchanges} exchanges, ${deadlines} deadlines`)
    const grown = (await memoryNow()) - before
    assert.ok(grown < 5_000_000, `${grown} bytes are still in use`)

    good.close()
    await server.close()
    assert.equal(server.stats().connections, 0)
  },
)
