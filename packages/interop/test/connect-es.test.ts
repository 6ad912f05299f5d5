/** Connect-ES: its clients over Heddle's connections, its services on Heddle's servers; gRPC, gRPC-Web and Connect. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { Code, ConnectError, createClient, type ConnectRouter, type HandlerContext, type Transport } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { createTransport as connectTransport } from '@connectrpc/connect/protocol-connect'
import { createTransport as grpcTransport } from '@connectrpc/connect/protocol-grpc'
import { createTransport as grpcWebTransport } from '@connectrpc/connect/protocol-grpc-web'
import { Server as GrpcServer, ServerCredentials, status, Metadata } from '@grpc/grpc-js'
import { Client, serve } from 'heddle'
import { createServer } from 'heddle/node'
import { universalClient } from 'heddle/rpc'
import { pieceOctets, pieces, type Piece } from '../src/connect-es.ts'

const quick = { timeout: 60_000 }
const text = (content: string): Piece => ({ content: Buffer.from(content) })
const said = ({ content }: Piece): string => Buffer.from(content).toString()

/** As Connect-ES types a client of a service it knows only by its description. */
interface PiecesClient {
  unary(piece: Piece, options?: object): Promise<Piece>
  client(input: AsyncIterable<Piece>, options?: object): Promise<Piece>
  server(piece: Piece, options?: object): AsyncIterable<Piece>
  both(input: AsyncIterable<Piece>, options?: object): AsyncIterable<Piece>
}

async function* each(...contents: string[]): AsyncGenerator<Piece> {
  for (const content of contents) yield text(content)
}

function routes(router: ConnectRouter): void {
  router.service(pieces, {
    unary: async (piece: Piece, context: HandlerContext) => {
      const asked = said(piece)
      context.responseHeader.set('x-answered', context.requestHeader.get('x-asked') ?? 'no')
      context.responseTrailer.set('x-last', 'yes')
      if (asked === 'fail') throw new ConnectError('as you wish', Code.ResourceExhausted, { 'x-why': 'asked' })
      if (asked === 'wait') await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
      return piece
    },
    client: async (input: AsyncIterable<Piece>) => {
      const all: string[] = []
      for await (const piece of input) all.push(said(piece))
      return text(all.join(' '))
    },
    server: async function* (piece: Piece) {
      for (const octet of piece.content) yield text(String(octet))
    },
    both: async function* (input: AsyncIterable<Piece>) {
      for await (const piece of input) yield text(`${said(piece)}!`)
    },
  } as never)
}

/** The service on Heddle's `(request, response)` server. Its port speaks HTTP/1.1 and HTTP/2 with prior knowledge. */
async function heddleService(t: TestContext): Promise<string> {
  const server = createServer(connectNodeAdapter({ routes }) as never)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

const fromOctets = (octets: Buffer): Piece => fromBinary(pieces.methods[0]!.input, octets) as never
const toOctets = ({ content }: Piece): Buffer => Buffer.from(pieceOctets(content))

/** The service on a server of grpc-js. */
async function grpcService(t: TestContext): Promise<string> {
  const server = new GrpcServer()
  const shape = { requestSerialize: toOctets, requestDeserialize: fromOctets, responseSerialize: toOctets, responseDeserialize: fromOctets }
  const path = (name: string): string => `/heddle.test.Pieces/${name}`
  server.addService(
    {
      Unary: { path: path('Unary'), requestStream: false, responseStream: false, ...shape },
      Client: { path: path('Client'), requestStream: true, responseStream: false, ...shape },
      Server: { path: path('Server'), requestStream: false, responseStream: true, ...shape },
      Both: { path: path('Both'), requestStream: true, responseStream: true, ...shape },
    },
    {
      Unary(call: any, done: any) {
        const asked = said(call.request as Piece)
        const header = new Metadata()
        header.set('x-answered', String(call.metadata.get('x-asked')[0] ?? 'no'))
        call.sendMetadata(header)
        const trailer = new Metadata()
        trailer.set('x-last', 'yes')
        if (asked === 'wait') return
        if (asked !== 'fail') return done(null, call.request, trailer)
        trailer.set('x-why', 'asked')
        done({ code: status.RESOURCE_EXHAUSTED, details: 'as you wish', metadata: trailer })
      },
      Client(call: any, done: any) {
        const all: string[] = []
        call.on('data', (piece: Piece) => all.push(said(piece)))
        call.on('end', () => done(null, text(all.join(' '))))
      },
      Server(call: any) {
        for (const octet of (call.request as Piece).content) call.write(text(String(octet)))
        call.end()
      },
      Both(call: any) {
        call.on('data', (piece: Piece) => call.write(text(`${said(piece)}!`)))
        call.on('end', () => call.end())
      },
    },
  )
  t.after(() => server.forceShutdown())
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  )
  return `http://127.0.0.1:${port}`
}

const makers = { grpc: grpcTransport, 'grpc-web': grpcWebTransport, connect: connectTransport } as const

function transport(protocol: keyof typeof makers, baseUrl: string, client: Client | undefined): Transport {
  return makers[protocol]({
    httpClient: universalClient(client),
    baseUrl,
    useBinaryFormat: true,
    interceptors: [],
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 1_024,
    readMaxBytes: 0xffff_ffff,
    writeMaxBytes: 0xffff_ffff,
    useHttpGet: false,
  })
}

const pairs = [
  ['grpc', 'grpc-js', grpcService],
  ['grpc', 'heddle/node', heddleService],
  ['grpc-web', 'heddle/node', heddleService],
  ['connect', 'heddle/node', heddleService],
] as const

for (const [protocol, where, service] of pairs) {
  test(`${protocol} from Connect-ES over Heddle to a service on ${where}`, quick, async (t) => {
    const url = await service(t)
    const connections = new Client({ h2c: true })
    t.after(() => connections.close())
    const client = createClient(pieces, transport(protocol, url, connections)) as unknown as PiecesClient
    assert.equal(said(await client.unary(text('hello'))), 'hello')
    const large = Buffer.alloc(2_000_000, 'x')
    assert.deepEqual(Buffer.from((await client.unary({ content: large })).content), large)
    assert.equal(said(await client.client(each('one', 'two', 'three'))), 'one two three')
    const octets: string[] = []
    for await (const piece of client.server(text('abc'))) octets.push(said(piece))
    assert.deepEqual(octets, ['97', '98', '99'])
    // Each answer comes before the next question is put.
    if (protocol !== 'grpc-web') {
      const heard: string[] = []
      let answered = Promise.withResolvers<void>()
      const turns = async function* (): AsyncGenerator<Piece> {
        for (const question of ['first', 'second']) {
          yield text(question)
          await answered.promise
        }
      }
      for await (const piece of client.both(turns())) {
        heard.push(said(piece))
        const { resolve } = answered
        answered = Promise.withResolvers()
        resolve()
      }
      assert.deepEqual(heard, ['first!', 'second!'])
    }

    const seen: Record<string, string | null> = {}
    await client.unary(text('x'), {
      headers: { 'x-asked': 'this' },
      onHeader: (header: Headers) => (seen['header'] = header.get('x-answered')),
      onTrailer: (trailer: Headers) => (seen['trailer'] = trailer.get('x-last')),
    })
    assert.deepEqual(seen, { header: 'this', trailer: 'yes' })
    await assert.rejects(client.unary(text('fail')), (error: ConnectError) => {
      assert.deepEqual([error.code, error.rawMessage, error.metadata.get('x-why')], [Code.ResourceExhausted, 'as you wish', 'asked'])
      return true
    })
    await assert.rejects(client.unary(text('wait'), { timeoutMs: 100 }), { code: Code.DeadlineExceeded })
    const controller = new AbortController()
    const cancelled = client.unary(text('wait'), { signal: controller.signal })
    setTimeout(() => controller.abort(), 50)
    await assert.rejects(cancelled, { code: Code.Canceled })
    const many = await Promise.all(Array.from({ length: 300 }, (_, i) => client.unary(text(String(i)))))
    assert.deepEqual(
      many.map(said),
      Array.from({ length: 300 }, (_, i) => String(i)),
    )
    const { http2 } = connections.stats()
    assert.ok(http2.dialled <= 5 && http2.requests > 300, `${http2.dialled} connections`)
    while (connections.stats().active > 0) await new Promise((resolve) => setTimeout(resolve, 5))
  })
}

test('what went wrong on the way has the code that gRPC gives it', quick, async (t) => {
  const connections = new Client({ h2c: true, connectTimeout: 2_000 })
  t.after(() => connections.close())
  const call = (url: string): Promise<unknown> =>
    (createClient(pieces, transport('grpc', url, connections)) as unknown as PiecesClient).unary(text('x'))
  await assert.rejects(call('http://127.0.0.1:1'), (error) => error instanceof ConnectError && error.code === Code.Unavailable)
  for (const [reason, code] of [
    [2, Code.Unavailable],
    [1, Code.Canceled],
    [7, Code.ResourceExhausted],
    [3, Code.Internal],
  ] as const) {
    const server = await serve({
      hostname: '127.0.0.1',
      onExchange: (exchange) => ({
        onHead: () => exchange.cancel(reason),
        onData: () => {},
        onTrailers: () => {},
        onSent: () => {},
        onPriority: () => {},
        onClose: () => {},
      }),
    })
    t.after(() => server.close({ deadline: 0 }))
    await assert.rejects(call(server.url), { code }, `cancelled for reason ${reason}`)
  }
})

test('without a client there is one for all, that speaks HTTP/2 to http: URLs', quick, async (t) => {
  const url = await grpcService(t)
  for (let i = 0; i < 2; i++) {
    const client = createClient(pieces, transport('grpc', url, undefined)) as unknown as PiecesClient
    assert.equal(said(await client.unary(text('hello'))), 'hello')
  }
})
