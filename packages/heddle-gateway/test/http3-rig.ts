import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext } from 'node:test'
import { Client, type ClientOptions } from 'heddle/client'
import { serve, type ServeOptions, type Server } from 'heddle/server'
import { Http3Probe, makeAuthority, makeCertificate, type Certificate, type Http3ProbeOptions } from 'heddle/testing'
import { parseConfig, startGateway, type Config, type Gateway, type RequestRecord } from '../src/index.ts'

export const ca: Certificate = makeAuthority()
/** Of localhost and 127.0.0.1. */
export const own: Certificate = makeCertificate({ names: ['localhost'], ca, ipAddresses: ['127.0.0.1'] })
/** Has own.crt, own.key and ca.crt. */
export const folder: string = mkdtempSync(join(tmpdir(), 'heddle-http3-'))
writeFileSync(join(folder, 'own.crt'), own.cert)
writeFileSync(join(folder, 'own.key'), own.key)
writeFileSync(join(folder, 'ca.crt'), ca.cert)
after(() => rmSync(folder, { recursive: true }))

/** Why none of this can be run here; false: it can. */
export const skip: string | false = Http3Probe.unavailable

export interface StartOptions {
  readonly protocols?: string
  /** Further keys of the listener … */
  readonly listener?: string
  /** … of the route … */
  readonly route?: string
  /** … of the cluster … */
  readonly cluster?: string
  /** … and at the top. */
  readonly more?: string
}

/** The configuration of a gateway with HTTP/3 before the origins on these ports. */
export function configOf(ports: readonly number[], options: StartOptions = {}): Config {
  const { protocols = 'h3, h2, h1', listener = '', route = '', cluster = '', more = '' } = options
  const text = `
listeners:
  - { name: web, host: 127.0.0.1, port: 0, protocols: [${protocols}], tls: { certificates: [{ cert: own.crt, key: own.key }] }${listener} }
routes: [{ name: all, cluster: app${route} }]
clusters: [{ name: app, endpoints: [${ports.map((port) => `'127.0.0.1:${port}'`).join(', ')}]${cluster} }]
${more}`
  return parseConfig(text, { folder })
}

export interface Started {
  readonly gateway: Gateway
  readonly port: number
  /** Of requests that are over. */
  readonly records: RequestRecord[]
  /** A client that says what a test wants. */
  connect(options?: Partial<Http3ProbeOptions>): Promise<Http3Probe>
}

/** A gateway, closed with the test. */
export async function start(context: TestContext, ports: readonly number[], options: StartOptions = {}): Promise<Started> {
  const records: RequestRecord[] = []
  const observer = { onRequestStart() {}, onRequestEnd: (record: RequestRecord) => void records.push(record) }
  const gateway = await startGateway(configOf(ports, options), { observer })
  context.after(() => gateway.close({ deadline: 100 }))
  const port = gateway.addresses[0]?.port ?? 0
  return { gateway, port, records, connect: (more) => probe(context, port, more) }
}

/** A client that says what a test wants, closed with it. */
export async function probe(context: TestContext, port: number, options: Partial<Http3ProbeOptions> = {}): Promise<Http3Probe> {
  const client = await Http3Probe.connect({ port, ca: ca.cert, ...options })
  context.after(() => client.close())
  return client
}

/** An honest client, closed with the test. */
export function honest(context: TestContext, options: ClientOptions = {}): Client {
  const client = new Client({ protocols: ['h3'], tls: { ca: ca.cert }, ...options })
  context.after(() => client.destroy())
  return client
}

/** A server of Heddle's, closed with the test. */
export async function origin(context: TestContext, options: ServeOptions): Promise<Server> {
  const server = await serve({ hostname: '127.0.0.1', ...options })
  context.after(() => server.close({ deadline: 0 }))
  return server
}

/** One that speaks HTTP/3, and nothing else. */
export function http3Origin(context: TestContext, options: ServeOptions): Promise<Server> {
  return origin(context, { protocols: ['h3'], tls: { cert: own.cert, key: own.key }, ...options })
}

/** A cluster's keys that make it speak HTTP/3 to such a server. */
export const http3Cluster = ', protocol: h3, tls: { ca: ca.crt, serverName: localhost }'

/** A request's lines, pseudo-header fields first. */
export function lines(method: string, path: string, ...fields: string[]): string[] {
  return [':method', method, ':scheme', 'https', ':authority', 'example.org', ':path', path, ...fields]
}

/** The value of a field in lines. */
export function valueIn(all: readonly string[], name: string): string | undefined {
  for (let i = 0; i < all.length; i += 2) if (all[i] === name) return all[i + 1]
  return undefined
}
