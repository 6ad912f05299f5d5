import { deepEqual, equal, match } from 'node:assert/strict'
import { literalBlock, worldTest } from 'heddle/testing'
import { Code, pick, request, type QuietPeer } from './http2-peer.ts'
import { malformedHeads, smuggled } from './malformed-heads.ts'
import { get, ok, wantHead } from './messages.ts'
import { clusterConfig, Rig } from './rig.ts'

const few = { seeds: 1 }
const h2c = [clusterConfig({ protocol: 'h2c' })]

function post(streamId: number, ...more: string[]): string[] {
  return streamId === 1 ? request('POST', '/attack', ...more) : request('GET')
}

/** Requests that must not reach an upstream, whatever it speaks, and cost their client the stream. */
const malformed: Readonly<Record<string, (client: QuietPeer) => void>> = {
  ...Object.fromEntries(
    Object.entries(malformedHeads).map(([name, head]) => [name, (client: QuietPeer) => void client.sendHead(1, head, true)]),
  ),
  'transfer-encoding': (client) =>
    client.sendHead(1, post(1, 'transfer-encoding', 'chunked'), false).sendContent(1, '0\r\n\r\nGET /smuggled', true),
  'two lengths': (client) => client.sendHead(1, post(1, 'content-length', '5', 'content-length', '6'), false).sendContent(1, 'hello', true),
  'the same length twice': (client) =>
    client.sendHead(1, post(1, 'content-length', '5', 'content-length', '5'), false).sendContent(1, 'hello', true),
  'a length that is none': (client) => client.sendHead(1, post(1, 'content-length', '+5'), false).sendContent(1, 'hello', true),
  'a length that is a list': (client) => client.sendHead(1, post(1, 'content-length', '5, 5'), false).sendContent(1, 'hello', true),
  'a length without content': (client) => client.sendHead(1, post(1, 'content-length', '5'), true),
  'what stands in the dynamic table, by its number': (client) => {
    // 0x40: a literal that enters the table, name and value new; 0xbe: the newest of the table.
    const poison = Buffer.concat([Buffer.from([0x40]), literalBlock(['x-a', 'b\r\nx-b: c']).subarray(1)])
    const head = literalBlock(request('GET', '/attack'))
    client.send({ type: 'HEADERS', streamId: 1, block: Buffer.concat([head, poison]), end: true, endHeaders: true })
    client.wantReset('the one that brought it', 1, Code.ProtocolError)
    client.send({ type: 'HEADERS', streamId: 3, block: Buffer.concat([head, Buffer.from([0xbe])]), end: true, endHeaders: true })
  },
}

for (const [name, attack] of Object.entries(malformed)) {
  worldTest(`never reaches an upstream of HTTP/1.1: ${name}`, few, async (world) => {
    const rig = await Rig.make(world)
    const host = rig.upstream()
    const client = rig.http2Client()
    attack(client)
    const { streamId } = client.wantFrame('the stream is reset', { type: 'RST_STREAM', code: Code.ProtocolError })
    equal(host.peers.length, 0, 'nothing was sent upstream')
    // The connection goes on.
    client.sendHead(streamId + 2, request('GET', '/good'), true)
    world.run()
    equal(wantHead(host.peer(), 'a good request').line, 'GET /good HTTP/1.1')
    host.peer().wantIdle('that is all')
    host.peer().send(ok(''))
    client.wantHead('its answer', streamId + 2, true)
    deepEqual([rig.started, rig.leftovers()], [1, []])
  })

  worldTest(`never reaches an upstream of HTTP/2: ${name}`, few, async (world) => {
    const rig = await Rig.make(world, { clusters: h2c })
    const host = rig.upstream()
    const client = rig.http2Client()
    attack(client)
    const { streamId } = client.wantFrame('the stream is reset', { type: 'RST_STREAM', code: Code.ProtocolError })
    equal(host.peers.length, 0, 'nothing was sent upstream')
    client.sendHead(streamId + 2, request('GET', '/good'), true)
    world.run()
    const upstream = host.http2Peer()
    equal(pick(upstream.wantHead('a good request', 1, true), ':path')[':path'], '/good')
    upstream.sendHead(1, [':status', '200'], true)
    upstream.wantIdle('that is all')
    client.wantHead('its answer', streamId + 2, true)
    deepEqual([rig.started, rig.leftovers()], [1, []])
  })
}

/** Requests that begin well, and how they go on: the fields of a POST that an upstream sees, and what must never make it complete. */
const broken: Readonly<Record<string, readonly [fields: readonly string[], rest: (client: QuietPeer) => void]>> = {
  'less content than its length': [['content-length', '10'], (client) => client.sendContent(1, 'lo', true)],
  'more content than its length': [['content-length', '4'], (client) => client.sendContent(1, 'lo', true)],
  'trailers before the length is reached': [['content-length', '10'], (client) => client.sendHead(1, ['x-a', 'b'], true)],
  'a pseudo-header field in trailers': [[], (client) => client.sendHead(1, [':path', '/smuggled'], true)],
  'CR LF in trailers': [[], (client) => client.sendHead(1, ['x-a', smuggled], true)],
  'transfer-encoding in trailers': [[], (client) => client.sendHead(1, ['transfer-encoding', 'chunked'], true)],
  'content-length in trailers': [[], (client) => client.sendHead(1, ['content-length', '3'], true)],
  'a second head that does not end': [[], (client) => client.sendHead(1, ['x-a', 'b'], false)],
}

for (const [name, [more, rest]] of Object.entries(broken)) {
  worldTest(`is never complete at an upstream of HTTP/1.1: ${name}`, few, async (world) => {
    const rig = await Rig.make(world)
    const host = rig.upstream()
    const client = rig.http2Client()
    client.sendHead(1, request('POST', '/attack', ...more), false).sendContent(1, 'hel', false)
    world.run()
    const upstream = host.peer()
    equal(wantHead(upstream, 'it begins well').line, 'POST /attack HTTP/1.1')
    rest(client)
    client.wantReset('the stream is reset', 1, Code.ProtocolError)
    // Chunks without a last one, or fewer octets than promised: and then the connection is gone.
    match(upstream.received.toString('latin1'), more.length === 0 ? /^3\r\nhel\r\n$/ : /^hel$/)
    equal(upstream.closedBy === 'no', false)
    const record = rig.record()
    deepEqual([record.reason, record.status, rig.cluster.stats().endpoints[0]?.failures], ['client_error', 400, 0])
    client.sendHead(3, request('GET', '/good'), true)
    world.run()
    equal(wantHead(host.peer(1), 'a good request').line, 'GET /good HTTP/1.1')
    client.send({ type: 'RST_STREAM', streamId: 3, code: Code.Cancel })
    world.run()
    deepEqual(rig.leftovers(), [])
  })

  worldTest(`is reset at an upstream of HTTP/2: ${name}`, few, async (world) => {
    const rig = await Rig.make(world, { clusters: h2c })
    const host = rig.upstream()
    const client = rig.http2Client()
    client.sendHead(1, request('POST', '/attack', ...more), false).sendContent(1, 'hel', false)
    world.run()
    const upstream = host.http2Peer()
    upstream.wantHead('it begins well', 1, false)
    upstream.wantContent('what came first', 1, 3, false)
    rest(client)
    client.wantReset('the stream is reset', 1, Code.ProtocolError)
    upstream.wantReset('and so it is upstream', 1, Code.ProtocolError)
    upstream.wantIdle('nothing else is disturbed')
    deepEqual(rig.leftovers(), [])
  })
}

/** Heads of responses that must not reach a client of HTTP/1.1. */
const hostile: Readonly<Record<string, readonly string[]>> = {
  'CR LF in a value': [':status', '200', 'x-a', 'b\r\nSet-Cookie: evil=1'],
  'CR LF in a name': [':status', '200', 'x-a: b\r\nset-cookie', 'evil=1'],
  'transfer-encoding': [':status', '200', 'transfer-encoding', 'chunked'],
  connection: [':status', '200', 'connection', 'close'],
  'two lengths': [':status', '200', 'content-length', '5', 'content-length', '6'],
  'no :status': ['x-a', 'b'],
  'a :status that is none': [':status', '2000'],
  'a :status with CR LF': [':status', '200\r\nx-a: b'],
  '101': [':status', '101', 'upgrade', 'h2c'],
  'a pseudo-header field of requests': [':status', '200', ':path', '/'],
}

for (const [name, head] of Object.entries(hostile)) {
  worldTest(`never reaches a client: a response with ${name}`, few, async (world) => {
    const rig = await Rig.make(world, { clusters: h2c })
    const host = rig.upstream()
    const client = rig.client().send(get())
    world.run()
    const upstream = host.http2Peer()
    upstream.wantHead('the request', 1, true)
    upstream.sendHead(1, head, true)
    upstream.wantReset('the stream is reset', 1, Code.ProtocolError)
    const answer = wantHead(client, 'a 502 instead')
    deepEqual(
      [answer.line, answer.field('heddle-reason'), answer.field('set-cookie')],
      ['HTTP/1.1 502 Bad Gateway', 'upstream_protocol_error', undefined],
    )
    client.want('its text', /502 Bad Gateway: upstream_protocol_error\n/)
    client.send(get('/next'))
    upstream.wantHead('the connections go on', 3, true)
    upstream.sendHead(3, [':status', '204'], true)
    equal(wantHead(client, 'both of them').line, 'HTTP/1.1 204 No Content')
    deepEqual(rig.leftovers(), [])
  })
}

worldTest('h2c upgrade smuggling: neither Upgrade nor HTTP2-Settings goes upstream, named in Connection or not', few, async (world) => {
  const rig = await Rig.make(world)
  const host = rig.upstream()
  const client = rig.client()
  for (const connection of ['Upgrade, HTTP2-Settings', 'Upgrade', 'HTTP2-Settings', 'x']) {
    client.send(get('/', `Connection: ${connection}`, 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA'))
    world.run()
    const upstream = host.peer()
    const head = wantHead(upstream, 'the request')
    deepEqual([head.line, head.field('upgrade'), head.field('http2-settings')], ['GET / HTTP/1.1', undefined, undefined])
    upstream.send(ok(''))
    equal(wantHead(client, 'an ordinary answer').line, 'HTTP/1.1 200 OK')
  }
  client.send(get('/', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'))
  world.run()
  wantHead(host.peer(), 'the request')
  host.peer().send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n')
  equal(wantHead(client, 'an upstream that switches unasked').field('heddle-reason'), 'upstream_protocol_error')
})

worldTest('the preface of HTTP/2 behind a request of HTTP/1.1 is an error, no tunnel', few, async (world) => {
  const rig = await Rig.make(world)
  const host = rig.upstream()
  const client = rig.client()
  client.send(`${get()}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`)
  world.run()
  wantHead(host.peer(), 'the request')
  host.peer().send(ok(''))
  wantHead(client, 'its answer')
  equal(wantHead(client, 'the preface').line.slice(0, 12), 'HTTP/1.1 505')
  host.peer().wantIdle('none of it went upstream')
})
