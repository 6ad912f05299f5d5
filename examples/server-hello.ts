// The smallest server. Run: node examples/server-hello.ts, then: curl http://localhost:8080/name
import { Response, serve } from 'heddle/server'

const server = await serve({
  port: Number(process.env['PORT'] ?? 8080),
  fetch(request, context) {
    const { pathname } = new URL(request.url)
    return new Response(`hello ${decodeURIComponent(pathname.slice(1)) || context.remote.address}\n`)
  },
})
console.log(server.url)

// Running requests may end, idle connections close at once; after ten seconds the rest is cut.
process.once('SIGTERM', () => void server.close())
