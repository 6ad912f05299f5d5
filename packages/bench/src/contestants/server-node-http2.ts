/** node:http2 by its stream API with the same answer: `server-node-http2.ts [SIZE] [tls]`. */
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { makeCertificate } from 'heddle/testing'

const size = Number(process.argv[2] ?? 12)
const content = size === 12 ? Buffer.from('hello, world') : Buffer.alloc(size, 'x')
const settings = { maxConcurrentStreams: 1_000, initialWindowSize: 1_048_576 }
const server =
  process.argv[3] === 'tls'
    ? http2.createSecureServer({ settings, ...makeCertificate({ names: ['localhost'] }) })
    : http2.createServer({ settings })
server.on('stream', (stream: http2.ServerHttp2Stream) => {
  stream.on('error', () => {})
  stream.respond({ ':status': 200, 'content-type': 'text/plain', 'content-length': content.length })
  stream.end(content)
})
server.on('sessionError', () => {})
server.listen(0, '127.0.0.1', () => console.log(`ready ${(server.address() as AddressInfo).port}`))
process.on('SIGTERM', () => process.exit(0))
