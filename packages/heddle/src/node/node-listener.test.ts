/** What listeners see, and clients of theirs. */
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable, pipeline } from 'node:stream'
import { finished, pipeline as pipelined } from 'node:stream/promises'
import { onAll, open, until, watch } from './listener-stage.test.ts'

onAll('a request has its facts', async (t, backend) => {
  let request!: IncomingMessage
  let facts: unknown
  const { client, port, multiplexed } = await open(t, backend, (asked, response) => {
    request = asked
    const { method, url, headers, complete, socket } = asked
    facts = [method, url, headers['host'], headers['cookie'], headers['x-two'], complete, socket.remoteAddress, socket.localPort]
    assert.deepEqual(asked.headersDistinct['x-two'], ['1', '2'])
    assert.equal(asked.rawHeaders[asked.rawHeaders.findIndex((name) => name.toLowerCase() === 'x-two') + 1], '1')
    assert.equal(headers['content-type'], 'a/b', 'the first of two')
    assert.deepEqual(
      [(socket as { encrypted?: boolean }).encrypted, asked.connection === socket, response.socket === socket],
      [backend === 'h2' || backend === 'h3' ? true : undefined, true, true],
    )
    assert.deepEqual([response.req === asked, response.statusCode, asked.socket.readable, response.writable], [true, 200, true, true])
    response.end()
  })
  await client.ask({
    path: '/a?b=c',
    headers: {
      cookie: ['a=1', 'b=2'],
      'x-two': ['1', '2'],
      ...(multiplexed ? { 'content-type': 'a/b' } : { 'content-type': ['a/b', 'c/d'] }),
    },
  })
  assert.deepEqual(facts, ['GET', '/a?b=c', `127.0.0.1:${port}`, 'a=1; b=2', '1, 2', false, '127.0.0.1', port])
  const major = backend === 'h3' ? 3 : multiplexed ? 2 : 1
  assert.equal(request.httpVersion, multiplexed ? `${major}.0` : '1.1')
  assert.deepEqual([request.httpVersionMajor, request.httpVersionMinor], [major, multiplexed ? 0 : 1])
  await until(() => request.complete, 'complete')
})

onAll('events come in Node’s order', async (t, backend) => {
  const log: string[] = []
  const { client } = await open(t, backend, (request, response) => {
    watch(request, response, log)
    if (request.url === '/unread') {
      response.end('answer')
      return
    }
    request.on('data', () => {})
    request.on('end', () => response.end('answer'))
  })
  for (const [path, body] of [
    ['/read', 'content'],
    ['/read', undefined],
    ['/unread', 'content'],
    ['/unread', undefined],
  ] as const) {
    await client.ask({ method: 'POST', path, ...(body === undefined ? {} : { body }) })
    await until(() => log.includes('response close') && log.includes('request close'), 'close')
    const seen = log.splice(0)
    assert.deepEqual(
      seen.filter((line) => line.startsWith('response')),
      ['response finish', 'response close'],
    )
    assert.deepEqual(
      seen.filter((line) => line.startsWith('request')),
      ['request end', 'request close'],
    )
    if (path === '/read') assert.ok(seen.indexOf('request end') < seen.indexOf('response finish'))
  }
})

onAll('headers are kept, checked, and closed once they are sent', async (t, backend) => {
  const codes: string[] = []
  const failing = (act: () => unknown): void => {
    try {
      act()
      codes.push('none')
    } catch (error) {
      codes.push((error as NodeJS.ErrnoException).code ?? String(error))
    }
  }
  const { client } = await open(t, backend, (_request, response) => {
    response.setHeader('X-One', 1)
    response.setHeader('x-list', ['a', 'b'])
    response.appendHeader('x-list', 'c')
    response.setHeader('x-gone', 'x')
    response.removeHeader('X-GONE')
    response.setHeaders(new Headers({ 'x-set': 'yes' }))
    response.setHeader('x-blank', ' padded ')
    assert.deepEqual(
      [response.getHeader('x-one'), response.hasHeader('X-LIST'), response.getHeaderNames()],
      [1, true, ['x-one', 'x-list', 'x-set', 'x-blank']],
    )
    assert.equal(response.headersSent, false)
    failing(() => response.setHeader('bad name', 'x'))
    failing(() => response.setHeader('x', 'a\nb'))
    failing(() => response.writeHead(99))
    failing(() => response.writeHead(1000))
    response.writeHead(201, 'Made', { 'x-one': 'over', 'x-more': ['d', 'e'] })
    assert.equal(response.headersSent, true)
    failing(() => response.setHeader('x-late', '1'))
    failing(() => response.writeHead(200))
    failing(() => response.removeHeader('x-one'))
    response.end('ok')
  })
  const { status, headers } = await client.ask()
  assert.equal(status, 201)
  assert.deepEqual(
    [headers['x-one'], headers['x-list'], headers['x-gone'], headers['x-set'], headers['x-more'], headers['x-blank']],
    ['over', 'a, b, c', undefined, 'yes', 'd, e', 'padded'],
  )
  assert.deepEqual(codes, [
    'ERR_INVALID_HTTP_TOKEN',
    'ERR_INVALID_CHAR',
    'ERR_HTTP_INVALID_STATUS_CODE',
    'ERR_HTTP_INVALID_STATUS_CODE',
    'ERR_HTTP_HEADERS_SENT',
    'ERR_HTTP_HEADERS_SENT',
    'ERR_HTTP_HEADERS_SENT',
  ])
})

onAll('writeHead takes lists, which keep what is double in them', async (t, backend) => {
  const { client } = await open(t, backend, (_request, response) => {
    response.setHeader('x-before', 'old')
    response.writeHead(200, ['x-a', '1', 'x-a', '2', 'x-before', 'new'])
    response.end()
  })
  const { headers } = await client.ask()
  assert.deepEqual([headers['x-a'], headers['x-before']], ['1, 2', 'new'])
})

onAll('bodies are framed as they should be', async (t, backend) => {
  const { client, multiplexed } = await open(t, backend, (request, response) => {
    switch (request.url) {
      case '/end':
        return void response.end('whole')
      case '/parts':
        response.write('a ')
        response.write(Buffer.from('b '))
        response.write('Yw==', 'base64')
        return void response.end()
      case '/empty':
        return void response.end()
      case '/204':
        response.statusCode = 204
        return void response.end('dropped')
      case '/304':
        return void response.writeHead(304, { etag: '"x"', 'content-length': '10' }).end()
      case '/removed':
        response.removeHeader('content-length')
        return void response.end('no length')
      default:
        response.setHeader('content-length', 5)
        return void response.end('fixed')
    }
  })
  assert.deepEqual(
    [(await client.ask({ path: '/end' })).text, (await client.ask({ path: '/end' })).headers['content-length']],
    ['whole', '5'],
  )
  const parts = await client.ask({ path: '/parts' })
  assert.deepEqual(
    [parts.text, parts.headers['content-length'], parts.headers['transfer-encoding']],
    ['a b c', undefined, multiplexed ? undefined : 'chunked'],
  )
  assert.equal((await client.ask({ path: '/empty' })).headers['content-length'], '0')
  const bodiless = await client.ask({ path: '/204' })
  assert.deepEqual([bodiless.status, bodiless.text, bodiless.headers['content-length']], [204, '', undefined])
  const unchanged = await client.ask({ path: '/304' })
  assert.deepEqual([unchanged.status, unchanged.text, unchanged.headers['etag']], [304, '', '"x"'])
  const removed = await client.ask({ path: '/removed' })
  assert.deepEqual([removed.text, removed.headers['content-length']], ['no length', undefined])
  const head = await client.ask({ path: '/fixed', method: 'HEAD' })
  assert.deepEqual([head.text, head.headers['content-length']], ['', '5'])
})

onAll('trailers travel both ways', async (t, backend) => {
  const { client } = await open(t, backend, async (request, response) => {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    response.setHeader('trailer', 'x-sum')
    response.write(text)
    response.addTrailers({
      'X-Sum': `${request.trailers['x-sum']} ${request.rawTrailers.length} ${request.trailersDistinct['x-sum']?.length}`,
    })
    response.end()
  })
  const answer = await client.ask({ method: 'POST', body: 'hello', trailers: { 'x-sum': '42' } })
  assert.deepEqual([answer.text, answer.trailers['x-sum']], ['hello', '42 2 1'])
})

onAll('informational responses come first', async (t, backend) => {
  const { client } = await open(t, backend, (_request, response) => {
    response.writeEarlyHints({ link: ['</a.css>; rel=preload', '</b.js>; rel=preload'] })
    response.writeProcessing()
    response.end('done')
  })
  const answer = await client.ask()
  assert.deepEqual([answer.informational, answer.text], [['103 </a.css>; rel=preload, </b.js>; rel=preload', '102'], 'done'])
})

onAll('100 comes without being asked for when the request is read', async (t, backend) => {
  const { client } = await open(t, backend, async (request, response) => response.end((await request.toArray()).join('')))
  const answer = await client.ask({ method: 'POST', headers: { expect: '100-continue' }, body: 'content' })
  assert.deepEqual([answer.informational, answer.text], [['100'], 'content'])
})

onAll('an expectation that is not known is answered with 417', async (t, backend) => {
  let called = 0
  const { client } = await open(t, backend, async (request, response) => {
    called++
    response.end((await request.toArray()).join(''))
  })
  for (const method of ['GET', 'POST']) {
    const headers = { expect: 'the-best', ...(method === 'POST' ? { 'content-length': '7' } : undefined) }
    const talk = client.start({ method, headers }, method !== 'POST')
    const { status, content } = await talk.response
    assert.deepEqual([status, (await content.toArray()).join(''), talk.informational], [417, '', []])
    talk.abort()
  }
  assert.equal(called, 0)
  const answer = await client.ask({ method: 'POST', headers: { expect: '100-Continue' }, body: 'content' })
  assert.deepEqual([answer.status, answer.text, called], [200, 'content', 1])
})

onAll('writes tell when they left, and when to wait', async (t, backend) => {
  const log: string[] = []
  const { client } = await open(t, backend, async (request, response) => {
    watch(request, response, log)
    response.write('first', () => log.push('first left'))
    const chunk = Buffer.alloc(100_000)
    let count = 0
    while (response.write(chunk) && count++ < 1000) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(response.writableNeedDrain, true)
    assert.ok(response.writableLength > 0)
    await new Promise((resolve) => response.once('drain', resolve))
    assert.equal(response.writableNeedDrain, false)
    response.end('last', () => log.push('end left'))
    assert.deepEqual([response.writableEnded, response.finished], [true, true])
    await finished(response)
    log.push(`finished ${response.writableFinished} ${response.writableLength}`)
  })
  const talk = client.start({}, true)
  talk.out.end()
  const { content } = await talk.response
  await new Promise((resolve) => setTimeout(resolve, 50))
  let received = 0
  for await (const chunk of content) received += (chunk as Buffer).length
  assert.ok(received > 100_000)
  await until(() => log.some((line) => line.startsWith('finished')), 'finished')
  const seen = log.filter((line) => !line.startsWith('request'))
  assert.deepEqual(seen.slice(0, 2).toSorted(), ['first left', 'response drain'])
  assert.ok(seen.indexOf('response finish') > 1 && seen.indexOf('end left') > 1 && seen.includes('finished true 0'))
})

onAll('a request nobody reads stays with the client', async (t, backend) => {
  let request!: IncomingMessage
  const { client } = await open(t, backend, (asked) => {
    request = asked
  })
  const talk = client.start({ method: 'POST', headers: { 'content-length': '8000000' } }, false)
  talk.out.end(Buffer.alloc(8_000_000))
  await until(() => request !== undefined, 'the request')
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.ok(request.readableLength < 3_000_000, `${request.readableLength} bytes are held`)
  let read = 0
  for await (const chunk of request) read += (chunk as Buffer).length
  assert.equal(read, 8_000_000)
  talk.abort()
})

onAll('streams can be joined', async (t, backend) => {
  const content = Buffer.alloc(3_000_000, 'abcdefg')
  const errors: unknown[] = []
  const { client } = await open(t, backend, (request, response) => {
    if (request.url === '/echo') pipelined(request, response).catch((error: unknown) => errors.push(error))
    else {
      const source = new Readable({ read() {} })
      source.push('a part')
      setTimeout(() => source.destroy(new Error('broken')), 20)
      pipeline(source, response, (error) => errors.push(error?.message))
    }
  })
  const talk = client.start({ method: 'POST', path: '/echo' }, false)
  talk.out.end(content)
  const echoed = Buffer.concat(await (await talk.response).content.toArray())
  assert.ok(echoed.equals(content))
  assert.deepEqual(errors, [])
  await assert.rejects(client.ask({ path: '/broken' }))
  await until(() => errors.length > 0, 'the error')
  assert.deepEqual(errors, ['broken'])
})
