import assert from 'node:assert/strict'
import { fieldValue, requestHead, responseHead, UsageError, type Fields } from '../../http/index.ts'
import { assertReceived, assertWell, conformanceCase, get, post, whenReceived, type ConformanceCase, type Stage } from './stage.ts'

const sizes = [0, 1, 2, 100, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 300_000]

/** An upload answered with a download, each of the given size, framed as the seed says. */
function both(stage: Stage, up: number, down: number): void {
  const { random } = stage.world
  const request = random.bytes(up)
  const response = random.bytes(down)
  const lengthUp = random.chance(0.5)
  const lengthDown = random.chance(0.5)
  stage.serve = (side) =>
    whenReceived(side, () => {
      side.exchange.sendHead(responseHead(200, lengthDown ? ['content-length', String(down)] : ['x-a', 'b']), false)
      side.send({ content: response })
    })
  const client = stage.request(post(lengthUp ? up : undefined), false)
  client.send({ content: request })
  stage.run()
  assertReceived(stage.served, request)
  assertReceived(client, response)
  assertWell(client, stage.served)
  assert.equal(client.head?.status, 200)
  assert.equal(client.sent, up, 'onSent counts every byte of the request')
  assert.equal(stage.served.sent, down, 'onSent counts every byte of the response')
}

/** Asserts that `fields` holds each of `expected`, in order. */
function assertFields(fields: Fields | undefined, expected: Fields): void {
  const got: string[] = []
  for (let i = 0; i < (fields?.length ?? 0); i += 2) {
    const name = fields?.[i] as string
    if (expected.includes(name)) got.push(name, fields?.[i + 1] as string)
  }
  assert.deepEqual(got, expected)
}

const simple: ConformanceCase[] = [
  conformanceCase('a request without content and its answer', (stage) => {
    stage.serve = (side) => {
      side.on = {
        onHead: () => side.exchange.sendHead(responseHead(404, ['x-answer', 'no', 'set-cookie', 'a=1', 'set-cookie', 'b=2']), true),
      }
    }
    const client = stage.request(get('/a?b=c', ['accept', '*/*', 'x-twice', '1', 'x-twice', '2', 'x-octets', '\u00e9\u00ff']), true)
    stage.run()
    const { head } = stage.served
    assert.deepEqual(
      [head?.method, head?.scheme, head?.authority, head?.path, head?.protocol],
      ['GET', 'http', 'origin.test', '/a?b=c', ''],
    )
    assertFields(head?.fields, ['accept', '*/*', 'x-twice', '1', 'x-twice', '2', 'x-octets', '\u00e9\u00ff'])
    assert.equal(fieldValue(head?.fields ?? [], 'host'), undefined, 'host is authority')
    assert.equal(client.head?.status, 404)
    assertFields(client.head?.fields, ['x-answer', 'no', 'set-cookie', 'a=1', 'set-cookie', 'b=2'])
    assertWell(client, stage.served)
  }),
  conformanceCase('many exchanges, one after the other', (stage) => {
    for (let i = 0; i < 20; i++) {
      const size = stage.world.random.length(5000)
      both(stage, size, 5000 - size)
      assert.ok(stage.pair.client.openable > 0, 'the slot is free again')
    }
    assert.deepEqual(stage.clientConnection.lines.slice(0, 1), ['ready'])
  }),
  conformanceCase('the slot comes back with onCapacity, and open is refused while it is taken', (stage) => {
    const most = Math.min(stage.pair.client.openable, 200)
    assert.ok(most >= 1)
    const sides = Array.from({ length: most }, () => stage.open())
    if (stage.protocol.protocol === 'h1') assert.equal(stage.maybeOpen(), undefined)
    for (const side of sides) side.exchange.sendHead(get(), true)
    const before = stage.clientConnection.lines.filter((line) => line.startsWith('capacity')).length
    stage.run()
    assert.ok(stage.clientConnection.lines.filter((line) => line.startsWith('capacity')).length > before)
    assertWell(...sides)
  }),
  conformanceCase('an empty body: the end comes by itself', (stage) => {
    stage.serve = (side) =>
      whenReceived(side, () => {
        side.exchange.sendHead(responseHead(200), false)
        side.exchange.sendData(Buffer.alloc(0), 0, 0, false)
        side.exchange.sendData(Buffer.alloc(0), 0, 0, true)
      })
    const client = stage.request(post(), false)
    client.exchange.sendOwned(Buffer.alloc(0), false)
    client.exchange.sendOwned(Buffer.alloc(0), true)
    stage.run()
    assertReceived(client, Buffer.alloc(0))
    assertReceived(stage.served, Buffer.alloc(0))
    assertWell(client, stage.served)
  }),
  conformanceCase('both directions at once', (stage) => {
    const { random } = stage.world
    const request = random.bytes(400_000)
    const response = random.bytes(400_000)
    stage.serve = (side) => {
      side.on = {
        onHead() {
          side.exchange.sendHead(responseHead(200), false)
          side.send({ content: response, piece: 10_000 })
        },
      }
    }
    const client = stage.request(post(), false)
    client.send({ content: request, piece: 10_000 })
    stage.run()
    assertReceived(client, response)
    assertReceived(stage.served, request)
    assertWell(client, stage.served)
  }),
  conformanceCase('an echo: the response begins while the request is still being sent', (stage) => {
    stage.serve = (side) => {
      side.autoConsume = false
      side.on = {
        onHead: () => side.exchange.sendHead(responseHead(200), false),
        onData: (buffer, start, limit, end) => void side.exchange.sendData(buffer, start, limit, end),
        onSent: (byteCount) => side.exchange.consume(byteCount),
      }
    }
    const content = stage.world.random.bytes(1_000_000)
    const client = stage.request(post(content.length), false)
    client.send({ content })
    stage.run()
    assertReceived(client, content)
    assertWell(client, stage.served)
  }),
  ...sizes.map((size) =>
    conformanceCase(`content of ${size} bytes both ways`, (stage) => {
      both(stage, size, size)
      both(stage, size, stage.world.random.length(100_000))
    }),
  ),
]

const trailers: ConformanceCase[] = [
  conformanceCase('trailers both ways', (stage) => {
    const content = stage.world.random.bytes(stage.world.random.length(100_000))
    stage.serve = (side) =>
      whenReceived(side, () => {
        side.exchange.sendHead(responseHead(200), false)
        side.send({ content, finish: ['x-sum', '1', 'x-sum', '2'] })
      })
    const client = stage.request(post(), false)
    client.send({ content, finish: ['x-checksum', 'abc'] })
    stage.run()
    assertReceived(client, content)
    assertReceived(stage.served, content)
    assert.deepEqual(client.trailers, ['x-sum', '1', 'x-sum', '2'])
    assert.deepEqual(stage.served.trailers, ['x-checksum', 'abc'])
    assertWell(client, stage.served)
  }),
  conformanceCase('trailers after no content', (stage) => {
    stage.serve = (side) =>
      whenReceived(side, () => {
        side.exchange.sendHead(responseHead(200), false)
        side.exchange.sendTrailers(['x-end', 'y'])
      })
    const client = stage.request(post(), false)
    client.exchange.sendTrailers(['x-end', 'x'])
    stage.run()
    assert.deepEqual([client.received, client.trailers], [0, ['x-end', 'y']])
    assert.deepEqual([stage.served.received, stage.served.trailers], [0, ['x-end', 'x']])
    assertWell(client, stage.served)
  }),
]

const informational: ConformanceCase[] = [
  conformanceCase('1xx heads before the final one', (stage) => {
    stage.serve = (side) =>
      whenReceived(side, () => {
        side.exchange.sendHead(responseHead(103, ['link', '</a.css>']), false)
        side.exchange.sendHead(responseHead(103, ['link', '</b.css>']), false)
        side.exchange.sendHead(responseHead(200, ['content-length', '2']), false)
        side.exchange.sendData(Buffer.from('ok'), 0, 2, true)
      })
    const client = stage.request(get(), true)
    stage.run()
    assert.deepEqual(
      client.informational.map(({ status, fields }) => [status, ...fields]),
      [
        [103, 'link', '</a.css>'],
        [103, 'link', '</b.css>'],
      ],
    )
    assertReceived(client, Buffer.from('ok'))
    assertWell(client, stage.served)
  }),
  conformanceCase('Expect: 100-continue: content waits for the 100', (stage) => {
    const content = stage.world.random.bytes(50_000)
    stage.serve = (side) => whenReceived(side, () => side.exchange.sendHead(responseHead(201), true))
    const client = stage.request(post(content.length, ['expect', '100-continue']), false)
    client.send({ content })
    stage.run()
    const server = stage.served
    assert.equal(fieldValue(server.head?.fields ?? [], 'expect'), '100-continue')
    assert.equal(server.received, 0, 'no content before the 100')
    server.exchange.sendHead(responseHead(100), false)
    stage.run()
    assert.deepEqual(
      client.informational.map(({ status }) => status),
      [100],
    )
    assertReceived(server, content)
    assert.equal(client.head?.status, 201)
    assertWell(client, server)
  }),
  conformanceCase('Expect: 100-continue: a final answer first, and the content is never sent', (stage) => {
    const content = stage.world.random.bytes(50_000)
    stage.serve = (side) => {
      side.on = {
        onHead() {
          // Content that does not come ends nothing, so the exchange ends well without an end.
          side.discarded = true
          if (stage.world.random.chance(0.5)) side.exchange.discard()
          side.exchange.sendHead(responseHead(417, ['content-length', '2']), false)
          side.exchange.sendData(Buffer.from('no'), 0, 2, true)
        },
      }
    }
    const client = stage.request(post(content.length, ['expect', '100-continue']), false)
    client.send({ content })
    stage.run()
    stage.world.advance(10_000)
    assert.equal(client.head?.status, 417)
    assertReceived(client, Buffer.from('no'))
    assert.equal(stage.served.received, 0, 'no content was sent')
    assertWell(client, stage.served)
  }),
  conformanceCase(
    'Expect: 100-continue: the content is sent after a while if nothing comes',
    (stage) => {
      const content = stage.world.random.bytes(5000)
      const client = stage.request(post(content.length, ['expect', '100-continue']), false)
      client.send({ content })
      stage.run()
      assert.equal(stage.served.received, 0)
      stage.world.advance(499 - 200)
      assert.equal(stage.served.received, 0)
      stage.world.advance(1000)
      assertReceived(stage.served, content)
      assertWell(client, stage.served)
    },
    { clientLimits: { continueTimeout: 500 } },
  ),
]

const bodiless: ConformanceCase[] = [
  ...(['HEAD', '204', '304'] as const).map((kind) =>
    conformanceCase(`${kind}: content is dropped, lengths stay, and the next exchange is unharmed`, (stage) => {
      const status = kind === 'HEAD' ? 200 : Number(kind)
      const fields = kind === '204' ? [] : ['content-length', '1000']
      stage.serve = (side) =>
        whenReceived(side, () => {
          side.exchange.sendHead(responseHead(status, fields), false)
          side.send({ content: Buffer.alloc(1000, 0x61) })
        })
      const client = stage.request(kind === 'HEAD' ? requestHead('HEAD', 'http', 'origin.test', '/') : get(), true)
      stage.run()
      assert.equal(client.head?.status, status)
      assertReceived(client, Buffer.alloc(0))
      assertFields(client.head?.fields, fields)
      assertWell(client, stage.served)
      stage.serve = (side) => whenReceived(side, () => side.exchange.sendHead(responseHead(200), true))
      const next = stage.request(get(), true)
      stage.run()
      assertWell(next, stage.served)
    }),
  ),
  conformanceCase('a response head with end to a GET has no content', (stage) => {
    const client = stage.request(get(), true)
    stage.run()
    assertReceived(client, Buffer.alloc(0))
    assertWell(client, stage.served)
  }),
]

const wrong = (call: () => void): void => assert.throws(call, UsageError)
const x = Buffer.from('x')

const usage: ConformanceCase[] = [
  conformanceCase('mistakes of order are UsageErrors on the client, and do no harm', (stage) => {
    stage.serve = (side) => whenReceived(side, () => side.exchange.sendHead(responseHead(200), true))
    const client = stage.open()
    const { exchange } = client
    wrong(() => exchange.sendData(x, 0, 1, false))
    wrong(() => exchange.sendOwned(x, true))
    wrong(() => exchange.sendTrailers(['a', 'b']))
    wrong(() => exchange.sendHead(responseHead(200), true))
    wrong(() => exchange.sendHead(get('/', ['Upper', 'x']), true))
    wrong(() => exchange.sendHead(get('/', ['bad name', 'x']), true))
    wrong(() => exchange.sendHead(get('/', ['name', 'a\r\nb']), true))
    wrong(() => exchange.sendHead(get('/', ['name', '\u010a']), true))
    wrong(() => exchange.sendHead(get('/', ['name', 'a\0b']), true))
    wrong(() => exchange.sendHead(requestHead('G T', 'http', 'origin.test', '/'), true))
    wrong(() => exchange.sendHead(requestHead('GET', 'http', 'origin.test', '/a b'), true))
    wrong(() => exchange.sendHead(requestHead('GET', 'http', 'or igin', '/'), true))
    exchange.sendHead(post(), false)
    wrong(() => exchange.sendHead(post(), false))
    wrong(() => exchange.sendTrailers(['bad\n', 'x']))
    exchange.sendData(x, 0, 1, true)
    wrong(() => exchange.sendData(x, 0, 1, false))
    wrong(() => exchange.sendOwned(x, false))
    wrong(() => exchange.sendTrailers(['a', 'b']))
    stage.run()
    assertReceived(stage.served, x)
    assertWell(client, stage.served)
  }),
  conformanceCase('mistakes of order are UsageErrors on the server, and do no harm', (stage) => {
    stage.serve = () => {}
    const client = stage.request(get(), true)
    stage.run()
    const { exchange } = stage.served
    wrong(() => exchange.sendData(x, 0, 1, false))
    wrong(() => exchange.sendTrailers(['a', 'b']))
    wrong(() => exchange.sendHead(get(), true))
    wrong(() => exchange.sendHead(responseHead(103), true))
    wrong(() => exchange.sendHead(responseHead(101), false))
    wrong(() => exchange.sendHead(responseHead(99), true))
    wrong(() => exchange.sendHead(responseHead(200, ['a', 'b\nc']), true))
    wrong(() => exchange.sendHead(responseHead(200, ['content-length', 'x']), false))
    exchange.sendHead(responseHead(200), false)
    wrong(() => exchange.sendHead(responseHead(200), false))
    wrong(() => exchange.sendHead(responseHead(103), false))
    exchange.sendData(x, 0, 1, true)
    wrong(() => exchange.sendData(x, 0, 1, true))
    stage.run()
    assertReceived(client, x)
    assertWell(client, stage.served)
  }),
  conformanceCase('content beyond its content-length is a UsageError, and does no harm', (stage) => {
    stage.serve = (side) => {
      side.on = {
        onHead() {
          side.exchange.sendHead(responseHead(200, ['content-length', '2']), false)
          wrong(() => side.exchange.sendData(Buffer.from('abc'), 0, 3, true))
          side.exchange.sendData(Buffer.from('a'), 0, 1, false)
          wrong(() => side.exchange.sendOwned(Buffer.from('bc'), true))
          side.exchange.sendData(Buffer.from('b'), 0, 1, true)
        },
      }
    }
    const client = stage.open()
    client.exchange.sendHead(post(2), false)
    wrong(() => client.exchange.sendOwned(Buffer.from('abc'), true))
    client.send({ content: Buffer.from('ab') })
    stage.run()
    assertReceived(client, Buffer.from('ab'))
    assertReceived(stage.served, Buffer.from('ab'))
    assertWell(client, stage.served)
  }),
  ...(['client', 'server'] as const).map((role) =>
    conformanceCase(`content short of its content-length is never taken for a whole message (${role})`, (stage) => {
      stage.serve = (side) => {
        const answer = (): void => {
          side.exchange.sendHead(responseHead(200, ['content-length', '2000']), false)
          side.send({ content: Buffer.alloc(1999) })
        }
        if (role === 'server') whenReceived(side, answer)
      }
      const client = stage.request(post(role === 'client' ? 2000 : undefined), false)
      client.send({ content: Buffer.alloc(1999) })
      stage.run()
      const receiver = role === 'client' ? stage.sides.find((side) => side.role === 'server') : client
      assert.ok(client.closed && client.error !== undefined)
      // The sender may take everything back before any of it left.
      if (receiver === undefined) return
      assert.equal(receiver.ended, false)
      assert.ok(receiver.closed && receiver.error !== undefined)
    }),
  ),
  conformanceCase('whatever is called after onClose does nothing and throws nothing', (stage) => {
    stage.serve = (side) => whenReceived(side, () => side.exchange.sendHead(responseHead(200), true))
    const client = stage.request(get(), true)
    stage.run()
    const { served } = stage
    assertWell(client, served)
    for (const { exchange, calls } of [client, served]) {
      const before = calls.length
      assert.equal(exchange.sendData(x, 0, 1, false), false)
      assert.equal(exchange.sendOwned(x, true), false)
      exchange.sendTrailers(['a', 'b'])
      exchange.sendHead(exchange === client.exchange ? get() : responseHead(200), true)
      exchange.consume(10)
      exchange.discard()
      exchange.setPriority({ urgency: 1, incremental: true })
      exchange.cancel(1)
      stage.run()
      assert.equal(calls.length, before)
    }
    const next = stage.request(get('/next'), true)
    stage.run()
    assertWell(next, stage.served)
  }),
]

/** Messages: what arrives is what was sent. */
export const messageCases: readonly ConformanceCase[] = [...simple, ...trailers, ...informational, ...bodiless, ...usage]
