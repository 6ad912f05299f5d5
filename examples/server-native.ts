// An app that insists on Node's own Request and returns Node's Response. Run it by `npm run example -- server-native`, then: curl -d name=Ada http://localhost:8080
import { serve } from 'heddle/server'

async function app(request: globalThis.Request): Promise<globalThis.Response> {
  if (!(request instanceof globalThis.Request)) throw new TypeError('not a Request of Node')
  if (request.method !== 'POST') return globalThis.Response.json({ error: 'POST a form' }, { status: 405 })
  const form = await request.formData()
  return globalThis.Response.json({ hello: form.get('name') })
}

const server = await serve({
  port: Number(process.env['PORT'] ?? 8080),
  fetch: { fetch: (request) => app(request.toNative()) },
})
console.log(server.url)
process.once('SIGTERM', () => void server.close())
