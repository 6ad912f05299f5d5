/**
 * The load generator for machines without wrk: keeps `connections` sockets busy with prepared bytes
 * and counts answers by their length, which it learns from the first one. Prints JSON.
 */
import net from 'node:net'
import type { Http1Load } from './load.ts'

const load = JSON.parse(process.argv[2] as string) as Http1Load
const pipeline = load.pipeline ?? 1
const lines = (load.fields ?? []).map(([name, value]) => `${name}: ${value}\r\n`).join('')
const request = Buffer.from(`GET ${load.path} HTTP/1.1\r\nHost: 127.0.0.1:${load.port}\r\n${lines}\r\n`.repeat(pipeline), 'latin1')
const started = performance.now()
const deadline = started + load.seconds * 1000
let answered = 0
let running = load.connections

for (let i = 0; i < load.connections; i++) {
  let first: Uint8Array = Buffer.alloc(0)
  let answerSize = 0
  let received = 0
  const socket = net.connect({ port: load.port, host: '127.0.0.1', noDelay: true })
  socket.on('connect', () => socket.write(request))
  socket.on('data', (chunk: Buffer) => {
    if (answerSize === 0) {
      first = Buffer.concat([first, chunk])
      const seen = Buffer.from(first)
      const end = seen.indexOf('\r\n\r\n')
      if (end < 0) return
      const head = seen.toString('latin1', 0, end)
      const length = /content-length: *(\d+)/i.exec(head)?.[1]
      if (!head.startsWith('HTTP/1.1 2') || length === undefined) throw new Error(`an answer this generator cannot count:\n${head}`)
      answerSize = end + 4 + Number(length)
      received = first.length
    } else {
      received += chunk.length
    }
    if (received < answerSize * pipeline) return
    received -= answerSize * pipeline
    answered += pipeline
    if (performance.now() < deadline) socket.write(request)
    else {
      socket.destroy()
      if (--running === 0) console.log(JSON.stringify({ requests: answered, seconds: (performance.now() - started) / 1000 }))
    }
  })
  socket.on('error', (error) => {
    throw error
  })
}
