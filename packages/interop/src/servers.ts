/** The application of the stories on other people's servers. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createSecureServer, createServer as createHttp2Server, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo, Server as NetServer, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { brokenAfter, content, sumOf } from './application.ts'
import { openGoServer } from './go-peer.ts'
import type { Way } from './clients.ts'
import type { Folder } from './stage.ts'

/** The port that speaks a way, for each. */
export type Ports = Readonly<Record<Way, number>>

/** Starts servers that run the application, until the test ends. */
export type ServerMaker = (t: TestContext, folder: Folder) => Promise<Ports>

/** Go's net/http. */
export const goServer: ServerMaker = async (t, folder) => {
  const { plain, secure } = await openGoServer(t, 'http-server', folder)
  return { h1: plain, h2c: plain, https: secure, h2: secure }
}

type Request = IncomingMessage | Http2ServerRequest
type Answering = ServerResponse | Http2ServerResponse

/** `node:http` and `node:http2`, by the interface they share. */
export const nodeServer: ServerMaker = async (t, { identity: { cert, key } }) => {
  const answer = nodeApplication()
  const h1 = await listening(t, createServer(answer))
  const h2c = await listening(t, createHttp2Server(answer))
  const secure = await listening(t, createSecureServer({ cert, key, allowHTTP1: true }, answer))
  return { h1, h2c, https: secure, h2: secure }
}

async function listening(t: TestContext, server: NetServer): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('sessionError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

function nodeApplication(): (request: Request, response: Answering) => Promise<void> {
  let cancelled = 0
  return async (request, response) => {
    const version = `h${request.httpVersionMajor}`
    request.on('error', () => {})
    response.on('error', () => {})
    const write = response.write.bind(response) as (chunk: Uint8Array) => boolean
    const end = response.end.bind(response) as (chunk?: Uint8Array | string) => void
    switch ((request.url as string).split('?')[0]) {
      case '/big':
        response.setHeader('content-length', content.length)
        return end(request.method === 'HEAD' ? undefined : content)
      case '/stream':
        write(content.subarray(0, 10))
        return end(content.subarray(10))
      case '/sum':
        return end(sumOf(await contentOf(request)))
      case '/echo':
        ;(response as ServerResponse).writeHead(200)
        ;(response as ServerResponse).flushHeaders()
        request.pipe(response as never)
        return
      case '/fields':
        response.setHeader('x-answered', String(request.headers['x-asked']).split(', '))
        return end(request.headers.cookie)
      case '/trailers': {
        await contentOf(request)
        const got = request.trailers['x-sent'] as string | undefined
        response.setHeader('trailer', 'x-sum, x-got')
        write(Buffer.from('summed'))
        response.addTrailers({ 'x-sum': '42', ...(got !== undefined && { 'x-got': got }) })
        return end()
      }
      case '/hints':
        response.writeEarlyHints({ link: '</a.css>; rel=preload' })
        return end('hinted')
      case '/break':
        write(content.subarray(0, brokenAfter))
        setTimeout(() => (response as ServerResponse).destroy(), 100)
        return
      case '/wait':
        response.on('close', () => cancelled++)
        return
      case '/cancelled':
        return end(`${cancelled}`)
      default:
        return end(`${request.method} ${version}`)
    }
  }
}

async function contentOf(request: Request): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
