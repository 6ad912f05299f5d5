import { deepEqual, equal, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test, type TestContext } from 'node:test'
import { serve, Response, type Server, type ServeOptions } from 'heddle/server'
import { Http3Probe, makeAuthority, makeCertificate, type Http3ProbeOptions } from 'heddle/testing'
import { parseConfig, startGateway, type Gateway, type RequestRecord } from '../src/index.ts'

const ca = makeAuthority()
const own = makeCertificate({ names: ['localhost'], ca, ipAddresses: ['127.0.0.1'] })
const folder = mkdtempSync(join(tmpdir(), 'heddle-http3-'))
writeFileSync(join(folder, 'own.crt'), own.cert)
writeFileSync(join(folder, 'own.key'), own.key)
after(() => rmSync(folder, { recursive: true }))

interface Started {
  readonly gateway: Gateway
  readonly port: number
  readonly records: RequestRecord[]
  connect(options?: Partial<Http3ProbeOptions>): Promise<Http3Probe>
}

interface StartOptions {
  readonly protocols?: string
  readonly listener?: string
  readonly route?: string
  readonly cluster?: string
  readonly more?: string
}

/** A gateway with HTTP/3 before `origin`, closed with the test. */
async function start(context: TestContext, originPort: number, options: StartOptions = {}): Promise<Started> {
  const { protocols = 'h3, h2, h1', listener = '', route = '', cluster = '', more = '' } = options
  const config = parseConfig(
    `
listeners:
  - { name: web, host: 127.0.0.1, port: 0, protocols: [${protocols}], tls: { certificates: [{ cert: own.crt, key: own.key }] }${listener} }
routes: [{ name: all, cluster: app${route} }]
clusters: [{ name: app, endpoints: ['127.0.0.1:${originPort}']${cluster} }]
${more}`,
    { folder },
  )
  const records: RequestRecord[] = []
  const gateway = await startGateway(config, { observer: { onRequestStart() {}, onRequestEnd: (record) => records.push(record) } })
  context.after(() => gateway.close({ deadline: 100 }))
  const port = gateway.addresses[0]?.port ?? 0
  return {
    gateway,
    port,
    records,
    connect: async (more) => {
      const probe = await Http3Probe.connect({ port, ca: ca.cert, ...more })
      context.after(() => probe.close())
      return probe
    },
  }
}

async function origin(context: TestContext, options: ServeOptions): Promise<Server> {
  const server = await serve({ hostname: '127.0.0.1', ...options })
  context.after(() => server.close({ deadline: 0 }))
  return server
}

function lines(method: string, path: string, ...fields: string[]): string[] {
  return [':method', method, ':scheme', 'https', ':authority', 'example.org', ':path', path, ...fields]
}

/** The value of a field in lines. */
function value(all: readonly string[], name: string): string | undefined {
  for (let i = 0; i < all.length; i += 2) if (all[i] === name) return all[i + 1]
  return undefined
}

describe('HTTP/3 from clients', { skip: Http3Probe.unavailable }, () => {
  for (const [name, cluster] of [
    ['HTTP/1.1', ''],
    ['HTTP/2', ', protocol: h2c'],
  ] as const) {
    test(`goes on to an upstream of ${name}, and says what it is`, async (context) => {
      const server = await origin(context, {
        fetch: async (request) => {
          const { headers } = request
          const seen = ['via', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'].map((name) => headers.get(name)).join(' | ')
          return new Response(`${request.method} ${seen} ${await request.text()}`, { headers: { 'alt-svc': 'h3=":9"; ma=5' } })
        },
      })
      const { connect, records, gateway } = await start(context, server.port, { cluster })
      const client = await connect()
      const stream = await client.request(lines('POST', '/a?b'), false)
      const answer = await client.answer(stream.sendContent('some ').sendContent('content', true))
      equal(answer.status, 200)
      equal(answer.content, 'POST 3 heddle | 127.0.0.1 | https | example.org some content')
      equal(value(answer.head, 'via'), cluster === '' ? '1.1 heddle' : '2 heddle')
      equal(value(answer.head, 'alt-svc'), undefined, "the port of the upstream is not the gateway's")
      await client.until('the record', () => records.length === 1)
      const [record] = records
      deepEqual(
        [record?.protocol, record?.upstreamProtocol, record?.status, record?.requestSize, record?.reason],
        ['h3', cluster === '' ? 'h1' : 'h2', 200, 12, ''],
      )
      const { listeners } = await gateway.snapshot()
      equal(listeners[0]?.http3.connections, 1)
      equal(listeners[0]?.connections, 1)
      equal(listeners[0]?.http3.streams, 0)
      ok((listeners[0]?.http3.datagrams ?? 0) > 1)
    })
  }
})
