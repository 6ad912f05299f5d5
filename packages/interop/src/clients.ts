/** Other people's clients behind one face, so that the same story is told of each. */
import type { TestContext } from 'node:test'
import { Agent, H2CClient, type Dispatcher } from 'undici'
import { NodeClient, type Answer as NodeAnswer, type Asked as NodeAsked } from '../../heddle/test/node-client.ts'
import { GoClient } from './go-peer.ts'
import type { Folder } from './stage.ts'
import type { ToldClient } from './told-client.ts'

/** How a client reaches a server. */
export type Way = 'h1' | 'h2c' | 'https' | 'h2'

/** All of them. */
export const ways: readonly Way[] = ['h1', 'h2c', 'https', 'h2']

/** A request. */
export type Asked = NodeAsked & {
  /** Gives the request up after so many ms without an answer. */
  readonly abortIn?: number
}
/** What came of it. */
export type Answer = NodeAnswer

/** One connection, or as many as the version needs, to one server. */
export interface PeerClient {
  /** Rejects when no whole answer comes, unless the request asks for less. */
  ask(asked: Asked): Promise<Answer>
  close(): Promise<void> | void
  /** What this client cannot do. */
  readonly lacks: readonly Lack[]
}

/** What some clients cannot do: see {@link PeerClient.lacks}. */
export type Lack = 'HEAD' | 'request trailers' | 'response trailers' | 'informational responses' | 'expect' | 'one connection'

/** How a test gets a client to `port`, by `way`. */
export type ClientMaker = (t: TestContext, way: Way, port: number, folder: Folder) => PeerClient

/** `node:http`, `node:https` and `node:http2`. */
export const nodeClient: ClientMaker = (t, way, port) => {
  const client = new NodeClient(port, way)
  t.after(() => client.close())
  return {
    lacks: [],
    ask: async (asked) => {
      if (asked.abortIn === undefined) return await client.ask(asked)
      const talk = client.start(asked, true)
      talk.out.end()
      setTimeout(() => talk.abort(), asked.abortIn)
      await talk.response
      throw new Error('it was answered')
    },
    close: () => client.close(),
  }
}

/** undici, of npm: over TLS it is offered both versions when `way` is h2. */
export const undiciClient: ClientMaker = (t, way, port, { authority }) => {
  const origin = `${way === 'h2' || way === 'https' ? 'https://localhost' : 'http://127.0.0.1'}:${port}`
  const dispatcher: Dispatcher =
    way === 'h2c'
      ? new H2CClient(origin, { maxConcurrentStreams: 100 })
      : new Agent({
          allowH2: way === 'h2',
          connect: { ca: authority, lookup: local },
          ...(way === 'h2' && { connections: 1, pipelining: 100 }),
        })
  t.after(() => dispatcher.destroy())
  return {
    // It refuses the field Expect, has no API for trailers of a request, and none that tells of 1xx or trailers with HTTP/2.
    lacks: ['request trailers', 'expect', ...(way === 'h1' || way === 'https' ? [] : (['informational responses'] as const))],
    ask: async ({ method = 'GET', path = '/', headers = {}, body, streamed = false, abortAfter, abortIn }) => {
      const informational: string[] = []
      const response = await dispatcher.request({
        origin,
        path,
        method: method as Dispatcher.HttpMethod,
        headers,
        body: body === undefined ? null : streamed ? ([Buffer.from(body)].values() as never) : body,
        onInfo: ({ statusCode, headers: { link } }) => informational.push(`${statusCode} ${String(link)}`),
        ...(abortIn !== undefined && { signal: AbortSignal.timeout(abortIn) }),
      })
      const chunks: Buffer[] = []
      let length = 0
      for await (const chunk of response.body) {
        chunks.push(chunk as Buffer)
        length += (chunk as Buffer).length
        if (length >= (abortAfter ?? Infinity)) break
      }
      const whole = Buffer.concat(chunks)
      return {
        status: response.statusCode,
        headers: response.headers,
        body: whole,
        text: whole.toString(),
        trailers: response.trailers,
        informational,
      }
    },
    close: () => dispatcher.destroy(),
  }
}

const local = ((_host: string, _options: unknown, done: (error: null, addresses: { address: string; family: number }[]) => void) =>
  done(null, [{ address: '127.0.0.1', family: 4 }])) as never

/** What the programs of other languages say came of a request. */
export interface ToldAnswer {
  readonly ID: number
  readonly Error: string
  readonly Status: number
  readonly Headers: [string, string][]
  readonly Content: string | null
  readonly Trailers: [string, string][] | null
  readonly Informational: string[] | null
  /** The TLS session is one of before. */
  readonly Resumed?: boolean
}

/** Makes a request by such a program. */
export async function askBy(client: ToldClient<object, ToldAnswer>, asked: Asked): Promise<Answer & { readonly resumed: boolean }> {
  const { method = 'GET', path = '/', headers = {}, body, streamed = false, trailers, abortAfter = -1, abortIn = 0 } = asked
  const answer = await client.carryOut({
    Method: method,
    Path: path,
    // It announces trailers by itself.
    Headers: Object.entries(headers)
      .filter(([name]) => name !== 'trailer')
      .flatMap(([name, value]) => [value].flat().map((one) => [name, one])),
    Content: Buffer.from(body ?? '').toString('base64'),
    Has: body !== undefined,
    Streamed: streamed,
    Trailers: trailers === undefined ? null : Object.entries(trailers),
    AbortAfter: abortAfter === Infinity ? -1 : abortAfter,
    AbortIn: abortIn,
  })
  if (answer.Error !== '') throw new Error(answer.Error)
  const whole = Buffer.from(answer.Content ?? '', 'base64')
  return {
    status: answer.Status,
    headers: joined(answer.Headers),
    body: whole,
    text: whole.toString(),
    trailers: joined(answer.Trailers ?? []),
    informational: answer.Informational ?? [],
    resumed: answer.Resumed ?? false,
  }
}

/** Go's net/http; for `golang.org/x/net/http2` itself, `ofX`. */
export function goClient(ofX = false): ClientMaker {
  return (t, way, port, folder) => {
    const client = new GoClient<object, ToldAnswer>(t, 'http-client', ofX ? `x${way}` : way, port, folder)
    return { lacks: [], ask: (asked) => askBy(client, asked), close: () => client.close() }
  }
}

/** As Node's objects of fields: what comes more than once is joined. */
function joined(fields: readonly [string, string][]): Record<string, string> {
  const all: Record<string, string> = {}
  for (const [name, value] of fields) all[name] = all[name] === undefined ? value : `${all[name]}, ${value}`
  return all
}
