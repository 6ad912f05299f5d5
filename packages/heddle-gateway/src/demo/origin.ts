/** The program of the demo's origin: a small server of its own process, so that it can be killed. */
import { setTimeout as delay } from 'node:timers/promises'
import { Response, serve, type Request, type RequestContext } from 'heddle/server'
import { demoPage, type Seen } from './page.ts'

const [port = '0'] = process.argv.slice(2)
let adminUrl = ''

async function answer(request: Request, context: RequestContext): Promise<Response> {
  const url = new URL(request.url)
  switch (url.pathname) {
    case '/':
      return new Response(demoPage(seen(request, url, context), adminUrl), {
        headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' },
      })
    case '/headers': {
      const { fields, ...rest } = seen(request, url, context)
      return json({ ...rest, process: process.pid, headers: Object.fromEntries(fields) })
    }
    case '/echo':
      return new Response(request.body, { headers: { 'content-type': request.headers.get('content-type') ?? 'application/octet-stream' } })
    case '/stream':
      return new Response(lines(), { headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' } })
    case '/slow': {
      const ms = Math.min(30_000, Math.max(0, Number(url.searchParams.get('ms') ?? 1_000) || 0))
      await delay(ms)
      return json({ waited: ms })
    }
    case '/demo/stop':
      if (request.method !== 'POST') return new Response('POST it\n', { status: 405, headers: { allow: 'POST' } })
      // After the answer is out.
      setTimeout(() => process.exit(0), 50)
      return json({ stopping: process.pid, back: 'in five seconds' })
    default:
      return new Response('There are / /headers /echo /stream /slow and POST /demo/stop\n', { status: 404 })
  }
}

function seen(request: Request, url: URL, context: RequestContext): Seen {
  return {
    method: request.method,
    path: url.pathname + url.search,
    host: url.host,
    fields: [...request.headers],
    peer: context.remote.address,
  }
}

function json(value: unknown): Response {
  return new Response(`${JSON.stringify(value, undefined, 2)}\n`, {
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
  })
}

/** Ten lines, two a second. */
function lines(): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let count = 0
  return new ReadableStream({
    async pull(controller) {
      if (count > 0) await delay(500)
      count++
      controller.enqueue(encoder.encode(`${count} of 10 at ${new Date().toISOString()}\n`))
      if (count === 10) controller.close()
    },
  })
}

// Ctrl-C reaches the whole group of processes; the gateway drains first and then lets go of this one.
process.on('SIGINT', () => {})
process.on('message', (message: { adminUrl: string }) => {
  adminUrl = message.adminUrl
})
process.on('disconnect', () => process.exit(0))
const server = await serve({ hostname: '127.0.0.1', port: Number(port), fetch: answer })
process.send?.({ port: server.port })
