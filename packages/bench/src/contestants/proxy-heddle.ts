/** Heddle's gateway with one worker, one listener, one route, one endpoint, and no access log: `proxy-heddle.ts ORIGIN-PORT [UPSTREAM-PROTOCOL]`. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
process.on('SIGTERM', () => process.exit(0))
