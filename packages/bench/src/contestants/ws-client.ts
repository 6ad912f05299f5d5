/**
 * Heddle's own client in the race of many sockets: `ws-client.ts PORT h1|h2`. Orders on its standard input, each with
 * an answer: `open N` opens so many; `echo ROUNDS` sends a message on each, waits for all to come back, and does so
 * again; `shut` closes all.
 */
import { createInterface } from 'node:readline'
import { Client } from 'heddle'
import { connect, type Socket, type SocketHandler } from 'heddle/websocket'

const [, , port, version] = process.argv as [string, string, string, string]
/** As many as a server lets be open at once on a connection of HTTP/2. */
const perConnection = 100
/** The HTTP/2 connection of each takes WebSockets while there is room. */
const clients: Client[] = []
const message = Buffer.from('x'.repeat(64))
const sockets: Socket[] = []
let missing = 0
let heard: () => void = () => {}

const counter: SocketHandler = {
  onMessage() {
    if (--missing === 0) heard()
  },
}

async function clientFor(index: number): Promise<Client> {
  const found = clients[index]
  if (found !== undefined) return found
  const client = new Client({ h2c: version === 'h2', maxConnectionsPerOrigin: 1, maxTunnelsPerOrigin: perConnection })
  clients.push(client)
  // A WebSocket takes an HTTP/2 connection that is there, and is no reason to make one.
  if (version === 'h2') await (await client.fetch(`http://127.0.0.1:${port}/`)).text()
  return client
}

const orders: Readonly<Record<string, (count: number) => Promise<void>>> = {
  async open(count) {
    // Not all at once: what is to be seen is what a socket costs, and not a queue of handshakes.
    for (let opened = 0; opened < count; opened += perConnection) {
      const client = await clientFor(opened / perConnection)
      const some = Array.from({ length: Math.min(perConnection, count - opened) }, () =>
        connect(`ws://127.0.0.1:${port}/`, { client, deflate: false }),
      )
      for (const socket of await Promise.all(some)) {
        if (socket.version !== version) throw new Error(`a socket runs over ${socket.version}`)
        socket.handler = counter
        sockets.push(socket)
      }
    }
  },
  async echo(rounds) {
    for (let round = 0; round < rounds; round++) {
      missing = sockets.length
      await new Promise<void>((resolve) => {
        heard = resolve
        for (const socket of sockets) socket.post(message)
      })
    }
  },
  async shut() {
    for (const socket of sockets) socket.close()
    await Promise.all(sockets.splice(0).map(({ closed }) => closed))
  },
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const [name, argument] = line.split(' ') as [string, string | undefined]
  await (orders[name] as (argument: number) => Promise<void>)(Number(argument))
  console.log('done')
})
console.log('ready')
process.on('SIGTERM', () => process.exit(0))
