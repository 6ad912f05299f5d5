/** A page with 100 resources, and what it must find in itself. */
import assert from 'node:assert/strict'
import { Response, type FetchHandler } from 'heddle'
import { application, content, sumOf } from './application.ts'
import type { Page } from './chromium.ts'
import { until } from './stage.ts'

/** Of each kind; 100 together. */
const counts = { image: 40, script: 25, style: 25, data: 10 } as const

const kinds = Object.entries(counts) as [keyof typeof counts, number][]

const page = `<!doctype html><meta charset="utf-8"><title>100</title><link rel="icon" href="data:,">
<script>var ran = []</script>
${Array.from({ length: counts.style }, (_, i) => `<link rel="stylesheet" href="/style/${i}.css"><i id="i${i}"></i>`).join('\n')}
${Array.from({ length: counts.image }, (_, i) => `<img src="/image/${i}.svg">`).join('\n')}
${Array.from({ length: counts.script }, (_, i) => `<script async src="/script/${i}.js"></script>`).join('\n')}
`

/** Every one differs from the others, in size, too. */
function data(i: number): Uint8Array {
  return content.subarray(i * 1000, i * 1000 + 20_000 * (i + 1))
}

function resource(kind: string, i: number): { type: string; body: string | Uint8Array } {
  switch (kind) {
    case 'image':
      return {
        type: 'image/svg+xml',
        body: `<svg xmlns="http://www.w3.org/2000/svg" width="${i + 1}" height="7"><!--${'x'.repeat(i * 500)}--></svg>`,
      }
    case 'script':
      return { type: 'text/javascript', body: `ran.push(${i}) /*${'x'.repeat(i * 500)}*/` }
    case 'style':
      return { type: 'text/css', body: `#i${i} { padding-left: ${i + 1}px }` }
    default:
      return { type: 'application/octet-stream', body: data(i) }
  }
}

/** The page, its resources, and the application of the stories. */
export function site(): FetchHandler {
  const rest = application()
  return (request, context) => {
    const { pathname } = new URL(request.url)
    if (pathname === '/') return new Response(page, { headers: { 'content-type': 'text/html' } })
    const [, kind, i] = /^\/(\w+)\/(\d+)\.\w+$/.exec(pathname) ?? []
    if (kind === undefined) return (rest as (r: typeof request, c: typeof context) => Promise<Response>)(request, context)
    const { type, body } = resource(kind, Number(i))
    return new Response(body, { headers: { 'content-type': type, 'cache-control': 'no-store' } })
  }
}

/** What the page finds in itself. */
const look = `(async () => {
  const sum = async (response) => [...new Uint8Array(await crypto.subtle.digest('SHA-256', await response.arrayBuffer()))]
    .map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return {
    image: [...document.images].map((image) => image.complete && image.naturalHeight === 7 ? image.naturalWidth : 0),
    script: ran.toSorted((a, b) => a - b),
    style: [...document.querySelectorAll('i')].map((element) => parseInt(getComputedStyle(element).paddingLeft)),
    data: await Promise.all(Array.from({ length: ${counts.data} }, async (_, i) => await sum(await fetch('/data/' + i + '.bin')))),
  }
})()`

/** Opens the page in `tab`, and does what pages do: all by `protocol`, on one connection. */
export async function tellPageStory(tab: Page, base: string, protocol: 'h2' | 'h3'): Promise<void> {
  await tab.go(`${base}/`)
  assert.deepEqual(await tab.evaluate(look), {
    image: Array.from({ length: counts.image }, (_, i) => i + 1),
    script: Array.from({ length: counts.script }, (_, i) => i),
    style: Array.from({ length: counts.style }, (_, i) => i + 1),
    data: Array.from({ length: counts.data }, (_, i) => sumOf(data(i))),
  })
  const ours = tab.seen.filter(({ url }) => url.startsWith(base))
  const paths = ours.map(({ url }) => new URL(url).pathname).toSorted()
  const files = { image: 'svg', script: 'js', style: 'css', data: 'bin' }
  const expected = kinds.flatMap(([kind, count]) => Array.from({ length: count }, (_, i) => `/${kind}/${i}.${files[kind]}`))
  assert.equal(expected.length, 100)
  assert.deepEqual(paths, ['/', ...expected].toSorted())
  assert.ok(
    ours.every(({ protocol: version, status }) => version === protocol && status === 200),
    JSON.stringify(ours),
  )
  const hops = `performance.getEntriesByType('resource').filter(({ name }) => name.startsWith('http')).map(({ nextHopProtocol }) => nextHopProtocol)`
  assert.deepEqual(
    await tab.evaluate(hops),
    Array.from({ length: 100 }, () => protocol),
    'the page was told the same',
  )
  assert.equal(new Set(ours.map(({ connectionId }) => connectionId)).size, 1, 'one connection carried everything')
  assert.deepEqual(tab.complaints, [])

  // What pages do besides.
  const upload = `fetch('/sum', { method: 'POST', body: new Uint8Array(2_000_000).fill(97) }).then((response) => response.text())`
  assert.equal(await tab.evaluate(upload), sumOf(Buffer.alloc(2_000_000, 'a')))
  const stream = `fetch('/stream').then(async ({ body }) => { let length = 0; for await (const chunk of body) length += chunk.length; return length })`
  assert.equal(await tab.evaluate(stream), content.length)
  const abort = `(async () => {
    const control = new AbortController()
    const waiting = fetch('/wait', { signal: control.signal }).catch((error) => error.name)
    setTimeout(() => control.abort(), 50)
    return await waiting
  })()`
  assert.equal(await tab.evaluate(abort), 'AbortError')
  const cancelled = `fetch('/cancelled').then((response) => response.text())`
  await until(async () => (await tab.evaluate(cancelled)) === '1', 'the application to be told of the abort')
  assert.equal(new Set(tab.seen.map(({ connectionId }) => connectionId)).size, 1, 'still on the same connection')
}
