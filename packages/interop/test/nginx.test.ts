/** The client at nginx, which ends each HTTP/2 connection after `keepalive_requests` with a GOAWAY and drops what came behind. */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Client, type ClientOptions } from 'heddle'
import { Running } from '../src/process.ts'
import { openFolder, until } from '../src/stage.ts'
import { tool } from '../src/tools.ts'

const nginx = tool('nginx')
const quick = { timeout: 60_000 }
const burst = 200

/** nginx on two Unix sockets, which need no free port; each connection serves `requests`. */
async function openNginx(t: TestContext, requests: number): Promise<Record<'h2c' | 'h2', ClientOptions>> {
  const { path, cert, key, authority } = openFolder(t)
  const file = join(path, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${path}/pid; error_log stderr error;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests ${requests};
  client_body_temp_path ${path}/body; proxy_temp_path ${path}/proxy; fastcgi_temp_path ${path}/fastcgi;
  uwsgi_temp_path ${path}/uwsgi; scgi_temp_path ${path}/scgi;
  server {
    listen unix:${path}/plain http2;
    listen unix:${path}/secure ssl http2;
    ssl_certificate ${cert}; ssl_certificate_key ${key};
    location / { return 200 "$request_method $uri"; }
  }
}
`,
  )
  const program = new Running(t, nginx, ['-c', file, '-p', path])
  await until(() => program.child.exitCode !== null || existsSync(join(path, 'secure')), 'nginx to listen')
  assert.equal(program.child.exitCode, null, program.printed)
  return { h2c: { socketPath: join(path, 'plain'), h2c: true }, h2: { socketPath: join(path, 'secure'), tls: { ca: authority } } }
}

for (const requests of [1, 5]) {
  for (const way of ['h2c', 'h2'] as const) {
    test(`a burst of ${burst} at a server that takes ${requests} on a connection, ${way}`, quick, async (t) => {
      const options = await openNginx(t, requests)
      const client = new Client(options[way])
      t.after(() => client.destroy())
      const scheme = way === 'h2' ? 'https' : 'http'
      const method = (i: number): string => (i % 2 === 0 ? 'GET' : 'POST')
      const texts = await Promise.all(
        Array.from({ length: burst }, async (_, i) => {
          const init = { method: method(i), ...(method(i) === 'POST' && { body: `content of ${i}` }) }
          return (await client.fetch(`${scheme}://localhost/${i}`, init)).text()
        }),
      )
      assert.deepEqual(
        texts,
        Array.from({ length: burst }, (_, i) => `${method(i)} /${i}`),
      )
      const { http2, waiting, streams } = client.stats()
      assert.ok(http2.dialled >= burst / requests, `${http2.dialled} connections`)
      assert.deepEqual([waiting, streams], [0, 0])
      await client.close()
    })
  }
}
