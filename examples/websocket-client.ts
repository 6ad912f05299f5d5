// Says something to a WebSocket server and prints its answer: `npm run example -- websocket-client ws://localhost:8080 hello`.
import { HandshakeError, WebSocket } from 'heddle/websocket'

const [url = 'ws://localhost:8080', ...words] = process.argv.slice(2)
const webSocket = new WebSocket(url, { handshakeTimeout: 5_000 })
try {
  await webSocket.opened
  console.log('open over', webSocket.version, webSocket.extensions)
  await webSocket.write(words.join(' '), { deadline: 1_000 })
  console.log('answer:', await webSocket.read({ deadline: 1_000 }))
  webSocket.close(1000, 'thanks')
  console.log('closed', (await webSocket.closed).code)
} catch (error) {
  webSocket.abort()
  console.log(error instanceof HandshakeError ? `refused with ${error.status}` : `failed: ${(error as Error).message}`)
}
