/** Heddle's client behind the face that other people's have, and where the stories are told with all of them. */
import type { TestContext } from 'node:test'
import { Client, requestHead, type ClientExchangeHandler, type Exchange, type Fields, type Head, type HeddleError } from 'heddle'
import type { Answer, Asked, PeerClient, Way } from './clients.ts'
import type { Folder } from './stage.ts'

/** A client of ours, and what it counted. */
export type HeddleClient = PeerClient & { readonly client: Client }

/** Heddle's `fetch`, and for requests with trailers, which `fetch` has no place for, the raw exchange below it. */
export function heddleClient(t: TestContext, way: Way | 'h3', port: number, { authority }: Folder): HeddleClient {
  const protocols = way === 'h3' ? (['h3'] as const) : way === 'https' ? (['h1'] as const) : (['h2', 'h1'] as const)
  const client = new Client({ h2c: way === 'h2c', protocols, tls: { ca: authority } })
  t.after(() => client.destroy())
  const origin = `${way === 'h1' || way === 'h2c' ? 'http' : 'https'}://127.0.0.1:${port}`
  return {
    client,
    lacks: [],
    ask: async (asked) => {
      const { path = '/', method = 'GET', headers = {}, body, streamed = false, abortAfter = Infinity, abortIn, trailers: sent } = asked
      if (sent !== undefined) return await new RawRequest(client, origin, asked).answer
      const informational: string[] = []
      const response = await client.fetch(origin + path, {
        method,
        headers: Object.entries(headers).flatMap(([name, value]) => [value].flat().map((one): [string, string] => [name, one])),
        ...(body !== undefined && (streamed ? { body: pieces(Buffer.from(body)), duplex: 'half' } : { body: Buffer.from(body) })),
        ...(abortIn !== undefined && { signal: AbortSignal.timeout(abortIn) }),
        onInformational: ({ status, headers: heads }) => informational.push(`${status} ${heads.get('link') ?? ''}`.trim()),
      })
      const chunks: Uint8Array[] = []
      let length = 0
      for await (const chunk of response.body ?? []) {
        chunks.push(chunk)
        length += chunk.length
        if (length >= abortAfter) break
      }
      const whole = Buffer.concat(chunks)
      const trailers = abortAfter === Infinity ? Object.fromEntries(await response.trailers) : {}
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        body: whole,
        text: whole.toString(),
        trailers,
        informational,
      }
    },
    close: async () => await client.close(),
  }
}

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 50_000) yield bytes.subarray(start, start + 50_000)
}

/** A request by the raw exchange, with trailers. */
class RawRequest implements ClientExchangeHandler {
  readonly answer: Promise<Answer>
  readonly #asked: Asked
  readonly #url: URL
  readonly #chunks: Buffer[]
  readonly #informational: string[]
  readonly #resolve: (answer: Answer) => void
  readonly #reject: (error: Error) => void
  #exchange: Exchange | undefined
  #head: Head | undefined
  #trailers: Fields

  constructor(client: Client, origin: string, asked: Asked) {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.answer = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#asked = asked
    this.#url = new URL(asked.path ?? '/', origin)
    this.#chunks = []
    this.#informational = []
    this.#exchange = undefined
    this.#head = undefined
    this.#trailers = []
    client.exchange(origin, this)
  }

  onOpen(exchange: Exchange): void {
    this.#exchange = exchange
    const { method = 'GET', headers = {}, trailers = {}, body = '' } = this.#asked
    const { protocol, host, pathname } = this.#url
    exchange.sendHead(requestHead(method, protocol.slice(0, -1), host, pathname, pairs(headers)), false)
    const bytes = Buffer.from(body)
    exchange.sendData(bytes, 0, bytes.length, false)
    exchange.sendTrailers(pairs(trailers))
  }

  onHead(head: Head): void {
    if ((head.status as number) < 200) this.#informational.push(`${head.status}`)
    else this.#head = head
  }

  onData(buffer: Uint8Array, start: number, limit: number): void {
    this.#chunks.push(Buffer.from(buffer.subarray(start, limit)))
    this.#exchange?.consume(limit - start)
  }

  onTrailers(fields: Fields): void {
    this.#trailers = fields
  }

  onSent(): void {}
  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    if (error !== undefined || this.#head === undefined) return this.#reject(error ?? new Error('no head'))
    const body = Buffer.concat(this.#chunks)
    this.#resolve({
      status: this.#head.status as number,
      headers: record(this.#head.fields),
      body,
      text: body.toString(),
      trailers: record(this.#trailers),
      informational: this.#informational,
    })
  }
}

function pairs(headers: Record<string, string | string[]>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap((one) => [name, one]))
}

function record(fields: Fields): Record<string, string> {
  return Object.fromEntries(Array.from({ length: fields.length / 2 }, (_, i) => [fields[2 * i], fields[2 * i + 1]]))
}
