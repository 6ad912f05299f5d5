// Sends JSON: `npm run example -- client-post URL`. A client of one's own has limits of its own.
import { Client } from 'heddle'

await using client = new Client({ maxConnectionsPerOrigin: 4, totalTimeout: 10_000 })
const response = await client.fetch(process.argv[2] as string, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ greeting: 'hello' }),
})
console.log(await response.text())
