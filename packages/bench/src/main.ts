/** `npm run bench -- NAME [--json] [--rounds N] [--seconds S]`: runs one race and prints its table and ratios; `--help` lists them. */
import { parseArgs } from 'node:util'
import { h1Client } from './races/h1-client.ts'
import { h1Proxy } from './races/h1-proxy.ts'
import { h1Queue, h2Queue } from './races/queue.ts'
import { h1Reuse } from './races/h1-reuse.ts'
import { h1Server } from './races/h1-server.ts'
import { h2Client } from './races/h2-client.ts'
import { h2Proxy } from './races/h2-proxy.ts'
import { h2Server } from './races/h2-server.ts'
import { h3Server } from './races/h3-server.ts'
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

interface Race {
  /** One line for `--help`. */
  readonly about: string
  readonly run: (options: RaceOptions) => Promise<Report>
}

const races: Readonly<Record<string, Race>> = {
  'h1-server': { about: 'HTTP/1.1 server, small answers on 50 connections: node:http, nginx, haproxy', run: h1Server },
  'h1-client': { about: 'HTTP/1.1 client, 50 requests in flight: undici, node:http', run: h1Client },
  'h1-proxy': { about: 'HTTP/1.1 proxy, small answers on 50 connections: http-proxy, httpxy, nginx, haproxy', run: h1Proxy },
  'h1-queue': { about: 'one more request while up to 102,400 wait, HTTP/1.1: undici, node:http', run: h1Queue },
  'h1-reuse': { about: 'responses over TLS that nobody reads, wall time: undici, Heddle without draining', run: h1Reuse },
  'h3-server': { about: 'HTTP/3 server, 1 to 100 streams on 4 connections: quic-go (needs Go)', run: h3Server },
  'h2-server': { about: 'HTTP/2 server, 1 to 100 streams on 4 connections: node:http2, nginx, haproxy, Go (needs h2load)', run: h2Server },
  'h2-client': { about: 'HTTP/2 client, 1 to 100 requests on one connection: node:http2, undici', run: h2Client },
  'h2-proxy': { about: 'HTTP/2 on both sides of a proxy: node:http2, nginx, haproxy (needs h2load)', run: h2Proxy },
  'h2-queue': { about: 'one more request while up to 102,400 wait, HTTP/2: undici, node:http2', run: h2Queue },
  'ws-echo': { about: 'WebSocket messages that come back, with and without compression: ws', run: wsEcho },
  'ws-h2': { about: '1,000 WebSockets on 10 HTTP/2 connections, against one connection each: ws', run: wsH2 },
}

const usage = `npm run bench -- NAME [--json] [--rounds N] [--seconds S]
npm run bench -- --help lists the races: ${Object.keys(races).join(', ')}`

const help = `npm run bench -- NAME [--json] [--rounds N] [--seconds S]

Runs one race against other software and prints CPU µs per request and the ratios.

races:
${Object.entries(races)
  .map(([name, { about }]) => `  ${name.padEnd(10)} ${about}`)
  .join('\n')}

options:
  --rounds N   counted rounds, a whole number from 1; one more warms up (default: 3)
  --seconds S  of load per contestant, variant and round, a whole number from 1 (default: 3); h1-reuse,
               the queue races and ws-h2 do a fixed amount of work instead, and ws-echo takes at most 1
  --json       one JSON object more, as the last line
  --help, -h   this text

nginx, haproxy, Go and wrk take part where they are installed. On Debian, npm run bench:setup installs nginx, haproxy, wrk and h2load.
What each race does, and how to read what it prints: packages/bench/README.md`

async function main(): Promise<number> {
  let parsed
  try {
    parsed = parseArgs({
      allowPositionals: true,
      options: {
        help: { type: 'boolean', short: 'h' },
        json: { type: 'boolean' },
        rounds: { type: 'string', default: '3' },
        seconds: { type: 'string', default: '3' },
      },
    })
  } catch (error) {
    // Node's message goes on with advice on positional arguments that no race takes.
    console.error(`${(error as Error).message.replace(/\. To specify a positional argument.*/s, '')}\n${usage}`)
    return 2
  }
  if (parsed.values.help === true) {
    console.log(help)
    return 0
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
  const report = await race.run({ rounds, seconds, say: (text) => console.error(text) })
  console.log(table(report))
  console.log('ratios (contestant / heddle, more than 1: heddle costs less)')
  for (const [key, value] of Object.entries(report.ratios)) console.log(`  ${key}: ${value}`)
  if (values.json === true) console.log(JSON.stringify(report))
  return 0
}

process.exitCode = await main()
