// The smallest server. Run it by `npm run example -- server-hello`, then: curl http://localhost:8080/name
import { Response, serve } from 'heddle/server'

const server = await serve({
  port: Number(process.env['PORT'] ?? 8080),
  fetch(request, info) {
    const { pathname } = new URL(request.url)
    return new Response(`hello ${pathname.slice(1) || info.remote.address}\n`)
  },
})
console.log(server.url)

// Running requests may end, idle connections close at once; after ten seconds the rest is cut.
process.once('SIGTERM', () => void server.close())
