/** What every client of HTTP/3 is asked to do beside the story of all versions. */
import assert from 'node:assert/strict'
import { sumOf } from './application.ts'
import type { PeerClient } from './clients.ts'
import { sized } from './quic-application.ts'

/** Tells it; `largest` is the size of the largest body that goes each way. */
export async function tellQuicStory(client: PeerClient, largest: number): Promise<void> {
  for (const size of [0, 1, 100, 1_048_576, largest]) {
    const got = await client.ask({ path: `/quic/sized/${size}` })
    assert.deepEqual([got.status, got.headers['content-length'], got.body.length], [200, `${size}`, size])
    assert.equal(sumOf(got.body), sumOf(sized(size)), `${size} octets of an answer`)
    const sent = await client.ask({ method: 'POST', path: '/sum', body: sized(size) })
    assert.equal(sent.text, sumOf(sized(size)), `${size} octets of a request`)
    if (size === largest) continue
    const back = await client.ask({ method: 'POST', path: '/echo', body: sized(size) })
    assert.equal(sumOf(back.body), sumOf(sized(size)), `${size} octets there and back`)
  }

  const fresh = await client.ask({ path: '/quic/not-modified' })
  assert.deepEqual([fresh.status, fresh.headers['etag'], fresh.body.length], [304, '"one"', 0])

  // Field sections larger than a datagram, with what the dynamic table holds and what it has no room for.
  for (let i = 0; i < 20; i++) {
    const values = ['x'.repeat(100), `number ${i}`, 'y'.repeat(10 * i), 'z'.repeat(6000)].slice(0, 1 + (i % 4))
    const { headers } = await client.ask({ path: '/fields', headers: { 'x-asked': values, 'x-other': `other ${i % 3}` } })
    assert.equal([headers['x-answered']].flat().join(', '), values.join(', '))
  }

  // More than one connection takes at once: the rest waits for room.
  const count = 250
  const many = await Promise.all(
    Array.from({ length: count }, (_, i) => client.ask({ method: 'POST', path: '/echo', body: `number ${i}` })),
  )
  assert.deepEqual(
    many.map(({ text }) => text),
    Array.from({ length: count }, (_, i) => `number ${i}`),
  )
}
