/** node:http with the same small answer. */
import http from 'node:http'
import type { AddressInfo } from 'node:net'

const content = Buffer.from('hello, world')
const server = http.createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': content.length })
  response.end(content)
})
server.listen(0, '127.0.0.1', () => console.log(`ready ${(server.address() as AddressInfo).port}`))
process.on('SIGTERM', () => process.exit(0))
