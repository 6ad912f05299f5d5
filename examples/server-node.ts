// A listener of Node's kind, over HTTP/1.1 and HTTP/2. Try: curl -d hello http://localhost:8080/shout, and the same with --http2-prior-knowledge
import { serve } from 'heddle/server'
import { nodeListener } from 'heddle/node'

const server = await serve({
  port: Number(process.env['PORT'] ?? 8080),
  onExchange: nodeListener(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    response.setHeader('content-type', 'text/plain;charset=UTF-8')
    response.setHeader('x-version', request.httpVersion)
    response.end(Buffer.concat(parts).toString().toUpperCase())
  }),
})
console.log(server.url)
process.once('SIGTERM', () => void server.close())
