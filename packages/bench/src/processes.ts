import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import net from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** A process of the race, on a core of its own where there are two. */
export interface Running {
  readonly child: ChildProcess
  readonly pid: number
  /** What it printed after `ready`, usually its port. */
  readonly words: readonly string[]
}

const nodeOptions = ['--conditions=@heddle/source', '--disable-warning=ExperimentalWarning']
const pinning = availableParallelism() >= 2 && installed('taskset')

/** True when `command` is on the PATH. */
export function installed(command: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore' }).status === 0
}

function pinned(core: number, command: string, args: readonly string[]): [string, string[]] {
  return pinning ? ['taskset', ['-c', String(core), command, ...args]] : [command, [...args]]
}

/** Starts a TypeScript file of this package on `core` and waits for its line `ready …`. `commanded`: it reads orders from its standard input. */
export async function startNode(
  core: number,
  file: string,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
  commanded = false,
): Promise<Running> {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const words = [...nodeOptions, path, ...args]
  return await startCommand(core, process.execPath, words, env, commanded)
}

/** Starts a program on `core` and waits for its line `ready …`. */
export async function startCommand(
  core: number,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  commanded = false,
): Promise<Running> {
  const [program, words] = pinned(core, command, args)
  const child = spawn(program, words, { stdio: [commanded ? 'pipe' : 'ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } })
  let printed = ''
  const { stdout } = child
  if (stdout === null) throw new Error('no standard output')
  for await (const chunk of stdout.iterator({ destroyOnReturn: false })) {
    printed += chunk
    const match = /^ready(.*)$/m.exec(printed)
    if (match !== null) {
      stdout.resume()
      return { child, pid: child.pid as number, words: (match[1] as string).trim().split(' ') }
    }
  }
  throw new Error(`${command} ${args.join(' ')} ended before it was ready: ${printed}`)
}

/** Starts another program on `core` and waits until it listens on `port`. */
export async function startProgram(core: number, command: string, args: readonly string[], port: number): Promise<Running> {
  const [program, words] = pinned(core, command, args)
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'inherit'] })
  for (let tries = 0; tries < 100; tries++) {
    if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode} before it listened on ${port}`)
    if (await listens(port)) return { child, pid: child.pid as number, words: [String(port)] }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`${command} does not listen on ${port}`)
}

/** Runs a program to its end on `core` and returns what it printed. */
export async function runProgram(core: number, command: string, args: readonly string[]): Promise<string> {
  const [program, words] = pinned(core, command, args)
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.on('data', (chunk) => (printed += chunk))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}: ${printed}`)
  return printed
}

/** Runs a TypeScript file of this package to its end on `core` and returns the JSON of its last line. */
export async function runNode<T>(core: number, file: string, args: readonly string[]): Promise<T> {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const printed = await runProgram(core, process.execPath, [...nodeOptions, path, ...args])
  return JSON.parse(printed.trim().split('\n').at(-1) as string) as T
}

/**
 * Runs a TypeScript file of this package on `core` until it ends, or for `budget` ms, and returns the JSON of
 * each line it printed until then. Rejects if it fails.
 */
export async function runNodeFor<T>(budget: number, core: number, file: string, args: readonly string[]): Promise<T[]> {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const [program, words] = pinned(core, process.execPath, [...nodeOptions, path, ...args])
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.on('data', (chunk) => (printed += chunk))
  let isCut = false
  const alarm = setTimeout(() => {
    isCut = true
    child.kill('SIGKILL')
  }, budget)
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(alarm)
  if (code !== 0 && !isCut) throw new Error(`${file} ${args.join(' ')} ended with ${code}: ${printed}`)
  // The last line may have been cut, too.
  return printed
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as T)
}

/** Talks with a process that was started `commanded`: one line to its standard input, one line back. */
export class Orders {
  readonly #running: Running
  /** What the order given last waits for. */
  #answer: PromiseWithResolvers<string>

  constructor(running: Running) {
    this.#running = running
    this.#answer = Promise.withResolvers()
    const lines = createInterface({ input: running.child.stdout as NodeJS.ReadableStream })
    lines.on('line', (line) => this.#answer.resolve(line))
    running.child.on('exit', () => this.#answer.reject(new Error('a process ended before it had done what it was told')))
  }

  /** Sends `order` and returns the words of the answer. Rejects if the process ends instead. */
  async give(order: string): Promise<string[]> {
    this.#answer = Promise.withResolvers()
    this.#running.child.stdin?.write(`${order}\n`)
    return (await this.#answer.promise).split(' ')
  }
}

/** Ends a process this module started, and waits for its end. */
export async function stop({ child }: Running): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'exit')
  child.kill('SIGTERM')
  const forced = setTimeout(() => child.kill('SIGKILL'), 3000)
  await closed
  clearTimeout(forced)
}

/** A port nobody listens on now. */
export async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function listens(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
