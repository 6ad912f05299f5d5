// Reads a long answer piece by piece, and stops when it has seen enough: `npm run example -- client-stream [URL]`.
// Without a URL it asks http://localhost:8080, where the example server-events listens.
import { fetch } from 'heddle'

const response = await fetch(process.argv[2] ?? 'http://localhost:8080/')
const decoder = new TextDecoder()
let text = ''
for await (const chunk of response.body ?? []) {
  text += decoder.decode(chunk, { stream: true })
  if (text.includes('\n')) break
}
console.log('first line:', text.slice(0, text.indexOf('\n')))
