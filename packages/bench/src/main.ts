/** `npm run bench -- NAME [--json] [--rounds N] [--seconds S]`: runs one race and prints its table and ratios. */
import { parseArgs } from 'node:util'
import { h1Client } from './races/h1-client.ts'
import { h1Proxy } from './races/h1-proxy.ts'
import { h1Queue, h2Queue } from './races/queue.ts'
import { h1Reuse } from './races/h1-reuse.ts'
import { h1Server } from './races/h1-server.ts'
import { h2Client } from './races/h2-client.ts'
import { h2Proxy } from './races/h2-proxy.ts'
import { h2Server } from './races/h2-server.ts'
import { wsEcho } from './races/ws-echo.ts'
import { wsH2 } from './races/ws-h2.ts'
import { table, type Report } from './report.ts'

export interface RaceOptions {
  /** Counted rounds; one more warms up. */
  readonly rounds: number
  /** Of load per contestant, variant and round. */
  readonly seconds: number
  /** Tells how the race goes, while it goes. */
  readonly say: (text: string) => void
}

const races: Readonly<Record<string, (options: RaceOptions) => Promise<Report>>> = {
  'h1-server': h1Server,
  'h1-client': h1Client,
  'h1-proxy': h1Proxy,
  'h1-queue': h1Queue,
  'h1-reuse': h1Reuse,
  'h2-server': h2Server,
  'h2-client': h2Client,
  'h2-proxy': h2Proxy,
  'h2-queue': h2Queue,
  'ws-echo': wsEcho,
  'ws-h2': wsH2,
}

const usage = `npm run bench -- NAME [--json] [--rounds N] [--seconds S]
races: ${Object.keys(races).join(', ')}`

async function main(): Promise<number> {
  let parsed
  try {
    parsed = parseArgs({
      allowPositionals: true,
      options: { json: { type: 'boolean' }, rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '3' } },
    })
  } catch (error) {
    console.error(`${(error as Error).message}\n${usage}`)
    return 2
  }
  const { values, positionals } = parsed
  const [name = ''] = positionals
  const race = Object.hasOwn(races, name) ? races[name] : undefined
  const rounds = Number(values.rounds)
  const seconds = Number(values.seconds)
  const wrong =
    positionals.length !== 1
      ? `expected the name of one race, found ${positionals.length === 0 ? 'none' : positionals.join(' ')}`
      : race === undefined
        ? `no race is called ${name}`
        : !(Number.isInteger(rounds) && rounds > 0)
          ? `--rounds is a whole number from 1, found ${values.rounds}`
          : !(Number.isInteger(seconds) && seconds > 0)
            ? `--seconds is a whole number from 1, found ${values.seconds}`
            : ''
  if (race === undefined || wrong !== '') {
    console.error(`${wrong}\n${usage}`)
    return 2
  }
  const report = await race({ rounds, seconds, say: (text) => console.error(text) })
  console.log(table(report))
  console.log('ratios (contestant / heddle, more than 1: heddle costs less)')
  for (const [key, value] of Object.entries(report.ratios)) console.log(`  ${key}: ${value}`)
  if (values.json === true) console.log(JSON.stringify(report))
  return 0
}

process.exitCode = await main()
