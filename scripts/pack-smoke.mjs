// Runs in a folder of its own where the packed tarballs are installed, on the oldest Node that is
// supported: client, server, gateway and load generator, as a stranger imports them.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Client, fetch, serve } from 'heddle'
import { startGateway } from 'heddle-gateway'
import { run } from 'heddle-load'

const server = await serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: async (request) => new Response(`${request.method} ${new URL(request.url).pathname} ${await request.text()}`),
})

const client = new Client()
for (const ask of [fetch, (url, init) => client.fetch(url, init)]) {
  const response = await ask(`http://127.0.0.1:${server.port}/smoke`, { method: 'POST', body: 'hello' })
  assert.equal(response.status, 200)
  assert.equal(await response.text(), 'POST /smoke hello')
}
await client.close()

// HTTP/3 needs a newer one, and says so.
if (Number(process.versions.node.split('.')[0]) < 26) {
  const { http3Unavailable } = new Client({ protocols: ['h3', 'h2', 'h1'] }).stats()
  assert.equal(http3Unavailable, `HTTP/3 needs Node ≥ 26.9, whose node:ffi it calls OpenSSL with; this is Node ${process.versions.node}`)
}

writeFileSync(
  'gateway.yaml',
  `listeners: [{ name: main, host: 127.0.0.1, port: 0 }]
routes: [{ name: all, cluster: origin }]
clusters: [{ name: origin, endpoints: [{ host: 127.0.0.1, port: ${server.port} }] }]
`,
)
const { loadConfig } = await import('heddle-gateway')
const gateway = await startGateway(loadConfig('gateway.yaml'))
const [address] = gateway.addresses
const proxied = await fetch(`http://127.0.0.1:${address.port}/through`)
assert.equal(await proxied.text(), 'GET /through ')
assert.match(proxied.headers.get('via') ?? '', /heddle/)
await gateway.close()

for (const threads of [1, 2]) {
  const { requests, statuses } = await run({ url: `http://127.0.0.1:${server.port}/load`, count: 20, connections: 2, threads })
  assert.deepEqual([requests.due, requests.succeeded, statuses], [20, 20, { 200: 20 }])
}
const load = spawn(process.execPath, ['node_modules/heddle-load/dist/bin.js', `http://127.0.0.1:${server.port}/`, '-n', '5', '-q'], {
  stdio: 'inherit',
})
assert.equal((await once(load, 'exit'))[0], 0)
await server.close()

const validate = spawn(process.execPath, ['node_modules/heddle-gateway/dist/bin.js', 'validate', '-c', 'gateway.yaml'], {
  stdio: 'inherit',
})
const [code] = await once(validate, 'exit')
assert.equal(code, 0)
console.log(`smoke: client, server, gateway and load generator work from the tarballs on Node ${process.versions.node}`)
