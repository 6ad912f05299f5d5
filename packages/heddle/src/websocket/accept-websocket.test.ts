import assert from 'node:assert/strict'
import type { ExchangeHandler, Exchange, Head } from '../http/index.ts'
import { Recording } from '../testing/index.ts'
import { acceptWebSocket, type AcceptOptions } from './accept-websocket.ts'
import { story } from './serve-stage.test.ts'
import type { Socket } from './socket.ts'
import { textOf } from './text.ts'

let options: AcceptOptions = {}
let served: Socket | undefined
const log: string[] = []

/** The raw face: one object serves all sockets. */
const handler = {
  onMessage(socket: Socket, buffer: Uint8Array, start: number, limit: number, binary: boolean): void {
    if (binary) socket.post(buffer.subarray(start, limit))
    else socket.post(textOf(buffer, start, limit))
  },
  onClose(_socket: Socket, code: number): void {
    log.push(`close ${code}`)
  },
}

function onExchange(exchange: Exchange): ExchangeHandler {
  const recording = new Recording()
  recording.onHead = (head: Head) => {
    served = acceptWebSocket(exchange, head, options)
    if (served !== undefined) served.handler = handler
  }
  return recording
}

story('a socket without a fetch handler', { onExchange }, async ({ ask, pass, world, version }) => {
  options = { clock: world, headers: { 'x-own': '1' }, protocol: ['b', 'a'], deflate: true }
  log.length = 0
  const { socket, field } = await ask({ fields: ['sec-websocket-protocol', 'a, b', 'sec-websocket-extensions', 'permessage-deflate'] })
  assert.deepEqual([field('x-own'), field('sec-websocket-protocol'), field('sec-websocket-extensions')], ['1', 'b', 'permessage-deflate'])
  assert.deepEqual([served?.protocol, served?.extensions, served?.version], ['b', 'permessage-deflate', version])
  socket.post('text')
  socket.post(Buffer.from([1, 2, 3]))
  await pass()
  assert.deepEqual([await socket.read(), await socket.read()], ['text', new Uint8Array([1, 2, 3])])
  socket.close(4001)
  await pass()
  assert.deepEqual(log, ['close 4001'])
})

story('what is none is answered, and the connection goes on', { onExchange }, async ({ ask, world, told }) => {
  options = { clock: world }
  for (const [what, status] of [
    [{ version: '12' }, 426],
    [{ fields: ['origin', 'http://evil.example'] }, 403],
    [{ method: 'GET', version: undefined }, 426],
    [{ method: 'DELETE', version: undefined }, 405],
  ] as const) {
    const { status: answered, text, recording } = await ask(what)
    assert.deepEqual([answered, served, recording.closed, recording.error], [status, undefined, true, undefined])
    assert.notEqual(text, '')
  }
  assert.deepEqual(told, [])
})

story('options that do not exist are the program’s fault', { onExchange }, async ({ ask }) => {
  options = { orgin: '*' } as never
  const { status, recording } = await ask()
  assert.ok(recording.closed && status !== 200)
})
