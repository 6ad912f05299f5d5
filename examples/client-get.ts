// Asks for JSON and prints it: `node client-get.ts URL`.
import { fetch } from 'heddle'

const response = await fetch(process.argv[2] as string)
console.log(response.status, await response.json())
