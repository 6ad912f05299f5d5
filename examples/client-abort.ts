// Gives up in three ways on an answer that never ends, such as that of server-events: `npm run example -- client-abort [URL]`.
// Without a URL it asks http://localhost:8080, where the example server-events listens.
import { fetch, HeddleError } from 'heddle'
import type { FetchInit } from 'heddle/client'

const url = process.argv[2] ?? 'http://localhost:8080/'

const read = async (init: FetchInit): Promise<string> => (await fetch(url, init)).text()

// A time limit for everything, from the call to the last byte.
await read({ timeout: 50 }).catch((error: unknown) => {
  if (error instanceof HeddleError) console.log(error.code)
})

// A signal of the program's: its reason comes out as it is.
const controller = new AbortController()
setTimeout(() => controller.abort('changed my mind'), 50)
await read({ signal: controller.signal }).catch((reason: unknown) => console.log(reason))

// The platform's own.
await read({ signal: AbortSignal.timeout(50) }).catch((error: unknown) => console.log((error as Error).name))
