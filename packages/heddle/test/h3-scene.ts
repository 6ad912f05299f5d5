/** A server of HTTP/3 on loopback, and clients of it. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Instant } from '../src/http/index.ts'
import { systemClock, type Alarm, type Clock } from '../src/io/index.ts'
import { serve, type FetchHandler, type Server, type ServeOptions } from '../src/server/index.ts'
import { makeAuthority, makeCertificate, type Certificate } from '../src/testing/certificate.ts'
import { Http3Client, Http3Port, type Http3ClientOptions } from './h3-client.ts'

export const authority: Certificate = makeAuthority()
export const localhost: Certificate = makeCertificate({ names: ['localhost'], ca: authority, ipAddresses: ['127.0.0.1', '::1'] })

/** A loopback address for the tests of one file that are about numbers of ports: nobody else's ports are there. `number`: the file's own, 2 to 254. */
export function ownAddress(number: number): string {
  return process.platform === 'linux' ? `127.0.0.${number}` : '127.0.0.1'
}

/** The system's clock, in which time can be skipped: alarms that were for then are due at once. */
export class SkippingClock implements Clock {
  readonly #clock: Clock
  readonly #deadlines: Map<Alarm, Instant>
  #skipped: number

  constructor() {
    this.#clock = systemClock()
    this.#deadlines = new Map()
    this.#skipped = 0
  }

  /** `ms` pass at once. */
  skip(ms: number): void {
    this.#skipped += ms
    for (const [alarm, deadline] of this.#deadlines) {
      if (alarm.list === undefined) this.#deadlines.delete(alarm)
      else this.#clock.set(alarm, deadline - this.#skipped)
    }
  }

  now(): Instant {
    return this.#clock.now() + this.#skipped
  }
  httpDate(): string {
    return this.#clock.httpDate()
  }
  wallTime(): number {
    return this.#clock.wallTime() + this.#skipped
  }
  set(alarm: Alarm, deadline: Instant): void {
    this.#deadlines.set(alarm, deadline)
    this.#clock.set(alarm, deadline - this.#skipped)
  }
  clear(alarm: Alarm): void {
    this.#deadlines.delete(alarm)
    this.#clock.clear(alarm)
  }
  soon(task: () => void): void {
    this.#clock.soon(task)
  }
}

export interface Http3Scene {
  readonly server: Server
  /** What `onError` was told. */
  readonly told: unknown[]
  /** A client that trusts the authority, of `localhost` at the server's address or 127.0.0.1 if nothing else is said. */
  connect(options?: Partial<Http3ClientOptions>): Http3Client
}

/** Serves HTTP/3 beside the other versions, on 127.0.0.1, for the length of a test, and looks that nothing is left. */
export async function serveHttp3(
  t: TestContext,
  fetch: FetchHandler | undefined,
  options: Partial<ServeOptions> = {},
): Promise<Http3Scene> {
  const told: unknown[] = []
  const server = await serve({
    hostname: '127.0.0.1',
    protocols: ['h3', 'h2', 'http/1.1'],
    tls: { cert: localhost.cert, key: localhost.key },
    ...(fetch === undefined ? {} : { fetch }),
    onError: (error) => void told.push(error),
    ...options,
  })
  const clients: Http3Client[] = []
  t.after(async () => {
    for (const client of clients) await client.close()
    await server.close({ deadline: 0 })
    assertAtRest(server)
  })
  return {
    server,
    told,
    connect(given = {}) {
      const address = server.hostname.startsWith('127.') ? server.hostname : '127.0.0.1'
      const client = new Http3Client({ port: server.port, address, host: 'localhost', ca: authority.cert, ...given })
      clients.push(client)
      return client
    },
  }
}

/** A port of clients for the length of a test. */
export async function clientPort(t: TestContext): Promise<Http3Port> {
  const port = await Http3Port.open()
  t.after(() => port.close())
  return port
}

export function assertAtRest(server: Server): void {
  const { connections, exchanges, idleConnections, deadlines, handshakes, http3 } = server.stats()
  assert.deepEqual(
    { connections, exchanges, idleConnections, deadlines, handshakes, h3: [http3.connections, http3.exchanges] },
    { connections: 0, exchanges: 0, idleConnections: 0, deadlines: 0, handshakes: 0, h3: [0, 0] },
  )
}

/** Waits for what the other side does; a machine that is slow makes it slow, and nothing else. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 15_000
  while (!condition()) {
    assert.ok(performance.now() < end, `waited for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
