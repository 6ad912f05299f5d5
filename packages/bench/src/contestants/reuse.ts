/** One client process of the h1-reuse race: `reuse.ts KIND PORT CA DELAY`. Prints JSON. */
import { readFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { Client } from 'heddle'
import { Agent, request as undiciRequest } from 'undici'
import type { ReuseRun } from '../races/h1-reuse.ts'

const [, , kind, target, caFile, delayText] = process.argv as [string, string, string, string, string, string]
const ca = readFileSync(caFile, 'utf8')
const delay = Number(delayText)
const times = 100
let connections = 0

// A relay that counts connections and holds every byte back for `delay` ms each way.
const relay = net.createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
  connections++
  const far = net.connect({ port: Number(target), host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  const late = (act: () => void): void => void (delay === 0 ? act() : setTimeout(act, delay))
  for (const [from, to] of [
    [near, far],
    [far, near],
  ] as const) {
    from.on('data', (chunk) => late(() => to.destroyed || to.write(chunk)))
    from.on('end', () => late(() => to.end()))
    from.on('error', () => to.destroy())
    from.on('close', () => late(() => to.destroy()))
  }
})
await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
const url = `https://localhost:${(relay.address() as AddressInfo).port}/`

/** One request of a client of its own, as often as it is called. */
function contestant(): () => Promise<void> {
  if (kind === 'undici') {
    const dispatcher = new Agent({ connect: { ca } })
    return async () => {
      const { statusCode, body } = await undiciRequest(url, { dispatcher })
      if (statusCode !== 200) throw new Error(`status ${statusCode}`)
      body.on('error', () => {})
      body.destroy()
    }
  }
  const client = new Client({ tls: { ca }, ...(kind === 'no-drain' ? { limits: { drainSize: 0 } } : {}) })
  if (kind === 'heddle-streaming-json') {
    return async () => {
      const response = await client.fetch(`${url}tail`)
      const decoder = new TextDecoder()
      let text = ''
      // A streaming parser: it stops at the brace that closes the value, before the last newline.
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
        text += decoder.decode(chunk, { stream: true })
        if (text.endsWith('}')) break
      }
      JSON.parse(text)
    }
  }
  return async () => {
    const response = await client.fetch(url)
    if (response.status !== 200) throw new Error(`status ${response.status}`)
    response[Symbol.dispose]()
  }
}

// What happens once in a process (loading TLS, compiling) is nobody's cost per request.
const warmUp = contestant()
for (let i = 0; i < 10; i++) await warmUp()
await new Promise((resolve) => setTimeout(resolve, 100))
connections = 0
const once = contestant()
const cpu = process.cpuUsage()
const started = performance.now()
for (let i = 0; i < times; i++) await once()
const { user, system } = process.cpuUsage(cpu)
const run: ReuseRun = { wallMicros: ((performance.now() - started) * 1000) / times, cpuMicros: (user + system) / times, connections }
console.log(JSON.stringify(run))
process.exit(0)
