// HTTP/2 and HTTP/1.1 on one TLS port, as browsers want it. Run it by `npm run example -- server-tls CERT KEY`, then: curl --cacert CERT https://localhost:8443
// A certificate to try it with: openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem
import { readFileSync } from 'node:fs'
import { Response, serve } from 'heddle/server'

const [cert = 'cert.pem', key = 'key.pem'] = process.argv.slice(2)
const identity = () => ({ cert: readFileSync(cert), key: readFileSync(key) })

const server = await serve({
  port: Number(process.env['PORT'] ?? 8443),
  tls: identity(),
  // What a page may do to one connection: the default is 100 requests at once.
  http2: { maxConcurrentStreams: 250 },
  fetch: (_request, { protocol, tls }) => new Response(`${protocol} over ${tls?.version}\n`),
})
console.log(server.url)

// A renewed certificate, for connections to come; those that stand go on.
process.on('SIGHUP', () => server.updateTls(identity()))
process.once('SIGTERM', () => void server.close())
