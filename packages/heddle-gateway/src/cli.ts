import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { ConfigError, formatProblem, loadConfig, type Config, type HttpVersion } from './config/index.ts'
import { startDemo } from './demo/index.ts'
import { startGateway, type Gateway } from './gateway.ts'
import { Http3Error } from './http3-error.ts'
import { invocation } from './invocation.ts'
import { ListenError } from './listen-error.ts'

const usage = `Usage: heddle-gateway [run] -c FILE       run the gateway that FILE describes
       heddle-gateway validate -c FILE    check FILE: prints OK, or all that is wrong, and exits with 0 or 1;
                                          what is doubtful only is a warning
       heddle-gateway demo [--port 8080] [--admin-port 9990]
                                          a gateway with an origin to play with
       heddle-gateway --help | --version

SIGTERM and SIGINT: accept no more, let what runs finish within drainTimeout, exit with 0; a second one ends at once.
SIGHUP: read FILE and its certificates again, and open the access log anew. What FILE cannot change while the
gateway runs is refused with its reason, and so is a FILE that is not valid; then the old configuration stays.
`

/** What the program was told to do. */
type Command =
  | { readonly name: 'run' | 'validate'; readonly file: string }
  | { readonly name: 'demo'; readonly port: number; readonly adminPort: number }
  | { readonly name: 'help' | 'version' }

/** The words of a command line that cannot be followed. */
class CommandError extends Error {}

/** What stops when the process is told to. */
interface Stoppable {
  readonly config: { readonly drainTimeout: number }
  close(): Promise<void>
  kill(): void
}

/**
 * Runs the program; resolves with the exit status when it is known: at once for bad usage (2), bad
 * configuration or a port that is taken (1), and after a graceful stop (0).
 */
export async function main(argv: readonly string[]): Promise<number> {
  let command: Command
  try {
    command = parseCommand(argv)
  } catch (error) {
    console.error(`heddle-gateway: ${(error as Error).message}\n\n${usage}`)
    return 2
  }
  try {
    return await follow(command)
  } catch (error) {
    if (error instanceof ConfigError) console.error(error.message)
    else if (error instanceof Http3Error) console.error(`heddle-gateway: ${error.message}`)
    else if (error instanceof ListenError) console.error(`heddle-gateway: ${error.message}${advice(command, error)}`)
    else console.error(error)
    return 1
  }
}

function parseCommand(argv: readonly string[]): Command {
  const { values, positionals } = parseWords(argv)
  if (values.help === true) return { name: 'help' }
  if (values.version === true) return { name: 'version' }
  const [name = 'run', ...rest] = positionals
  if (rest.length > 0) throw new CommandError(`there is one word too many: ${rest[0]}`)
  if (name !== 'run' && name !== 'validate' && name !== 'demo') throw new CommandError(`there is no command ${name}`)
  if (name === 'demo') {
    if (values.config !== undefined) throw new CommandError('the demo takes no configuration')
    return demoCommand(values)
  }
  if (values.port !== undefined || values['admin-port'] !== undefined) throw new CommandError('--port and --admin-port are for the demo')
  if (values.config === undefined || values.config === '')
    throw new CommandError(positionals.length === 0 && argv.length === 0 ? 'what shall it do?' : '-c FILE is missing')
  return { name, file: values.config }
}

function demoCommand(values: Words['values']): Command {
  const listener = port(values.port, 8080, '--port')
  const admin = port(values['admin-port'], 9990, '--admin-port')
  if (listener === admin && listener !== 0) {
    const note = (word: string | undefined): string => (word === undefined ? ' (its default)' : '')
    throw new CommandError(
      `--port${note(values.port)} and --admin-port${note(values['admin-port'])} are both ${listener}; they must differ`,
    )
  }
  return { name: 'demo', port: listener, adminPort: admin }
}

interface Words {
  readonly values: {
    readonly config?: string
    readonly port?: string
    readonly 'admin-port'?: string
    readonly help?: boolean
    readonly version?: boolean
  }
  readonly positionals: readonly string[]
}

function parseWords(argv: readonly string[]): Words {
  const words = splitWords(argv)
  const given = new Set<string>()
  for (const token of words.tokens) {
    if (token.kind !== 'option' || token.value === undefined) continue
    if (given.has(token.name)) throw new CommandError(`${token.rawName} is given twice`)
    given.add(token.name)
  }
  return words
}

function splitWords(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      tokens: true,
      options: {
        config: { type: 'string', short: 'c' },
        port: { type: 'string' },
        'admin-port': { type: 'string' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'v' },
      },
    })
  } catch (error) {
    // Node's message goes on with advice about positional arguments that does not apply here.
    throw new CommandError(((error as Error).message.split('. ')[0] as string).replace(/^U/, 'u'))
  }
}

function port(word: string | undefined, fallback: number, option: string): number {
  if (word === undefined) return fallback
  const number = Number(word)
  if (!/^\d+$/.test(word) || number > 65_535) throw new CommandError(`${option} wants a port from 0 to 65535, not ${word}`)
  return number
}

function advice(command: Command, error: ListenError): string {
  if (command.name !== 'demo' || error.code !== 'EADDRINUSE') return ''
  // Not those it just tried; 0 is any that is free, and cannot be the one that is taken.
  const next = (taken: number): number => (taken === 0 ? 0 : taken < 65_535 ? taken + 1 : taken - 1)
  const words = `--port ${next(command.port)} --admin-port ${next(command.adminPort)}`
  return `\nOther ports: ${invocation(process, 'demo', words)}`
}

/** Reads the file; what is doubtful in it goes to standard error. */
function load(file: string): Config {
  return loadConfig(file, { onWarning: (problem) => console.error(formatProblem(problem)) })
}

async function follow(command: Command): Promise<number> {
  switch (command.name) {
    case 'help':
      process.stdout.write(usage)
      return 0
    case 'version':
      console.log(version())
      return 0
    case 'validate':
      load(command.file)
      console.log(`OK: ${command.file}`)
      return 0
    case 'demo': {
      const demo = await startDemo({ ...command, print: (line) => console.log(line) })
      return untilStopped({
        config: { drainTimeout: 5_000 },
        close: () => demo.close({ deadline: 5_000 }),
        kill: () => demo.gateway.kill(),
      })
    }
    case 'run':
      return run(command.file)
  }
}

async function run(path: string): Promise<number> {
  const config = load(path)
  const gateway = await startGateway(config)
  // Before anybody is told that it runs, and may want it to stop.
  const stopped = untilStopped(gateway, reloader(gateway, path))
  gateway.addresses.forEach(({ name, url }, index) => {
    const how = byUdp(config.listeners[index]?.protocols ?? [])
    console.error(`heddle-gateway: listener ${name} on ${url}${how}`)
  })
  if (gateway.adminUrl !== undefined) console.error(`heddle-gateway: admin on ${gateway.adminUrl}`)
  if (config.workers > 1) console.error(`heddle-gateway: ${config.workers} workers: ${gateway.pids.join(', ')}`)
  return stopped
}

/** What is to be said of a listener's HTTP/3. */
function byUdp(protocols: readonly HttpVersion[]): string {
  if (!protocols.includes('h3')) return ''
  return protocols.length === 1 ? ', HTTP/3 only (UDP)' : ', HTTP/3 by UDP'
}

/**
 * Reads the file again whenever it is called. While a reload is under way, in workers it takes time, another one
 * follows it: the file may have changed since it was read.
 */
function reloader(gateway: Gateway, path: string): () => void {
  let running = false
  let wanted = false
  const run = async (): Promise<void> => {
    running = true
    while (wanted) {
      wanted = false
      await reload(gateway, path)
    }
    running = false
  }
  return () => {
    wanted = true
    if (!running) void run()
  }
}

/** Tells how it ended; the old configuration stays if it cannot be. */
async function reload(gateway: Gateway, path: string): Promise<void> {
  try {
    const config = load(path)
    await gateway.reload(config)
    console.error(`heddle-gateway: goes by ${path} as it is now: ${config.routes.length} routes, ${config.clusters.length} clusters`)
  } catch (error) {
    console.error(`${(error as Error).message}\nheddle-gateway: ${path} was not taken; the configuration is what it was`)
  }
  // Certificates by the names that hold now: those of before may be gone.
  gateway.refresh()
}

/** Resolves with 0 after the graceful stop a first signal starts, with 1 at a second signal. */
function untilStopped(work: Stoppable, refresh?: () => void): Promise<number> {
  return new Promise((resolve) => {
    let stopping = false
    const onSignal = (): void => {
      if (stopping) {
        work.kill()
        resolve(1)
        return
      }
      stopping = true
      console.error(`heddle-gateway: draining, at most ${work.config.drainTimeout / 1_000} s; a second signal ends at once`)
      void work.close().then(() => resolve(0))
    }
    process.on('SIGTERM', onSignal)
    process.on('SIGINT', onSignal)
    // Without something to refresh, the terminal's end is the program's.
    process.on('SIGHUP', refresh ?? onSignal)
  })
}

function version(): string {
  // Both src/ and dist/ lie beside it.
  const description = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
  return description.version
}
