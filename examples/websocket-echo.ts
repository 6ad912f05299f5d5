// The standard's WebSocket on the server. Run it by `npm run example -- websocket-echo`, then connect to ws://localhost:8080
import { serve } from 'heddle/server'
import { upgrade, type WebSocket } from 'heddle/websocket'

/** Sends everything back, and reads no faster than the client takes it. */
async function echo(socket: WebSocket): Promise<void> {
  try {
    for await (const message of socket) await socket.write(message, { deadline: 10_000 })
    console.log('closed', (await socket.closed).code)
  } catch (error) {
    console.log('lost:', (error as Error).message)
  }
}

const server = await serve({
  port: Number(process.env['PORT'] ?? 8080),
  websocket: true,
  fetch(request) {
    const { response, socket } = upgrade(request, { deflate: true })
    void echo(socket)
    return response
  },
})
console.log(server.url)
process.once('SIGTERM', () => void server.close())
