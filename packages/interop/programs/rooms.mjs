// A program as programs for ws are: an HTTP server, rooms by path, who may come in, broadcasts, heartbeats, an orderly end.
import { createServer } from 'node:http'
import WebSocket, { WebSocketServer } from 'ws'

const server = createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/plain' })
  response.end(`rooms: ${[...rooms.keys()].join(', ')}\n`)
})

const rooms = new Map(['/lounge', '/kitchen'].map((path) => [path, newRoom(path)]))

function newRoom(path) {
  const wss = new WebSocketServer({
    noServer: true,
    perMessageDeflate: { threshold: 64 },
    maxPayload: 100_000,
    handleProtocols: (protocols) => (protocols.has('chat.v2') ? 'chat.v2' : false),
  })
  wss.on('headers', (headers) => headers.push(`X-Room: ${path}`))
  wss.on('connection', (ws, request, name) => {
    ws.isAlive = true
    ws.on('error', () => {})
    ws.on('pong', () => {
      ws.isAlive = true
    })
    ws.on('message', (data, isBinary) => {
      if (String(data) === 'who') {
        ws.send(JSON.stringify({ name, room: path, from: request.socket.remoteAddress, count: wss.clients.size, protocol: ws.protocol }))
        return
      }
      if (String(data) === 'throw me out') return ws.close(4001, 'out')
      for (const client of wss.clients) {
        if (client !== ws && client.readyState === WebSocket.OPEN) client.send(data, { binary: isBinary })
      }
    })
    ws.on('close', (code, reason) => console.log(`${name} left ${path}: ${code} ${reason}`))
  })
  return wss
}

function authenticate(request, next) {
  const { searchParams } = new URL(request.url, 'http://localhost')
  const name = searchParams.get('name')
  setTimeout(() => (name === null ? next(new Error('no name')) : next(null, name)), 5)
}

server.on('upgrade', (request, socket, head) => {
  socket.on('error', console.error)
  const wss = rooms.get(new URL(request.url, 'http://localhost').pathname)
  if (wss === undefined) {
    socket.destroy()
    return
  }
  authenticate(request, (error, name) => {
    if (error) {
      socket.write('HTTP/1.1 401 Unauthorized\r\n\r\n')
      socket.destroy()
      return
    }
    socket.removeListener('error', console.error)
    wss.handleUpgrade(request, socket, head, (ws) => wss.emit('connection', ws, request, name))
  })
})

const heartbeat = setInterval(() => {
  for (const wss of rooms.values()) {
    for (const ws of wss.clients) {
      if (!ws.isAlive) {
        ws.terminate()
        continue
      }
      ws.isAlive = false
      ws.ping()
    }
  }
}, 200)

process.once('SIGTERM', () => {
  clearInterval(heartbeat)
  for (const wss of rooms.values()) {
    for (const ws of wss.clients) ws.close(1001)
    wss.close()
  }
  server.close(() => console.log('closed'))
})

server.listen(0, '127.0.0.1', () => console.log(server.address().port))
