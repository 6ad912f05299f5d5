import { isIP } from 'node:net'
import { Response, serve, type Server } from 'heddle/server'
import type { Clock } from 'heddle/io'
import type { AdminConfig, Config } from '../config/index.ts'
import { familiesOf, prometheusType, renderPrometheus, summarize, type Snapshot } from '../metrics/index.ts'
import { adminPage, adminPagePolicy } from './page.ts'
import { readinessOf } from './readiness.ts'

/** What the admin server shows. */
export interface AdminSource {
  readonly config: Config
  readonly phase: 'running' | 'draining'
  /** What all processes counted. */
  snapshot(): Promise<Snapshot>
}

/**
 * Serves the admin endpoints, read-only, on an address of their own:
 * `/` (page), `/metrics`, `/metrics.json`, `/healthz`, `/readyz`, `/config`.
 */
export function serveAdmin(address: AdminConfig, source: AdminSource, clock?: Clock): Promise<Server> {
  return serve({
    hostname: address.host,
    port: address.port,
    ...(clock === undefined ? undefined : { clock }),
    maxConnections: 1_000,
    limits: { maxContentLength: 65_536 },
    fetch: async (request) => {
      if (request.method !== 'GET' && request.method !== 'HEAD')
        return reply('only GET and HEAD\n', 'text/plain', 405, { allow: 'GET, HEAD' })
      const { pathname, hostname } = new URL(request.url)
      if (!isOwnHost(hostname, address))
        return reply(`${hostname} is no name of this server; names are added in admin.hosts\n`, 'text/plain', 421)
      switch (pathname) {
        case '/':
          return reply(adminPage, 'text/html; charset=utf-8', 200, { 'content-security-policy': adminPagePolicy })
        case '/healthz':
          return reply('ok\n', 'text/plain')
        case '/readyz': {
          const readiness = readinessOf(await source.snapshot(), source.phase)
          return json(readiness, readiness.status === 'ready' ? 200 : 503)
        }
        case '/metrics':
          return reply(renderPrometheus(familiesOf(await source.snapshot())), prometheusType)
        case '/metrics.json':
          return json(summarize(await source.snapshot(), Date.now()))
        case '/config':
          return json(source.config)
        default:
          return reply('not found; there are / /metrics /metrics.json /healthz /readyz /config\n', 'text/plain', 404)
      }
    },
  })
}

/**
 * Whether a request may be meant for this server. A web page can have its own name resolve to an
 * address behind the firewall and then read what is there (DNS rebinding); the name in the request
 * is still the page's. An IP address as host is no such name.
 */
export function isOwnHost(hostname: string, { host, hosts }: AdminConfig): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true
  return name === 'localhost' || name === host.toLowerCase().replace(/\.$/, '') || hosts.includes(name)
}

/** No limit is Infinity in the configuration, which JSON lacks: shown as it is written, `none`. */
function json(value: unknown, status = 200): Response {
  const text = JSON.stringify(value, (_, part: unknown) => (part === Infinity ? 'none' : part), 2)
  return reply(`${text}\n`, 'application/json', status)
}

function reply(body: string, type: string, status = 200, more: Record<string, string> = {}): Response {
  return new Response(body, {
    status,
    headers: { 'content-type': type, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', ...more },
  })
}
