// A thousand requests at once over one HTTP/2 connection, half of them given up: `npm run example -- client-burst [URL]`.
// Without a URL it asks http://localhost:8080, where the example server-hello listens; h2c is HTTP/2 without TLS. An https URL needs no option.
import { Client } from 'heddle'

await using client = new Client({ h2c: true })
const url = process.argv[2] ?? 'http://localhost:8080/'

const outcomes = await Promise.allSettled(
  Array.from({ length: 1_000 }, async (_, i) => {
    const giveUp = new AbortController()
    const answer = client.fetch(url, { signal: giveUp.signal }).then((response) => response.text())
    if (i % 2 === 1) giveUp.abort()
    return await answer
  }),
)
console.log(outcomes.filter(({ status }) => status === 'fulfilled').length, 'answers')
console.log('connections made:', client.stats().dialled)
