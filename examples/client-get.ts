// Asks for JSON and prints it: `npm run example -- client-get [URL]`.
// Without a URL it asks http://localhost:8080, where `npm start` listens.
import { fetch } from 'heddle'

const response = await fetch(process.argv[2] ?? 'http://localhost:8080/headers')
console.log(response.status, await response.json())
