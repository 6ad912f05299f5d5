// A chat over HTTP/1.1 and HTTP/2 WebSockets. Run it by `npm run example -- websocket-chat` and open http://localhost:8080 in two windows.
import { Response, serve } from 'heddle/server'
import { accept, SocketGroup, textOf, type SocketHandler } from 'heddle/websocket'

const page = `<!doctype html><meta charset="utf-8"><title>chat</title>
<form><input autofocus autocomplete="off"></form><ul></ul>
<script>
  const socket = new WebSocket(location.href.replace('http', 'ws') + 'chat', 'lines')
  const [form, list] = document.querySelectorAll('form, ul')
  const show = (text) => (list.prepend(document.createElement('li')), (list.firstChild.textContent = text))
  socket.onmessage = ({ data }) => show(data)
  socket.onclose = ({ code }) => show('closed: ' + code)
  form.onsubmit = (event) => (event.preventDefault(), socket.send(form[0].value), show('you: ' + form[0].value), form.reset())
</script>
`

/** Everybody. Connections that are dead are found, and dropped. */
const room = new SocketGroup({ heartbeat: true })

/** One object for all sockets. A line goes to all but its sender, and to nobody who is a megabyte behind. */
const chat: SocketHandler = {
  onMessage(socket, buffer, start, limit, binary) {
    if (binary) socket.close(1003, 'lines of text, please')
    else room.broadcast(textOf(buffer, start, limit), { except: socket, maxBufferedAmount: 1_048_576 })
  },
  onClose(_socket, code) {
    room.broadcast(`somebody left (${code}), ${room.size} are here`)
  },
}

const server = await serve({
  port: Number(process.env['PORT'] ?? 8080),
  websocket: true,
  fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === '/') return new Response(page, { headers: { 'content-type': 'text/html' } })
    if (pathname !== '/chat') return new Response('not found\n', { status: 404 })
    // What is no handshake, and pages of other hosts, are answered by themselves.
    const { response, socket } = accept(request, { protocol: 'lines', limits: { maxMessageSize: 10_000 } })
    socket.handler = chat
    room.add(socket).broadcast(`somebody came, ${room.size} are here`)
    return response
  },
})
console.log(server.url)
// Closes the WebSockets with 1001.
process.once('SIGTERM', () => void server.close())
