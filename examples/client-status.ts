// Looks at statuses only: `npm run example -- client-status [URL]`. `using` frees the connection, though the body is never read.
// Without a URL it asks http://localhost:8080, where the example server-hello listens.
import { Client } from 'heddle'

await using client = new Client()
for (let i = 0; i < 3; i++) {
  using response = await client.fetch(process.argv[2] ?? 'http://localhost:8080/')
  console.log(response.status)
}
console.log('connections made:', client.stats().dialled)
