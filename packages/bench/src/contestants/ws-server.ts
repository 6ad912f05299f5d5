/**
 * A server that echoes WebSocket messages, text as text: `ws-server.ts KIND`. KIND is `heddle` (the lean Socket with a
 * handler), `heddle-websocket` (the WHATWG WebSocket) or `ws`. All agree to permessage-deflate if it is offered, with
 * context takeover, and then compress every message. For every line on its standard input it prints
 * `memory RSS HEAP`, in bytes, with the garbage collected.
 */
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { serve } from 'heddle'
import { collectGarbage } from 'heddle/testing'
import { accept, upgrade, type FetchUpgradeOptions, type SocketHandler } from 'heddle/websocket'
import { WebSocketServer } from 'ws'

// With context takeover ws has no threshold.
const options: FetchUpgradeOptions = { deflate: { threshold: 0 } }

const echo: SocketHandler = {
  onMessage(socket, buffer, start, limit, binary) {
    socket.post(buffer.subarray(start, limit), binary ? undefined : text)
  },
}
const text = { text: true } as const

const kinds: Readonly<Record<string, () => Promise<number>>> = {
  heddle: () =>
    heddle((request) => {
      const { response, socket } = accept(request, options)
      socket.handler = echo
      return response
    }),
  'heddle-websocket': () =>
    heddle((request) => {
      const { response, socket } = upgrade(request, options)
      socket.onmessage = ({ data }) => socket.send(data)
      return response
    }),
  ws: async () => {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: true })
    server.on('connection', (socket) => {
      socket.on('message', (data, binary) => socket.send(data as Buffer, { binary }))
      socket.on('error', () => {})
    })
    await new Promise((resolve) => server.once('listening', resolve))
    return (server.address() as AddressInfo).port
  },
}

async function heddle(fetch: (request: Parameters<typeof accept>[0]) => ReturnType<typeof accept>['response']): Promise<number> {
  return (await serve({ port: 0, hostname: '127.0.0.1', websocket: true, fetch })).port
}

const kind = process.argv[2] ?? ''
const start = kinds[kind]
if (start === undefined) throw new Error(`no server is called ${kind}; there are ${Object.keys(kinds).join(', ')}`)
console.log(`ready ${await start()}`)

createInterface({ input: process.stdin }).on('line', () => {
  collectGarbage()
  const { rss, heapUsed, external } = process.memoryUsage()
  console.log(`memory ${rss} ${heapUsed + external}`)
})
process.on('SIGTERM', () => process.exit(0))
