// HTTP/3, HTTP/2 and HTTP/1.1 at one port number. Run it by `npm run example -- server-http3 CERT KEY`, then client-http3 in another terminal
// (server-tls tells how to make a certificate). HTTP/3 needs Node 26.9 or newer; on an older one `serve` says so.
import { readFileSync } from 'node:fs'
import { Response, serve } from 'heddle/server'

const [cert = 'cert.pem', key = 'key.pem'] = process.argv.slice(2)

const server = await serve({
  port: Number(process.env['PORT'] ?? 8443),
  protocols: ['h3', 'h2', 'http/1.1'],
  tls: { cert: readFileSync(cert), key: readFileSync(key) },
  fetch: (_request, { protocol, remote }) => new Response(`${protocol} to ${remote.address}\n`),
})
console.log(server.url)
process.once('SIGTERM', () => void server.close())
