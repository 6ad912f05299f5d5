// Sends what is made on the way, and never more than the server takes: `npm run example -- client-upload [URL]`.
// Without a URL it asks http://localhost:8080, where the example server-upload listens.
import { fetch } from 'heddle'

async function* lines(): AsyncGenerator<string> {
  for (let i = 1; i <= 1_000; i++) yield `line ${i}\n`
}

const response = await fetch(process.argv[2] ?? 'http://localhost:8080/', { method: 'PUT', body: lines(), duplex: 'half' })
console.log(await response.text())
