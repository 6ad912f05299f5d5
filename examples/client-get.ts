// Asks for JSON and prints it: `npm run example -- client-get URL`.
import { fetch } from 'heddle'

const response = await fetch(process.argv[2] as string)
console.log(response.status, await response.json())
