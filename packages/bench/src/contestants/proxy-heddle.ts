/**
 * Heddle's gateway with one worker, one listener, one route, one endpoint, and no access log:
 * `proxy-heddle.ts ORIGIN-PORT [UPSTREAM-PROTOCOL]`. For every line on its standard input it prints
 * `frames F W F W`: HTTP/2 frames and writes so far, towards clients and upstream.
 */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { loadConfig, startGateway } from 'heddle-gateway'

const file = join(mkdtempSync(join(tmpdir(), 'heddle-bench-')), 'gateway.yaml')
writeFileSync(
  file,
  `listeners: [{ name: main, host: 127.0.0.1, port: 0 }]
routes: [{ name: all, cluster: origin }]
clusters: [{ name: origin, protocol: ${process.argv[3] ?? 'h1'}, maxConnectionsPerEndpoint: ${process.argv[3] === undefined ? 256 : 1}, endpoints: [{ host: 127.0.0.1, port: ${process.argv[2]} }] }]
`,
)
const gateway = await startGateway(loadConfig(file))
console.log(`ready ${gateway.addresses[0]?.port}`)
createInterface({ input: process.stdin }).on('line', async () => {
  const { listeners, clusters } = await gateway.stats()
  const counts = [...listeners, ...clusters].flatMap(({ http2 }) => [http2.frames, http2.writes])
  console.log(`frames ${counts.join(' ')}`)
})
process.on('SIGTERM', () => process.exit(0))
