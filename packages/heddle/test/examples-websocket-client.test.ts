import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Response, serve } from 'heddle/server'
import { upgrade } from 'heddle/websocket'

const example = fileURLToPath(new URL('../../../examples/websocket-client.ts', import.meta.url))
const run = promisify(execFile)

test('client', { timeout: 30_000 }, async (t) => {
  const server = await serve({
    port: 0,
    hostname: '127.0.0.1',
    websocket: true,
    fetch(request) {
      if (new URL(request.url).pathname !== '/echo') return new Response('not here', { status: 404 })
      const { response, socket } = upgrade(request, { deflate: true })
      socket.onmessage = ({ data }) => socket.send(`you said ${data}`)
      return response
    },
  })
  t.after(() => server.close({ deadline: 0 }))
  const prints = async (path: string): Promise<string> => {
    const parameters = ['--conditions=@heddle/source', example, `ws://127.0.0.1:${server.port}${path}`, 'hello', 'there']
    return (await run(process.execPath, parameters)).stdout
  }
  assert.equal(await prints('/echo'), 'open over h1 permessage-deflate\nanswer: you said hello there\nclosed 1000\n')
  assert.equal(await prints('/elsewhere'), 'refused with 404\n')
})
