import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const folder = fileURLToPath(new URL('../../../examples/', import.meta.url))
const run = promisify(execFile)

/** What each example is answered, and what it must print. */
const examples: Record<string, { answer: (request: IncomingMessage, response: ServerResponse) => void; prints: RegExp }> = {
  'client-get.ts': {
    answer: (_request, response) => response.end('{"a":1}'),
    prints: /^200 \{ a: 1 \}\n$/,
  },
  'client-post.ts': {
    answer: (request, response) => request.pipe(response),
    prints: /^\{"greeting":"hello"\}\n$/,
  },
  'client-status.ts': {
    answer: (_request, response) => response.end(Buffer.alloc(100_000)),
    // One, unless the machine is so busy that what is left unread does not come within the 50 ms that it may take.
    prints: /^200\n200\n200\nconnections made: [12]\n$/,
  },
  'client-stream.ts': {
    answer: (_request, response) => {
      response.write('one\ntwo\n')
      const timer = setInterval(() => response.write('more\n'), 5)
      response.on('close', () => clearInterval(timer))
    },
    prints: /^first line: one\n$/,
  },
  'client-upload.ts': {
    answer: async (request, response) => {
      let lines = 0
      for await (const chunk of request) lines += (chunk as Buffer).toString('latin1').split('\n').length - 1
      response.end(`${request.method} ${lines}`)
    },
    prints: /^PUT 1000\n$/,
  },
  'client-abort.ts': {
    answer: () => {},
    prints: /^TOTAL_TIMEOUT\nchanged my mind\nTimeoutError\n$/,
  },
  'client-hints.ts': {
    answer: (_request, response) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload' })
      response.writeHead(200, { trailer: 'x-digest' })
      response.write('12345')
      response.addTrailers({ 'x-digest': '15' })
      response.end()
    },
    prints: /^103 <\/a\.css>; rel=preload\n200 5 bytes\ndigest: 15\n$/,
  },
  'client-raw.ts': {
    answer: (_request, response) => response.end(Buffer.alloc(100_000)),
    prints: /^200\n100000 bytes\n$/,
  },
}

const server = http.createServer((request, response) => {
  const name = (request.url as string).slice(1)
  examples[name]?.answer(request, response)
})
let url = ''

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})
after(() => {
  server.closeAllConnections()
  server.close()
})

test('every example of the client is run here', () => {
  assert.deepEqual(
    // These are not HTTP/1.1: examples-server.test.ts has them run against servers of the examples.
    readdirSync(folder).filter((name) => name.startsWith('client-') && !['client-burst.ts', 'client-http3.ts'].includes(name)),
    Object.keys(examples).sort(),
  )
})

for (const [name, { prints }] of Object.entries(examples)) {
  test(name, async () => {
    const { stdout, stderr } = await run(process.execPath, ['--conditions=@heddle/source', folder + name, url + name], { timeout: 20_000 })
    assert.match(stdout, prints)
    assert.equal(stderr, '')
  })
}
