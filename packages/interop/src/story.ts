/** What every client is asked to do with the application (`application.ts`), wherever that runs and whatever is between. */
import assert from 'node:assert/strict'
import { brokenAfter, content, sumOf } from './application.ts'
import type { Lack, PeerClient } from './clients.ts'
import { until } from './stage.ts'

/** What is known of the place. */
export interface Setting {
  /** The version the application is reached with; behind a gateway, the upstream's. */
  readonly version: 'h1' | 'h2' | 'h3'
  /** The version the client speaks. */
  readonly spoken: 'h1' | 'h2' | 'h3'
  /** What the server, or the gateway, does not do. */
  readonly lacks?: readonly Lack[]
}

/** Tells the story. */
export async function tellStory(client: PeerClient, { version, spoken, lacks = [] }: Setting): Promise<void> {
  const can = (lack: Lack): boolean => !client.lacks.includes(lack) && !lacks.includes(lack)

  const hello = await client.ask({ path: '/hello?a=b' })
  assert.deepEqual([hello.status, hello.text], [200, `GET ${version}`])

  if (can('HEAD')) {
    const head = await client.ask({ method: 'HEAD', path: '/big' })
    assert.deepEqual([head.status, head.body.length, head.headers['content-length']], [200, 0, `${content.length}`])
  }

  const big = await client.ask({ path: '/big' })
  assert.equal(big.headers['content-length'], `${content.length}`)
  assert.equal(sumOf(big.body), sumOf(content))
  const stream = await client.ask({ path: '/stream' })
  assert.equal(stream.headers['content-length'], undefined)
  assert.equal(sumOf(stream.body), sumOf(content))

  for (const streamed of [false, true]) {
    for (const body of ['', 'small', content]) {
      const sum = await client.ask({ method: 'POST', path: '/sum', body, streamed })
      assert.equal(sum.text, sumOf(Buffer.from(body)), `${body.length} octets, streamed: ${streamed}`)
      const echo = await client.ask({ method: 'POST', path: '/echo', body, streamed })
      assert.equal(sumOf(echo.body), sumOf(Buffer.from(body)))
    }
  }
  if (can('expect')) {
    const sum = await client.ask({ method: 'PUT', path: '/sum', body: content, headers: { expect: '100-continue' } })
    assert.equal(sum.text, sumOf(content))
  }
  // Answered without being read: the client loses neither the answer nor its connection for that.
  for (const body of ['unread', content.subarray(0, 50_000)]) {
    assert.equal((await client.ask({ method: 'POST', path: '/hello', body })).text, `POST ${version}`)
  }

  const long = 'v'.repeat(8000)
  const fields = await client.ask({ path: '/fields', headers: { 'x-asked': ['one', 'two', long], cookie: 'a=1; b=2; c=3' } })
  assert.equal([fields.headers['x-answered']].flat().join(', '), `one, two, ${long}`)
  assert.equal(fields.text, 'a=1; b=2; c=3')

  if (can('response trailers')) {
    // Announced, since net/http shows no others to its handlers.
    const sent = can('request trailers') ? { trailers: { 'x-sent': 'before the end' } } : {}
    const headers = { te: 'trailers', ...(can('request trailers') && { trailer: 'x-sent' }) }
    const summed = await client.ask({ method: 'POST', path: '/trailers', body: 'some', ...sent, headers })
    assert.deepEqual([summed.text, summed.trailers['x-sum']], ['summed', '42'])
    if (can('request trailers')) assert.equal(summed.trailers['x-got'], 'before the end')
  }
  const hints = await client.ask({ path: '/hints' })
  assert.equal(hints.text, 'hinted')
  if (can('informational responses')) assert.deepEqual(hints.informational, ['103 </a.css>; rel=preload'])

  await assert.rejects(async () => {
    const { body } = await client.ask({ path: '/break' })
    assert.fail(`${body.length} octets of ${brokenAfter} passed for an answer`)
  }, isFailure)
  await client.ask({ path: '/big', abortAfter: 1 })

  const { text: before } = await client.ask({ path: '/cancelled' })
  await assert.rejects(client.ask({ path: '/wait', abortIn: 50 }), isFailure)
  await until(async () => Number((await client.ask({ path: '/cancelled' })).text) === Number(before) + 1, 'the application to be told')

  // As many as one connection takes.
  const count = spoken === 'h1' ? 40 : 100
  const many = await Promise.all(
    Array.from({ length: count }, (_, i) => client.ask({ method: 'POST', path: '/echo', body: `number ${i}` })),
  )
  assert.deepEqual(
    many.map(({ text }) => text),
    Array.from({ length: count }, (_, i) => `number ${i}`),
  )
}

function isFailure(error: unknown): boolean {
  return !(error instanceof assert.AssertionError)
}
