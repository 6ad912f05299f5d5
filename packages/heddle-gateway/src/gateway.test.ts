import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connect } from 'node:tls'
import { Response, serve, type Server } from 'heddle/server'
import { makeCertificate } from 'heddle/testing'
import { ListenError, parseConfig, startGateway, type Gateway, type Summary } from './index.ts'
import { parsePrometheus } from '../test/parse-prometheus.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle-gateway-'))
after(() => rmSync(folder, { recursive: true }))

function originOf(answer: (path: string) => Response | Promise<Response>): Promise<Server> {
  return serve({ hostname: '127.0.0.1', fetch: (request) => answer(new URL(request.url).pathname) })
}

function configFor(origin: Server, more = ''): string {
  return `
admin: { port: 0 }
listeners: [{ name: web, host: 127.0.0.1, port: 0 }]
routes:
  - { name: api, match: { pathPrefix: /api }, cluster: app }
clusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]
${more}`
}

async function text(url: string): Promise<[status: number, body: string, type: string | null]> {
  const response = await fetch(url)
  return [response.status, await response.text(), response.headers.get('content-type')]
}

describe('a gateway', () => {
  let origin: Server
  let gateway: Gateway
  let url: string
  let admin: string
  const log = join(folder, 'access.log')

  before(async () => {
    origin = await originOf((path) => new Response(`answer to ${path}`))
    gateway = await startGateway(parseConfig(configFor(origin, `accessLog: { path: ${log} }\n`)))
    url = gateway.addresses[0]?.url as string
    admin = gateway.adminUrl as string
  })
  after(async () => {
    await gateway.close()
    await origin.close()
  })

  test('forwards what a route matches, and refuses the rest with a reason', async () => {
    assert.deepEqual((await text(`${url}/api/x`)).slice(0, 2), [200, 'answer to /api/x'])
    const refused = await fetch(`${url}/other`)
    assert.equal(refused.status, 404)
    assert.equal(refused.headers.get('heddle-reason'), 'no_route')
    await refused.arrayBuffer()
  })

  test('shows its metrics to Prometheus', async () => {
    await text(`${url}/api/metrics`)
    const [status, body, type] = await text(`${admin}/metrics`)
    assert.equal(status, 200)
    assert.equal(type, 'text/plain; version=0.0.4; charset=utf-8')
    const families = parsePrometheus(body)
    const counts = families
      .get('http_server_request_duration_seconds')
      ?.samples.filter(
        ({ name, labels }) => name.endsWith('_count') && labels['http_route'] === 'api' && labels['http_response_status_code'] === '200',
      )
    assert.equal(counts?.length, 1)
    assert.ok((counts[0]?.value ?? 0) >= 1)
    assert.deepEqual(families.get('heddle_endpoint_ejected')?.samples, [
      { name: 'heddle_endpoint_ejected', labels: { heddle_cluster: 'app', heddle_endpoint: `127.0.0.1:${origin.port}` }, value: 0 },
    ])
  })

  test('sums up as JSON what stats() tells', async () => {
    await text(`${url}/api/json`)
    const [, body, type] = await text(`${admin}/metrics.json`)
    assert.equal(type, 'application/json')
    const summary = JSON.parse(body) as Summary
    const stats = await gateway.stats()
    assert.equal(summary.requests.duration.count, stats.requests.duration.count)
    assert.equal(summary.listeners[0]?.name, 'web')
    assert.equal(summary.clusters[0]?.endpoints[0]?.duration.count, stats.clusters[0]?.duration.count)
    assert.equal(stats.requests.active, 0)
    assert.equal(stats.listeners[0]?.exchanges, 0)
  })

  test('is alive and ready', async () => {
    assert.deepEqual((await text(`${admin}/healthz`)).slice(0, 2), [200, 'ok\n'])
    const [status, body] = await text(`${admin}/readyz`)
    assert.equal(status, 200)
    assert.deepEqual(JSON.parse(body), { status: 'ready', unusableClusters: [] })
  })

  test('shows the configuration it works by, defaults filled in', async () => {
    const [, body] = await text(`${admin}/config`)
    const config = JSON.parse(body) as { listeners: { limits: unknown }[]; routes: { timeout: unknown }[] }
    assert.deepEqual(config.listeners[0]?.limits, { ...gateway.config.listeners[0]?.limits, maxContentLength: 'none' })
    assert.equal(config.routes[0]?.timeout, 'none')
  })

  test('has a page that may do nothing but show', async () => {
    const response = await fetch(`${admin}/`)
    assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
    assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'sha256-/)
    const page = await response.text()
    assert.match(page, /<title>heddle-gateway<\/title>/)
    assert.doesNotMatch(page, /https?:\/\//, 'it loads nothing from elsewhere')
  })

  test('has an admin server that only shows', async () => {
    assert.equal((await text(`${admin}/nothing`))[0], 404)
    const response = await fetch(`${admin}/config`, { method: 'POST', body: 'x' })
    assert.equal(response.status, 405)
    assert.equal(response.headers.get('allow'), 'GET, HEAD')
    await response.arrayBuffer()
    const head = await fetch(`${admin}/metrics`, { method: 'HEAD' })
    assert.equal(head.status, 200)
    assert.equal(await head.text(), '')
  })

  test('logs every request when it is over', async () => {
    const before = (await gateway.stats()).accessLog.lines
    await text(`${url}/api/logged?x=%22`)
    await text(`${url}/nowhere`)
    gateway.refresh()
    let lines: Record<string, unknown>[] = []
    while (lines.length < before + 2) {
      await new Promise((resolve) => setTimeout(resolve, 10))
      lines = (existsSync(log) ? readFileSync(log, 'latin1') : '')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    }
    const logged = lines.find((line) => line['path'] === '/api/logged?x=%22')
    assert.equal(logged?.['status'], 200)
    assert.equal(logged?.['route'], 'api')
    assert.equal(logged?.['endpoint'], `127.0.0.1:${origin.port}`)
    assert.equal(logged?.['responseSize'], 'answer to /api/logged'.length)
    const refused = lines.find((line) => line['path'] === '/nowhere')
    assert.equal(refused?.['reason'], 'no_route')
    assert.equal('endpoint' in (refused ?? {}), false)
  })
})

describe('when every endpoint is dead', () => {
  /** A port where nobody listens. */
  async function deadPort(): Promise<number> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    await new Promise((resolve) => server.close(resolve))
    return port
  }

  for (const count of [1, 2, 4]) {
    test(`${count} of ${count}: it is not ready, with defaults, and is again when one answers`, async () => {
      const ports = await Promise.all(Array.from({ length: count }, () => deadPort()))
      const config = `
admin: { port: 0 }
listeners: [{ name: web, host: 127.0.0.1, port: 0 }]
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: [${ports.map((port) => `127.0.0.1:${port}`).join(', ')}] }]
`
      await using gateway = await startGateway(parseConfig(config))
      const url = gateway.addresses[0]?.url as string
      const readyz = async (): Promise<[number, unknown]> => {
        const [status, body] = await text(`${gateway.adminUrl}/readyz`)
        return [status, JSON.parse(body)]
      }
      assert.deepEqual(await readyz(), [200, { status: 'ready', unusableClusters: [] }])
      for (let i = 1; i < 5; i++) assert.equal((await text(url))[0], 502)
      assert.equal((await readyz())[0], 200, 'so few show nothing')
      // Each request tries three of them at most, drawn at random: a few more may be needed.
      let more = 0
      while ((await readyz())[0] === 200 && more++ < 200) assert.equal((await text(url))[0], 502)
      if (count === 1) assert.equal(more, 1)
      assert.deepEqual(await readyz(), [503, { status: 'down', unusableClusters: ['app'] }])
      const families = parsePrometheus((await text(`${gateway.adminUrl}/metrics`))[1])
      const values = (name: string): (number | undefined)[] => (families.get(name)?.samples ?? []).map(({ value }) => value)
      assert.deepEqual(
        values('heddle_endpoint_failing'),
        ports.map(() => 1),
      )
      assert.equal(
        values('heddle_endpoint_ejected').reduce<number>((sum, value) => sum + (value ?? 0), 0),
        Math.floor(count / 2),
        'no more than maxShare',
      )
      const { clusters } = await gateway.stats()
      assert.ok(clusters[0]?.endpoints.every(({ failing }) => failing))

      const alive = clusters[0]?.endpoints.findIndex(({ ejected }) => !ejected) as number
      await using _origin = await serve({ hostname: '127.0.0.1', port: ports[alive] as number, fetch: () => new Response('back') })
      while ((await text(url))[0] !== 200);
      assert.deepEqual(await readyz(), [200, { status: 'ready', unusableClusters: [] }])
    })
  }
})

describe('stopping', () => {
  test('lets a running request finish, says draining meanwhile, and takes no new ones', async () => {
    const arrived = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    await using origin = await originOf(async () => {
      arrived.resolve()
      await release.promise
      return new Response('late')
    })
    const gateway = await startGateway(parseConfig(configFor(origin)))
    const url = gateway.addresses[0]?.url as string
    const running = text(`${url}/api`)
    await arrived.promise
    const closed = gateway.close()
    const [status, body] = await text(`${gateway.adminUrl}/readyz`)
    assert.equal(status, 503)
    assert.equal((JSON.parse(body) as { status: string }).status, 'draining')
    await assert.rejects(fetch(`${url}/api`))
    release.resolve()
    assert.deepEqual((await running).slice(0, 2), [200, 'late'])
    await closed
    await assert.rejects(fetch(`${gateway.adminUrl}/healthz`))
  })

  test('answers who has no response shortly before the deadline, and cuts what is left then', async () => {
    const arrived = Promise.withResolvers<void>()
    await using origin = await originOf((path) => {
      if (path === '/api/begun') return new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('x')) }))
      arrived.resolve()
      return new Promise(() => {})
    })
    const gateway = await startGateway(parseConfig(configFor(origin)))
    const url = `${gateway.addresses[0]?.url}/api`
    const begun = await fetch(`${url}/begun`)
    const waiting = fetch(url)
    await arrived.promise
    const closed = gateway.close({ deadline: 300 })
    const { status, headers } = await waiting
    assert.deepEqual([status, headers.get('heddle-reason'), headers.get('connection')], [503, 'shutdown', 'close'])
    await assert.rejects(begun.text())
    await closed
    await origin.close({ deadline: 0 })
  })
})

describe('starting', () => {
  test('tells which listener has no port, and leaves nothing running', async () => {
    await using origin = await originOf(() => new Response('x'))
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as { port: number }
    const listeners = `
listeners: [{ name: first, host: 127.0.0.1, port: 0 }, { name: second, host: 127.0.0.1, port: ${port} }]
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]
`
    await assert.rejects(startGateway(parseConfig(listeners)), (error) => {
      assert.ok(error instanceof ListenError)
      assert.equal(error.code, 'EADDRINUSE')
      assert.equal(error.message, `listener second cannot listen on 127.0.0.1:${port}: another program listens there`)
      return true
    })
    const adminTaken = configFor(origin).replace('admin: { port: 0 }', `admin: { port: ${port} }`)
    await assert.rejects(startGateway(parseConfig(adminTaken)), {
      message: `admin cannot listen on 127.0.0.1:${port}: another program listens there`,
    })
    await new Promise((resolve) => taken.close(resolve))
  })
})

describe('TLS', () => {
  function write(name: string, names: readonly string[]): void {
    const { cert, key } = makeCertificate({ names })
    writeFileSync(join(folder, `${name}.crt`), cert)
    writeFileSync(join(folder, `${name}.key`), key)
  }

  /** The common name of the certificate shown to who asks for `servername`. */
  function shown(port: number, servername: string): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] }, () => {
        resolve(String(socket.getPeerCertificate().subject.CN))
        socket.destroy()
      })
      socket.on('error', reject)
    })
  }

  test('chooses certificates by their own names, and reads them again', async () => {
    write('main', ['main.example'])
    write('shop', ['shop.example', '*.shop.example'])
    await using origin = await originOf(() => new Response('x'))
    await using gateway = await startGateway(
      parseConfig(
        `
listeners:
  - name: web
    host: 127.0.0.1
    port: 0
    tls: { certificates: [{ cert: main.crt, key: main.key }, { cert: shop.crt, key: shop.key }] }
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]
`,
        { folder },
      ),
    )
    const { port, url } = gateway.addresses[0] as { port: number; url: string }
    assert.match(url, /^https:/)
    assert.equal(await shown(port, 'main.example'), 'main.example')
    assert.equal(await shown(port, 'a.shop.example'), 'shop.example')
    assert.equal(await shown(port, 'unknown.example'), 'main.example')
    write('main', ['renewed.example'])
    gateway.refresh()
    assert.equal(await shown(port, 'unknown.example'), 'renewed.example')
  })

  test('a certificate that is no good when it is read again changes nothing', async () => {
    write('kept', ['kept.example'])
    await using origin = await originOf(() => new Response('x'))
    const errors: string[] = []
    const config = `
listeners: [{ name: web, host: 127.0.0.1, port: 0, tls: { certificates: [{ cert: kept.crt, key: kept.key }] } }]
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: [127.0.0.1:${origin.port}] }]
`
    await using gateway = await startGateway(parseConfig(config, { folder }), { onError: (message) => errors.push(message) })
    writeFileSync(join(folder, 'kept.key'), 'garbage')
    gateway.refresh()
    assert.equal(errors.length, 1)
    assert.equal(await shown(gateway.addresses[0]?.port as number, 'kept.example'), 'kept.example')
  })

  test('a certificate and a key that do not belong together are told', () => {
    write('one', ['one.example'])
    write('two', ['two.example'])
    const config = `listeners: [{ name: web, port: 1, tls: { certificates: [{ cert: one.crt, key: two.key }] } }]
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: [a:1] }]
`
    assert.throws(() => parseConfig(config, { folder }), {
      message: `config:1:79: listeners[0].tls.certificates[0].key: found "two.key", expected the private key of the certificate ${join(folder, 'one.crt')}`,
    })
  })
})
