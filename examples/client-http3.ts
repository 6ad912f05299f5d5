// Learns from a response that the server speaks HTTP/3, and goes over to it: `npm run example -- client-http3 [URL] [CERT]`.
// Without a URL it asks https://localhost:8443, where the example server-http3 listens.
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { Client } from 'heddle'

const [url = 'https://localhost:8443', cert = 'cert.pem'] = process.argv.slice(2)

await using client = new Client({ protocols: ['h3', 'h2', 'h1'], tls: { ca: readFileSync(cert) } })
let text = ''
for (let i = 0; i < 25 && !text.startsWith('h3'); i++) {
  const response = await client.fetch(url)
  text = (await response.text()).trim()
  console.log(`${text}, alt-svc: ${response.headers.get('alt-svc')}`)
  // Meanwhile a connection over QUIC is made; requests that cannot wait go over the one there is.
  await setTimeout(200)
}
console.log(client.stats().http3Unavailable ?? `connections over QUIC: ${client.stats().http3.dialled}`)
