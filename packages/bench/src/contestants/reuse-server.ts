/** node:https, so that no contestant meets its own kind: 16 KiB of JSON with a newline at its end. Prints its port and its certificate's path. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCertificate } from 'heddle/testing'

const { cert, key } = makeCertificate({ names: ['localhost'] })
const ca = join(mkdtempSync(join(tmpdir(), 'heddle-bench-')), 'ca.pem')
writeFileSync(ca, cert)
const content = Buffer.from(`${JSON.stringify({ text: 'x'.repeat(16_384) })}\n`)
const server = https.createServer({ cert, key, keepAliveTimeout: 60_000 }, (request, response) => {
  const body = request.url === '/tail' ? content.subarray(0, -1) : content
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': content.length })
  response.write(body)
  // The newline comes in a record of its own, when a streaming parser has seen its last brace.
  if (body === content) response.end()
  else setImmediate(() => response.end('\n'))
})
server.listen(0, '127.0.0.1', () => console.log(`ready ${(server.address() as AddressInfo).port} ${ca}`))
process.on('SIGTERM', () => process.exit(0))
