import { equal, match } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { main } from './cli.ts'

const url = 'http://127.0.0.1:1/'

describe('does not accept', () => {
  const faults: readonly [readonly string[], string][] = [
    [[], 'URL: expected a URL such as http://localhost:8080/, or a --scenario, found nothing'],
    [[url, 'more'], 'there is one word too many: more'],
    [['localhost:8080'], 'URL: expected an absolute URL such as http://localhost:8080/, found "localhost:8080"'],
    [['/path'], 'URL: expected an absolute URL such as http://localhost:8080/, found "/path"'],
    [[url, '--conections', '3'], "unknown option '--conections'; did you mean --connections?"],
    [[url, '-c'], "option '-c, --connections <value>' argument missing"],
    [[url, '-c', '0'], '--connections: expected a whole number from 1 to 100000, found 0'],
    [[url, '-c', 'many'], '--connections: expected a whole number, found "many"'],
    [[url, '-c', '1', '-c', '2'], '-c is given twice'],
    [
      [url, '-m', '2'],
      '--streams: HTTP/1.1 has one request at a time on a connection; ask for h2 or h3 (--protocol), or for more connections',
    ],
    [[url, '--in-flight', '2'], '--in-flight: is for WebSocket; over HTTP/2 and HTTP/3 it is --streams'],
    [[url, '-r', 'fast'], '--rate: expected requests per second such as 500, 2.5, 10k or 90/m, found "fast"'],
    [[url, '-r', '0'], '--rate: expected a number above 0, up to 10000000, found 0'],
    [[url, '--arrivals', 'uniform'], '--arrivals: is for a fixed rate (--rate)'],
    [[url, '-r', '1', '--arrivals', 'even'], '--arrivals: expected poisson or uniform, found "even"'],
    [[url, '-r', '1', '--pacing', 'slow'], '--pacing: expected spin or timer, found "slow"'],
    [[url, '--max-backlog', '1'], '--max-backlog: is for a fixed rate (--rate)'],
    [[url, '--seed', 'x'], '--seed: expected a whole number, found "x"'],
    [[url, '-d', '10'], '--duration: expected a duration such as 500ms, 10s or 2m, found "10"'],
    [[url, '-d', '0s'], '--duration: expected a duration from 1 ms to 24 days, found 0'],
    [[url, '-n', '0'], '--requests: expected a whole number from 1 to 1000000000000, found 0'],
    [[url, '-w', 'x'], '--warmup: expected a duration such as 500ms, 10s or 2m, found "x"'],
    [[url, '--grace', 'x'], '--grace: expected a duration such as 500ms, 10s or 2m, found "x"'],
    [[url, '--timeout', '0ms'], '--timeout: expected a duration from 1 ms to 24 days, found 0'],
    [[url, '--connect-timeout', '9'], '--connect-timeout: expected a duration such as 500ms, 10s or 2m, found "9"'],
    [[url, '-t', '20'], '--threads: 20 are more than there are connections (10)'],
    [[url, '-p', 'h3'], `--protocol: HTTP/3 needs TLS, and ${new URL(url).origin} has none; expected https: or wss:`],
    [[url, '-p', '2'], '--protocol: expected auto or h1 or h2 or h3, found "2"'],
    [[url, '--grpc'], 'URL: expected the path of a method, /package.Service/Method, found "/"'],
    [['ws://x/', '--grpc'], 'URL: expected a URL that begins with http: or https:, found "ws://x"'],
    [[url, '-X', 'G T'], '--method: expected a method such as GET or POST, found "G T"'],
    [[url, '-H', 'no colon'], '--header: expected \'name: value\', found "no colon"'],
    [[url, '-H', 'a b: c'], '--header: expected the name of a header, found "a b"'],
    [[url, '-H', 'content-length: 3'], '--header: content-length is not to be given: it follows from the request'],
    [[url, '--host', 'a b'], '--header: host: expected a host, or host:port, found "a b"'],
    [[url, '-b', 'x', '--body-size', '1B'], '--body and --body-size exclude each other'],
    [[url, '-b', '@/nowhere'], '--body: /nowhere does not exist'],
    [[url, '--body-size', '1'], '--body-size: expected a size such as 512B, 64KiB or 10MB, found "1"'],
    [[url, '--body-hex', 'xyz'], '--body-hex: expected pairs of hexadecimal digits, found "xyz"'],
    [[url, '--accept', '2yy'], '--accept: expected statuses such as 200 or 2xx,404, found "2yy"'],
    [[url, '--echo', 'any'], '--echo: is for WebSocket'],
    [['ws://x/', '--echo', 'other'], '--echo: expected same or any, found "other"'],
    [[url, '--ca', '/nowhere'], '--ca: /nowhere does not exist'],
    [[url, '--ca', new URL('../package.json', import.meta.url).pathname], '--ca, --cert, --key: ca holds no certificate in PEM'],
    [[url, '--cert', '/dev/null'], '--cert: expected a text, found ""'],
    [
      [url, '--fail-if', 'p99'],
      `--fail-if: expected a threshold such as 'p99>20ms', 'errors>0.1%', 'errors>0', 'dropped>0', 'rps<5000', 'service.p50>=2ms', 'status.5xx>0', found "p99"`,
    ],
    [[url, '--fail-if', 'p99>20'], '--fail-if: p99: expected a duration such as 20ms or 1.5s, found "20"'],
    [[url, '-f', '/nowhere.yaml'], '/nowhere.yaml: does not exist'],
  ]
  for (const [args, message] of faults) {
    test(args.join(' ') || '(nothing)', async (context) => {
      const printed = context.mock.method(console, 'error', () => {})
      equal(await main(args), 2)
      const text = String(printed.mock.calls[0]?.arguments[0])
      equal(text.split('\n')[0], message.startsWith('/nowhere.yaml') ? message : `heddle-load: ${message}`)
      match(text, /heddle-load --help lists the options\.$/)
    })
  }
})

test('says how it is used, with every option', async (context) => {
  const printed = context.mock.method(process.stdout, 'write', () => true)
  equal(await main(['--help']), 0)
  const text = String(printed.mock.calls[0]?.arguments[0])
  printed.mock.restore()
  match(text, /^Usage: heddle-load URL \[options\]/)
  const source = readFileSync(new URL('./cli-options.ts', import.meta.url), 'utf8')
  const table = /const words = \{([^]*?)\} as const/.exec(source)?.[1] ?? ''
  const names = [...table.matchAll(/^ {2}'?([a-z-]+)'?:/gm)].map(([, name]) => name as string)
  equal(names.length > 30, true)
  for (const name of names) match(text, new RegExp(`--${name}\\b`), name)
})

test('says its version', async (context) => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
  const printed = context.mock.method(console, 'log', () => {})
  equal(await main(['-v']), 0)
  equal(printed.mock.calls[0]?.arguments[0], version)
})
