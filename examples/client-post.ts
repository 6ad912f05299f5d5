// Sends JSON: `npm run example -- client-post [URL]`. A client of one's own has limits of its own.
// Without a URL it asks http://localhost:8080, where the example server-exchange listens.
import { Client } from 'heddle'

await using client = new Client({ maxConnectionsPerOrigin: 4, totalTimeout: 10_000 })
const response = await client.fetch(process.argv[2] ?? 'http://localhost:8080/', {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ greeting: 'hello' }),
})
console.log(await response.text())
