/** The cheapest HTTP/1.1 server there is, as the other end of client and proxy races: prepared bytes for every blank line. */
import net, { type AddressInfo } from 'node:net'

const size = Number(process.argv[2] ?? 12)
const answer = Buffer.concat([
  Buffer.from(`HTTP/1.1 200 OK\r\ndate: ${new Date().toUTCString()}\r\ncontent-type: text/plain\r\ncontent-length: ${size}\r\n\r\n`),
  Buffer.alloc(size, 'x'),
])
const server = net.createServer({ noDelay: true }, (socket) => {
  // How much of "\r\n\r\n" the last chunk ended with.
  let matched = 0
  socket.on('data', (chunk) => {
    let requests = 0
    for (const octet of chunk) {
      matched = octet === (matched % 2 === 0 ? 13 : 10) ? matched + 1 : octet === 13 ? 1 : 0
      if (matched === 4) {
        requests++
        matched = 0
      }
    }
    if (requests === 1) socket.write(answer)
    else if (requests > 1) socket.write(Buffer.concat(Array.from({ length: requests }, () => answer)))
  })
  socket.on('error', () => socket.destroy())
})
server.listen(0, '127.0.0.1', () => console.log(`ready ${(server.address() as AddressInfo).port}`))
process.on('SIGTERM', () => process.exit(0))
