// Sends what is made on the way, and never more than the server takes: `npm run example -- client-upload URL`.
import { fetch } from 'heddle'

async function* lines(): AsyncGenerator<string> {
  for (let i = 1; i <= 1_000; i++) yield `line ${i}\n`
}

const response = await fetch(process.argv[2] as string, { method: 'PUT', body: lines(), duplex: 'half' })
console.log(await response.text())
