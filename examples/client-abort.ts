// Gives up in three ways: `node client-abort.ts URL`.
import { fetch, HeddleError } from 'heddle'

const url = process.argv[2] as string

// A time limit for everything, from the call to the last byte.
await fetch(url, { timeout: 50 }).catch((error: unknown) => {
  if (error instanceof HeddleError) console.log(error.code)
})

// A signal of the program's: its reason comes out as it is.
const controller = new AbortController()
setTimeout(() => controller.abort('changed my mind'), 50)
await fetch(url, { signal: controller.signal }).catch((reason: unknown) => console.log(reason))

// The platform's own.
await fetch(url, { signal: AbortSignal.timeout(50) }).catch((error: unknown) => console.log((error as Error).name))
