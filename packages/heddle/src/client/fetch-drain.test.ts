import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import type { Response } from '../web/index.ts'
import type { Client } from './client.ts'
import { startClient, startServer, still, testEach, until, type Answer } from './fetch-server.test.ts'

/** On a busy machine 200 KB may take longer than the 50 ms that draining is given by default. */
function patientClient(t: TestContext, maxConnectionsPerOrigin?: number): Client {
  return startClient(t, { maxConnectionsPerOrigin, limits: { drainTimeout: 10_000 } })
}

/** `/SIZE` gives that many bytes. */
const sized: Answer = (request, response) => {
  const size = Number((request.url as string).slice(1))
  response.end(Buffer.alloc(size, 'x'))
}

/** Ways to not read a body, each of which must leave the connection to the next request. */
const ways: Record<string, (response: Response) => unknown> = {
  dispose: (response) => response[Symbol.dispose](),
  'await using': (response) => response[Symbol.asyncDispose](),
  'body.cancel()': (response) => response.body?.cancel('not wanted'),
  'reader.cancel()': async (response) => {
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    await reader.cancel()
  },
  'leaving a loop': async (response) => {
    for await (const _ of response.body as AsyncIterable<Uint8Array>) break
  },
  'dispose after a part': async (response) => {
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    response[Symbol.dispose]()
  },
}

for (const size of [0, 5, 60_000, 200_000]) {
  for (const [name, leave] of Object.entries(ways)) {
    testEach(`${name} keeps the connection of a body of ${size} bytes`, async (t) => {
      const { url, connections } = await startServer(t, sized)
      const client = patientClient(t, 1)
      for (let i = 0; i < 10; i++) {
        const response = await client.fetch(`${url}/${size}`)
        assert.equal(response.status, 200)
        await leave(response)
      }
      assert.equal(connections(), 1)
    })
  }
}

testEach('a body that came with its head frees the connection though nobody reads or disposes it', async (t) => {
  const { url, connections } = await startServer(t, sized)
  const client = patientClient(t, 1)
  const held: Response[] = []
  for (let i = 0; i < 20; i++) held.push(await client.fetch(`${url}/2000`))
  assert.equal(connections(), 1)
  for (const response of held) assert.equal((await response.text()).length, 2_000)
})

test('too much to drain costs the connection, and is counted', async (t) => {
  const { url, connections } = await startServer(t, sized)
  const client = patientClient(t, 1)
  for (let i = 0; i < 3; i++) (await client.fetch(`${url}/5000000`))[Symbol.dispose]()
  await (await client.fetch(`${url}/1`)).text()
  assert.equal(connections(), 4)
  const { abandoned, drained } = client.stats()
  assert.equal(abandoned, 3)
  assert.equal(drained, 0)
})

test('what is drained is counted', async (t) => {
  const { url } = await startServer(t, sized)
  const client = patientClient(t, 1)
  for (let i = 0; i < 3; i++) (await client.fetch(`${url}/200000`))[Symbol.dispose]()
  await (await client.fetch(`${url}/1`)).text()
  const { drained, drainedBytes, abandoned } = client.stats()
  assert.equal(drained, 3)
  assert.ok(drainedBytes > 300_000 && drainedBytes <= 600_000, String(drainedBytes))
  assert.equal(abandoned, 0)
})

testEach('a parser that stops before the last newline keeps the connection', async (t) => {
  const { url, connections } = await startServer(t, (_request, response) => {
    response.write('{"a":1}')
    setTimeout(() => response.end('\n'), 5)
  })
  const client = patientClient(t, 1)
  for (let i = 0; i < 5; i++) {
    const response = await client.fetch(url)
    let text = ''
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      if (text.endsWith('}')) break
    }
    assert.deepEqual(JSON.parse(text), { a: 1 })
  }
  assert.equal(connections(), 1)
})

test('nothing is drained after Connection: close', async (t) => {
  const { url } = await startServer(t, (_request, response) => {
    response.setHeader('connection', 'close')
    response.write(Buffer.alloc(100_000))
    setTimeout(() => response.end(), 20)
  })
  const client = startClient(t)
  ;(await client.fetch(url))[Symbol.dispose]()
  await until(() => client.stats().connections === 0, 'the connection was dropped')
  assert.equal(client.stats().drained, 0)
})

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Keeps what `ask` gives three times, then forgets it, and waits until the connections are free. */
async function forget(client: Client, ask: () => Promise<unknown>): Promise<void> {
  const held: unknown[] = []
  for (let i = 0; i < 3; i++) held.push(await ask())
  collect()
  await new Promise((resolve) => setTimeout(resolve, 10))
  assert.equal(client.stats().streams, 3, 'held while they can be reached')
  held.length = 0
  await until(() => {
    collect()
    return client.stats().streams === 0
  }, 'the exchanges of forgotten responses ended')
}

/** `url` is that of content which is more than a window, and not too much to drain. */
const forgotten: Record<string, (client: Client, url: string) => Promise<unknown>> = {
  'a response': (client, url) => client.fetch(url),
  'the stream of a response': async (client, url) => (await client.fetch(url)).body,
  'the reader of a half-read stream': async (client, url) => {
    const reader = (await client.fetch(url)).body?.getReader()
    await reader?.read()
    return reader
  },
  'a compressed response': (client, url) => client.fetch(`${url}?gzip`),
  'a compressed response that is half read': async (client, url) => {
    const reader = (await client.fetch(`${url}?gzip`)).body?.getReader()
    await reader?.read()
    return reader
  },
  'a response with a signal that lives on': (client, url) => client.fetch(url, { signal: longLived }),
  'a response whose trailers are awaited': async (client, url) => {
    const response = await client.fetch(url)
    void response.trailers
    return response
  },
  'a response and its clone': async (client, url) => {
    const response = await client.fetch(url)
    return [response, response.clone()]
  },
}
const longLived = new AbortController().signal

for (const [name, ask] of Object.entries(forgotten)) {
  testEach(`${name}, forgotten, does not keep its connection`, async (t, protocol) => {
    const size = protocol === 'h1' ? 200_000 : 3_000_000
    const noise = gzipSync(randomBytes(size))
    const { url } = await startServer(t, (request, response) => {
      if (request.url?.endsWith('?gzip')) {
        response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': noise.length })
        response.end(noise)
      } else sized(request, response)
    })
    const client = patientClient(t)
    await forget(client, () => ask(client, `${url}/${size}`))
    if (protocol === 'h2') {
      assert.deepEqual(client.stats().resetsSent, { CANCEL: 3 })
      return
    }
    await until(() => client.stats().drained === 3, 'they were drained')
    assert.equal(client.stats().abandoned, 0)
  })
}

testEach('what is being read is never collected', async (t) => {
  const { url } = await startServer(t, (_request, response) => {
    response.write('a'.repeat(100_000))
    const timer = setInterval(() => {
      collect()
      response.write('b'.repeat(50_000))
    }, 2)
    setTimeout(() => {
      clearInterval(timer)
      response.end('c')
    }, 60)
  })
  const client = startClient(t)
  const text = await (await client.fetch(url)).text()
  assert.ok(text.endsWith('c'))
  const { body } = await client.fetch(url)
  let length = 0
  for await (const chunk of body as AsyncIterable<Uint8Array>) length += chunk.length
  assert.ok(length > 100_000)
})

testEach('10 MB down: the same bytes, and no more of them in memory than the reader lets in', async (t) => {
  const content = randomBytes(10_000_000)
  let written = 0
  const { url } = await startServer(t, (_request, response) => {
    response.writeHead(200, { 'content-length': content.length })
    const write = (): void => {
      while (written < content.length) {
        const chunk = content.subarray(written, written + 65_536)
        written += chunk.length
        if (!response.write(chunk)) {
          response.once('drain', write)
          return
        }
      }
      response.end()
    }
    write()
  })
  const client = startClient(t)
  const response = await client.fetch(url)
  // Windows of the kernel at both ends are some MB; what matters is that the flow stops.
  await still(() => written)
  assert.ok(written < content.length)
  const hash = createHash('sha256')
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) hash.update(chunk)
  assert.equal(hash.digest('hex'), createHash('sha256').update(content).digest('hex'))
})
