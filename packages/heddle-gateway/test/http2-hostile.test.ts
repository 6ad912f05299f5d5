import { deepEqual, equal } from 'node:assert/strict'
import { worldTest, type DebugFrame } from 'heddle/testing'
import { Code, headers, pick, request } from './http2-peer.ts'
import { get, wantHead } from './messages.ts'
import { clusterConfig, Rig } from './rig.ts'

const few = { seeds: 2 }
const h2c = [clusterConfig({ protocol: 'h2c' })]

worldTest('an upstream that sends interim responses without end is cut off, and its client told', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('GET'), true)
  world.run()
  const upstream = host.http2Peer()
  upstream.wantHead('the request', 1, true)
  for (let i = 0; i < 150; i++) upstream.sendHead(1, [':status', '103', 'link', '</a>'], false)
  upstream.wantReset('enough', 1, Code.EnhanceYourCalm)
  let hints = 0
  while (pick(client.wantHead('hints, and then the answer', 1, false), ':status')[':status'] === '103') hints++
  equal(hints, 100)
  client.wantContent('its text', 1, 41, true)
  const record = rig.record()
  deepEqual([record.status, record.reason], [502, 'upstream_protocol_error'])
  deepEqual(rig.leftovers(), [])
})

worldTest('an upstream that says more or less than it promised breaks that response only', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.http2Client()
  for (const streamId of [1, 3, 5]) client.sendHead(streamId, request('GET', `/${streamId}`), true)
  world.run()
  const upstream = host.http2Peer()
  for (const streamId of [1, 3, 5]) upstream.wantHead('a request', streamId, true)
  for (const streamId of [1, 3, 5]) {
    upstream.sendHead(streamId, [':status', '200', 'content-length', '5'], false)
    client.wantHead('its head', streamId, false)
  }
  upstream.sendContent(1, 'too much', true)
  client.wantReset('too much', 1, Code.InternalError)
  upstream.sendContent(3, 'les', true)
  client.want('what came of it', ({ type }) => type === 'DATA' || type === 'RST_STREAM')
  client.attend()
  if (!client.isQuiet) client.wantReset('too little', 3, Code.InternalError)
  upstream.wantReset('told so', 1, Code.ProtocolError)
  upstream.wantReset('told so', 3, Code.ProtocolError)
  upstream.sendContent(5, 'right', true)
  equal(client.wantContent('the one that is right', 5, 5, true).toString(), 'right')
  deepEqual(
    rig.records.map(({ reason }) => reason),
    ['upstream_protocol_error', 'upstream_protocol_error', ''],
  )
  deepEqual(rig.leftovers(), [])
})

worldTest('an upstream that speaks no HTTP/2, and one that breaks its rules: 502, and the next request tries anew', few, async (world) => {
  for (const [i, [words, reason]] of (
    [
      ['HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n', 'upstream_protocol_error'],
      // A frame of more than we allow, and PUSH_PROMISE.
      [Buffer.from('000000040000000000ffffff000000000001', 'hex'), 'upstream_protocol_error'],
      [Buffer.from('00000004000000000000000405040000000100000002', 'hex'), 'upstream_protocol_error'],
    ] as const
  ).entries()) {
    const name = `10.0.1.${i}`
    const rig = await Rig.make(world, {
      listener: { host: `gateway${i}` },
      clusters: [clusterConfig({ protocol: 'h2c', endpoints: [{ host: name, port: 8080 }] })],
    })
    const host = rig.upstream(name)
    const client = rig.client().send(get())
    world.run()
    host.peer().send(words)
    const answer = wantHead(client, `a 502 ${i}`)
    deepEqual([answer.line, answer.field('heddle-reason')], ['HTTP/1.1 502 Bad Gateway', reason])
    client.want('its text', new RegExp(`502 Bad Gateway: ${reason}\n`))
    client.send(get('/again'))
    world.run()
    const upstream = host.http2Peer(1)
    upstream.wantHead('on a new connection', 1, true)
    upstream.sendHead(1, [':status', '204'], true)
    equal(wantHead(client, 'an answer').line, 'HTTP/1.1 204 No Content')
    deepEqual(rig.leftovers(), [])
  }
})

worldTest(
  'rapid reset (CVE-2023-44487): the client loses its connection, the others and the upstream notice nothing',
  { seeds: 8 },
  async (world) => {
    const rig = await Rig.make(world, { clusters: h2c })
    const host = rig.upstream()
    const good = rig.http2Client()
    good.sendHead(1, request('GET', '/good'), true)
    world.run()
    const upstream = host.http2Peer()
    upstream.wantHead('a good request', 1, true)
    const attacker = rig.http2Client()
    const frames = Array.from({ length: 1_000 }, (_, i): DebugFrame[] => {
      const streamId = 2 * i + 1
      return [headers(streamId, request('GET', `/${i}`), true), { type: 'RST_STREAM', streamId, code: Code.Cancel }]
    })
    // All in one piece, or one after the other.
    if (world.random.chance(0.5)) attacker.batch(frames.flat())
    else for (const pair of frames) attacker.batch(pair)
    attacker.wantFrame('enough', { type: 'GOAWAY', code: Code.EnhanceYourCalm })
    // What reached the upstream was cancelled there, and is half of what servers let pass: then the connection is left.
    const counts = { HEADERS: 0, RST_STREAM: 0, GOAWAY: 0 }
    while (!upstream.isQuiet) counts[upstream.want('a request or its end', ({ type }) => type in counts).type as keyof typeof counts]++
    deepEqual(counts, { HEADERS: 101, RST_STREAM: 101, GOAWAY: 1 })
    upstream.sendHead(1, [':status', '200'], true)
    deepEqual(pick(good.wantHead('the good one is answered', 1, true), ':status'), { ':status': '200' })
    deepEqual(rig.leftovers(), [])
  },
)
