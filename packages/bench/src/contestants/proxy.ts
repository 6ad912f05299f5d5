/** A proxy under test, written for Node: `proxy.ts KIND ORIGIN-PORT`. */
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import httpProxy from 'http-proxy'
import { createProxyServer } from 'httpxy'

const [, , kind, origin] = process.argv as [string, string, string, string]
const target = `http://127.0.0.1:${origin}`
const agent = new http.Agent({ keepAlive: true, maxSockets: 256 })

function listening(server: http.Server): void {
  server.listen(0, '127.0.0.1', () => console.log(`ready ${(server.address() as AddressInfo).port}`))
}

if (kind === 'http-proxy') {
  const proxy = httpProxy.createProxyServer({ target, agent, xfwd: true })
  proxy.on('error', (error: Error) => console.error(error))
  listening(http.createServer((request, response) => proxy.web(request, response)))
} else if (kind === 'httpxy') {
  const proxy = createProxyServer({ target, agent, xfwd: true })
  listening(http.createServer((request, response) => void proxy.web(request, response)))
} else {
  throw new Error(`no proxy is called ${kind}`)
}
process.on('SIGTERM', () => process.exit(0))
