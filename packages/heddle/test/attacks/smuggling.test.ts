import assert from 'node:assert/strict'
import { test } from 'node:test'
import { World, type LinkOptions } from 'heddle/testing'
import { host, malformed, smuggled } from './malformed.ts'
import { worldServer } from './target.ts'

/*
 * Request smuggling: every malformed message is refused with 400 (501 for an unknown coding, 505 for a
 * version) and the connection closed. Behind each a request for /smuggled follows, which must never be handled.
 */
async function refused(name: string, bytes: string, statuses: readonly number[], mayBeAsked: readonly string[]): Promise<void> {
  for (const splits of ['none', 'bytewise', 'random'] as const) {
    const link: LinkOptions = { splits }
    const { world, asked, connect, close } = await worldServer(new World({ seed: 3 }))
    const { peer } = connect(link)
    peer.send(bytes)
    peer.send(smuggled)
    const head = peer.want(`${name} (${splits}): an answer`, /HTTP\/1\.1 (\d{3}) [^\r]*\r\n(?:[^\r]+\r\n)*\r\n/).toString('latin1')
    assert.ok(statuses.includes(Number(head.slice(9, 12))), `${name} (${splits}): ${head}`)
    assert.match(head, /\r\nconnection: close\r\n/i, `${name} (${splits}): it says that the connection closes`)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    peer.want('its content', (received) => (received.length >= length ? length : -1))
    world.advance(1000)
    assert.notEqual(peer.closedBy, 'no', `${name} (${splits}): the connection is closed`)
    assert.equal(peer.received.length, 0, `${name} (${splits}): there is one answer: ${peer.received.toString('latin1')}`)
    assert.deepEqual(
      asked.filter((path) => !mayBeAsked.includes(path)),
      [],
      `${name} (${splits}): no handler is asked`,
    )
    peer.end()
    await close()
  }
}

for (const { name: group, cases, message, mayBeAsked } of malformed) {
  for (const [name, part] of Object.entries(cases)) {
    test(`smuggling by ${group}: ${name}`, () => refused(name, message(part), [400, 501, 505], mayBeAsked))
  }
}

test('what is merely unusual is served: empty lines before the request, capitals, chunk extensions, zeros', async () => {
  const { asked, connect, close } = await worldServer(new World())
  const { peer } = connect()
  const ok = /HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)*\r\n3\n/
  peer.send(`\r\n\r\nPOST /a HTTP/1.1\r\n${host}Transfer-Encoding: CHUNKED\r\n\r\n00003;ext="q;\\"x"\r\nabc\r\n0\r\n\r\n`)
  peer.want('a coding in capitals, zeros before the size, an extension', ok)
  peer.send(`POST /b HTTP/1.1\r\nhOST:origin.test:80\t \r\nContent-Length:\t3 \r\nX-\`|~: \xe9\r\n\r\nabc`)
  peer.want('white space around the value', ok)
  peer.send(`POST http://origin.test/c HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n`)
  peer.want('absolute-form and trailers', ok)
  assert.deepEqual(asked, ['/a', '/b', '/c'])
  peer.end()
  await close()
})
