/** A plain pipe proxy by node:http2, HTTP/2 on both sides, one connection upstream: `proxy-node-http2.ts ORIGIN-PORT`. */
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'

const upstream = http2.connect(`http://127.0.0.1:${process.argv[2]}`, { settings: { initialWindowSize: 1_048_576 } })
upstream.on('error', (error) => console.error(error))
const server = http2.createServer({ settings: { maxConcurrentStreams: 1_000, initialWindowSize: 1_048_576 } })
server.on('stream', (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
  const request = upstream.request(headers, { endStream: stream.readableEnded })
  request.on('response', (response) => {
    if (!stream.destroyed) stream.respond(response)
    request.pipe(stream)
  })
  stream.pipe(request)
  stream.on('error', () => request.close())
  request.on('error', () => stream.close())
})
server.on('sessionError', () => {})
server.listen(0, '127.0.0.1', () => console.log(`ready ${(server.address() as AddressInfo).port}`))
process.on('SIGTERM', () => process.exit(0))
