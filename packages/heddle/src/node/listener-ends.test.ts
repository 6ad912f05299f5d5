/** How requests and responses end before their time, and what middleware does to them. */
import assert from 'node:assert/strict'
import { IncomingMessage as NodeIncomingMessage, ServerResponse as NodeServerResponse, type ServerResponse } from 'node:http'
import { test } from 'node:test'
import { noHttp3 } from '../../test/h3-client.ts'
import { onAll, open, until, watch } from './listener-stage.test.ts'

onAll('a client that leaves within its request is noticed', async (t, backend) => {
  const log: string[] = []
  const { client, told } = await open(t, backend, (request, response) => {
    watch(request, response, log)
    request.on('error', (error: NodeJS.ErrnoException) => log.push(`request error ${error.code}`))
    request.socket.on('close', () => log.push('socket close'))
    request.on('data', () => log.push('half of it'))
  })
  const talk = client.start({ method: 'POST', headers: { 'content-length': '100' } }, false)
  talk.out.write('half')
  await until(() => log.includes('half of it'), 'the content')
  talk.abort()
  await until(() => log.includes('response close') && log.includes('request close') && log.includes('socket close'), 'close')
  assert.deepEqual(
    log.filter((line) => line.startsWith('request')),
    ['request aborted', 'request error ECONNRESET', 'request close'],
  )
  assert.ok(!log.includes('response finish') && !log.includes('request end'))
  assert.deepEqual(told, [])
})

onAll('a client that leaves within the response is noticed, and a listener for errors is not needed', async (t, backend) => {
  const log: string[] = []
  let response!: ServerResponse
  const { client } = await open(t, backend, (request, answer) => {
    response = answer
    watch(request, answer, log)
    answer.write('a part')
  })
  const talk = client.start({}, true)
  talk.out.end()
  const { content } = await talk.response
  content.on('error', () => {})
  content.resume()
  talk.abort()
  await until(() => log.includes('response close') && log.includes('request close'), 'close')
  assert.ok(!log.includes('response finish'))
  assert.deepEqual([response.destroyed, response.closed, response.writableFinished], [true, true, false])
  assert.equal(response.write('more'), false)
  response.end('and more')
})

for (const backend of ['h1', 'h2c', 'h3'] as const) {
  test(
    `what a callback or listener throws at the end keeps nobody else from being told (${backend})`,
    { timeout: 20_000, skip: backend === 'h3' && noHttp3 },
    async (t) => {
      const log: string[] = []
      const failures = [new Error('of a callback'), new Error('of a listener')]
      const { client, told } = await open(t, backend, (request, response) => {
        request.on('error', () => {})
        request.socket.on('close', () => log.push('socket close'))
        response.on('close', () => log.push('response close'))
        if (request.url === '/listener')
          response.on('close', () => {
            throw failures[1]
          })
        let more = true
        while (more) more = response.write(Buffer.alloc(1_000_000))
        if (request.url === '/callback')
          response.write('x', () => {
            throw failures[0]
          })
        response.write('y', (error) => log.push(error instanceof Error ? 'not sent' : 'sent'))
      })
      for (const path of ['/callback', '/listener']) {
        const talk = client.start({ path }, true)
        talk.out.end()
        const { content } = await talk.response
        content.on('error', () => {})
        talk.abort()
        await until(() => log.includes('socket close'), 'the end')
        assert.deepEqual(log.splice(0), ['not sent', 'response close', 'socket close'], path)
      }
      await until(() => told.length === 2, 'onError')
      assert.deepEqual(told, failures)
    },
  )
}

onAll('either stream can be destroyed', async (t, backend) => {
  const log: string[] = []
  const { client, multiplexed } = await open(t, backend, (request, response) => {
    watch(request, response, log)
    request.on('error', () => {})
    if (request.url === '/request') request.destroy()
    else if (request.url === '/response') response.destroy(new Error('no more'))
    else if (request.url === '/socket') request.socket.destroy()
    else response.end('alive')
  })
  for (const path of ['/request', '/response', '/socket']) {
    await assert.rejects(client.ask({ path, method: 'POST', body: 'x' }), path)
    await until(() => log.includes('response close') && log.includes('request close'), `close after ${path}`)
    assert.ok(!log.splice(0).includes('response finish'), path)
    if (multiplexed) assert.equal((await client.ask()).text, 'alive', 'the connection goes on')
    log.length = 0
  }
})

onAll('what comes too late is told by Node’s codes', async (t, backend) => {
  const codes: (string | undefined)[] = []
  const done = Promise.withResolvers<void>()
  const { client } = await open(t, backend, async (_request, response) => {
    response.on('error', (error: NodeJS.ErrnoException) => codes.push(`event ${error.code}`))
    response.end('once')
    assert.equal(
      response.write('twice', (error) => codes.push((error as NodeJS.ErrnoException).code)),
      false,
    )
    response.end()
    await new Promise((resolve) => setTimeout(resolve, 20))
    response.end((error?: NodeJS.ErrnoException) => codes.push(error?.code))
    await new Promise((resolve) => setTimeout(resolve, 20))
    done.resolve()
  })
  assert.equal((await client.ask()).text, 'once')
  await done.promise
  assert.deepEqual(codes, ['ERR_STREAM_WRITE_AFTER_END', 'event ERR_STREAM_WRITE_AFTER_END', 'ERR_STREAM_ALREADY_FINISHED'])
})

onAll('values that are no content are refused', async (t, backend) => {
  const codes: string[] = []
  const { client } = await open(t, backend, (_request, response) => {
    for (const value of [null, 5, {}, undefined]) {
      try {
        response.write(value as never)
      } catch (error) {
        codes.push((error as NodeJS.ErrnoException).code as string)
      }
    }
    response.end()
  })
  await client.ask()
  assert.deepEqual(codes, ['ERR_STREAM_NULL_VALUES', 'ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_TYPE'])
})

onAll('a head can leave before there is content', async (t, backend) => {
  let go!: () => void
  const { client } = await open(t, backend, (_request, response) => {
    response.setHeader('x-early', '1')
    response.flushHeaders()
    go = () => response.end('late')
  })
  const talk = client.start({}, true)
  talk.out.end()
  const { headers, content } = await talk.response
  assert.equal(headers['x-early'], '1')
  go()
  assert.equal((await content.toArray()).join(''), 'late')
})

onAll('time-outs reach whoever listens, and end the exchange if nobody does', async (t, backend) => {
  const log: string[] = []
  const { client } = await open(t, backend, (request, response) => {
    request.on('close', () => log.push(`close ${request.url}`))
    if (request.url === '/told') response.setTimeout(30, () => response.end('timed out'))
    else request.setTimeout(30)
  })
  assert.equal((await client.ask({ path: '/told' })).text, 'timed out')
  await assert.rejects(client.ask({ path: '/untold' }))
  await until(() => log.includes('close /untold'), 'close')
})

onAll('cork and uncork change nothing for the reader', async (t, backend) => {
  const { client } = await open(t, backend, (_request, response) => {
    response.cork()
    response.write('a')
    response.write('b')
    process.nextTick(() => {
      response.uncork()
      response.end('c')
    })
  })
  assert.equal((await client.ask()).text, 'abc')
})

onAll('middleware that replaces methods is called', async (t, backend) => {
  const log: string[] = []
  const { client } = await open(t, backend, (_request, response) => {
    const { writeHead, write, end } = response
    response.writeHead = function (this: ServerResponse, ...parameters: unknown[]) {
      log.push('writeHead')
      this.setHeader('x-last-minute', 'yes')
      return (writeHead as (...all: unknown[]) => ServerResponse).apply(this, parameters)
    } as never
    response.write = function (this: ServerResponse, chunk: Buffer) {
      log.push('write')
      return write.call(this, chunk.toString().toUpperCase(), 'utf8')
    } as never
    response.end = function (this: ServerResponse, ...parameters: unknown[]) {
      log.push('end')
      return (end as (...all: unknown[]) => ServerResponse).apply(this, parameters)
    } as never
    response.write('loud')
    response.end(' and quiet')
  })
  const answer = await client.ask()
  assert.deepEqual([answer.text, answer.headers['x-last-minute'], log], ['LOUD and quiet', 'yes', ['write', 'writeHead', 'end']])
})

onAll('the objects may be given other prototypes, as Express does', async (t, backend) => {
  const log: string[] = []
  const requestPrototype = Object.create(NodeIncomingMessage.prototype) as object
  const responsePrototype = Object.create(NodeServerResponse.prototype) as object
  const { client } = await open(t, backend, async (request, response) => {
    Object.setPrototypeOf(request, requestPrototype)
    Object.setPrototypeOf(response, responsePrototype)
    watch(request, response, log)
    const body = (await request.toArray()).join('')
    response.writeEarlyHints({ link: '</a>; rel=preload' })
    response.setHeader('x-a', '1')
    response.write(body)
    response.addTrailers({ 'x-t': 'yes' })
    response.end()
    assert.deepEqual([response.headersSent, response.writableEnded, request.headers['content-length']], [true, true, '5'])
  })
  const { text, headers, trailers, informational } = await client.ask({ method: 'POST', body: 'hello' })
  assert.deepEqual([text, headers['x-a'], trailers['x-t'], informational], ['hello', '1', 'yes', ['103 </a>; rel=preload']])
  await until(() => log.includes('response close') && log.includes('request close'), 'close')
  assert.ok(log.includes('response finish'))
})

for (const backend of ['h1', 'h2c', 'h3'] as const) {
  test(
    `what a listener throws is a 500, or cuts the response, and is told (${backend})`,
    { timeout: 20_000, skip: backend === 'h3' && noHttp3 },
    async (t) => {
      const { client, told } = await open(t, backend, async (request, response) => {
        if (request.url === '/later') await new Promise((resolve) => setTimeout(resolve, 5))
        if (request.url === '/cut') {
          response.write('a part')
          await new Promise((resolve) => setTimeout(resolve, 5))
        }
        response.setHeader('x-secret', '1')
        throw new Error(`thrown at ${request.url}`)
      })
      for (const path of ['/now', '/later']) {
        const answer = await client.ask({ path })
        assert.deepEqual([answer.status, answer.text, answer.headers['x-secret']], [500, 'Internal Server Error\n', undefined])
      }
      await assert.rejects(client.ask({ path: '/cut' }))
      // setHeader after the head threw first.
      assert.deepEqual(
        told.map((error) => (error as Error).message),
        ['thrown at /now', 'thrown at /later', 'Cannot set headers after they are sent to the client'],
      )
    },
  )

  test(
    `a response that is not what it declared is cut and told (${backend})`,
    { timeout: 20_000, skip: backend === 'h3' && noHttp3 },
    async (t) => {
      const errors: string[] = []
      const { client, told } = await open(t, backend, (request, response) => {
        response.setHeader('content-length', 5)
        if (request.url === '/more') response.on('error', (error) => errors.push(error.message))
        response.write(request.url === '/more' ? 'too much' : 'few')
        response.end()
      })
      await assert.rejects(client.ask({ path: '/more' }))
      await until(() => errors.length > 0, 'the error')
      assert.match(errors[0] as string, /content-length is 5|more content/)
      await assert.rejects(client.ask({ path: '/less' }))
      await until(() => told.length > 0, 'onError')
    },
  )

  test(
    `an error thrown while the engine runs ends its exchange and no more (${backend})`,
    { timeout: 20_000, skip: backend === 'h3' && noHttp3 },
    async (t) => {
      let chunks = 0
      const { client, told } = await open(t, backend, (request, response) => {
        if (request.method === 'GET') {
          response.end('fine')
          return
        }
        request.on('data', () => {
          // The first comes from Node's stream, in a tick of its own, the others right from the engine.
          if (++chunks === 2) throw new Error('in data')
        })
      })
      const talk = client.start({ method: 'POST' }, false)
      talk.out.write('x')
      await until(() => chunks === 1, 'the first chunk')
      talk.out.write('y')
      await until(() => told.length > 0, 'onError')
      assert.equal((told[0] as Error).message, 'in data')
      await talk.response.then(
        ({ status, content }) => {
          assert.equal(status, 500)
          content.resume()
        },
        () => {},
      )
      assert.equal((await client.ask()).text, 'fine')
    },
  )
}

test('CONNECT is answered with 501 and reaches no listener', { timeout: 20_000 }, async (t) => {
  const { client } = await open(t, 'h2c', (_request, response) => response.end('called'))
  const { status, content } = await client.start({ method: 'CONNECT', path: 'elsewhere.example:443' }, false).response
  content.resume()
  assert.equal(status, 501)
})
