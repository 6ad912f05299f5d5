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
      const { pathname } = new URL(request.url)
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
