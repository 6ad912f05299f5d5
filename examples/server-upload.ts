// Hashes an upload while it comes in, with a limit, and says the hash in a trailer field as well.
// Run it by `npm run example -- server-upload`, then: curl -v --data-binary @FILE http://localhost:8080 (a big file: see "Expect: 100-continue")
import { createHash } from 'node:crypto'
import { Response, serve } from 'heddle/server'

const server = await serve({
  port: Number(process.env['PORT'] ?? 8080),
  limits: { maxContentLength: 64 * 1024 * 1024 },
  async fetch(request, info) {
    if (request.body === null) return new Response('POST or PUT something\n', { status: 405, headers: { allow: 'POST, PUT' } })
    info.sendInformational(103, { link: '</style.css>; rel=preload; as=style' })
    const hash = createHash('sha256')
    let size = 0
    for await (const chunk of request.body ?? []) {
      hash.update(chunk)
      size += chunk.length
    }
    const digest = hash.digest('hex')
    return new Response(`${digest} ${size}\n`, { trailers: { 'x-digest': digest } })
  },
  onError(error) {
    console.error('failed:', error)
    return new Response('sorry\n', { status: 500 })
  },
})
console.log(server.url)
process.once('SIGTERM', () => void server.close())
