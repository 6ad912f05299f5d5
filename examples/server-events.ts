// Server-sent events from an async generator, which ends when the client goes away. Run it by `npm run example -- server-events`, then: curl -N http://localhost:8080
import { setTimeout as wait } from 'node:timers/promises'
import { Response, serve, type Request } from 'heddle/server'

async function* ticks(request: Request): AsyncGenerator<string> {
  try {
    for (let count = 1; ; count++) {
      yield `data: ${count}\n\n`
      await wait(100, undefined, { signal: request.signal })
    }
  } finally {
    console.log('the client is gone')
  }
}

const server = await serve({
  port: Number(process.env['PORT'] ?? 8080),
  fetch: (request) => new Response(ticks(request), { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } }),
})
console.log(server.url)
process.once('SIGTERM', () => void server.close({ deadline: 0 }))
