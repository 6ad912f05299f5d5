/** What the tests stand between their peers: servers, gateways, certificates and files, all gone when the test ends. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { serve, type Server, type ServeOptions } from 'heddle'
import { parseConfig, startGateway, type Gateway, type GatewayOptions } from 'heddle-gateway'
import { makeAuthority, makeCertificate, type Certificate } from 'heddle/testing'

/** A folder of a test, with the certificate of everything on this machine in it, as files. */
export interface Folder {
  readonly path: string
  readonly identity: Certificate
  /** Who signed it: the certificate to trust. */
  readonly authority: string
  /** The file of the same. */
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/** Makes a folder that is removed with its test. */
export function openFolder(t: TestContext): Folder {
  const path = mkdtempSync(join(tmpdir(), 'heddle-interop-'))
  t.after(() => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }))
  const authority = makeAuthority()
  const identity = makeCertificate({ names: ['localhost'], ipAddresses: ['127.0.0.1'], ca: authority })
  const file = (name: string, text: string): string => {
    writeFileSync(join(path, name), text)
    return join(path, name)
  }
  return {
    path,
    identity,
    authority: authority.cert,
    ca: file('ca.pem', authority.cert),
    cert: file('cert.pem', identity.cert),
    key: file('key.pem', identity.key),
  }
}

/** A server on 127.0.0.1 that must have nothing left to do when its test is over. */
export async function openServer(t: TestContext, options: ServeOptions): Promise<Server> {
  const server = await serve({ hostname: '127.0.0.1', ...options } as ServeOptions)
  t.after(async () => {
    await server.close({ deadline: 1000 })
    assert.deepEqual([server.stats().exchanges, server.stats().connections], [0, 0], 'the server has nothing left')
  })
  return server
}

/** How a gateway reaches what is behind it. */
export interface Upstream {
  readonly port: number
  readonly protocol: 'h1' | 'h2c' | 'h2' | 'h3'
}

/** A gateway with one upstream, reached over plain text and over TLS. */
export interface OpenGateway {
  readonly gateway: Gateway
  readonly plain: number
  readonly secure: number
}

/** Settings in the words of a configuration file. */
export interface GatewaySettings {
  /** What the listeners speak. Default `[h1, h2]`. */
  readonly protocols?: string
  /** More of the listeners, such as `http2: { maxConcurrentStreams: 500 }`. */
  readonly listener?: string
  /** More of the route, such as `grpcDeadline: true`. */
  readonly route?: string
  /** More of the cluster. */
  readonly cluster?: string
}

/** A gateway that sends everything to `upstream`; no request may be left in it when its test is over. */
export async function openGateway(
  t: TestContext,
  folder: Folder,
  { port, protocol }: Upstream,
  settings: GatewaySettings = {},
  options: GatewayOptions = {},
): Promise<OpenGateway> {
  const more = (text: string | undefined): string => (text === undefined ? '' : `, ${text}`)
  const listener = `host: 127.0.0.1, port: 0, protocols: ${settings.protocols ?? '[h1, h2]'}${more(settings.listener)}`
  // HTTP/3 is not to be had without TLS.
  const plainListener = listener.replace(/\bh3, ?/, '')
  const tls = protocol === 'h2' || protocol === 'h3' ? `, tls: { ca: ${folder.ca}, serverName: localhost }` : ''
  const config = parseConfig(`
drainTimeout: 20s
listeners:
  - { name: plain, ${plainListener} }
  - { name: secure, ${listener}, tls: { certificates: [{ cert: ${folder.cert}, key: ${folder.key} }] } }
routes: [{ name: all, cluster: app${more(settings.route)} }]
clusters: [{ name: app, endpoints: ['127.0.0.1:${port}'], protocol: ${protocol}${tls}${more(settings.cluster)} }]
`)
  const gateway = await startGateway(config, options)
  t.after(async () => {
    const left = async (): Promise<number> => {
      const { listeners, clusters } = await gateway.stats()
      return [...listeners.map((one) => one.exchanges), ...clusters.map((one) => one.active + one.waiting)].reduce(
        (sum, count) => sum + count,
      )
    }
    try {
      await until(async () => (await left()) === 0, 'the gateway to have nothing left', 5000)
    } finally {
      await gateway.close()
    }
  })
  const [plain, secure] = gateway.addresses.map((address) => address.port) as [number, number]
  return { gateway, plain, secure }
}

/** Resolves when `condition` holds; an error after `timeout` ms. */
export async function until(condition: () => boolean | Promise<boolean>, what: string, timeout = 10_000): Promise<void> {
  const end = performance.now() + timeout
  while (!(await condition())) {
    assert.ok(performance.now() < end, `waited ${timeout} ms for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
