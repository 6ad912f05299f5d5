/** Programs that a test starts: each ends with it, by its process id. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'

/** What a program did, from its start to its end. */
export interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** How a program runs. */
export interface ProgramOptions {
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
  /** Written to its standard input, which ends then. */
  readonly input?: string | Uint8Array
  /** How long it may take, ms. Default 60,000. */
  readonly timeout?: number
}

/** Runs a program to its end; rejects if that is not in time. Output is read as Latin-1: a character for a byte. */
export async function run(program: string, words: readonly string[], options: ProgramOptions = {}): Promise<Ran> {
  const child = spawn(program, words, { cwd: options.cwd, env: { ...process.env, ...options.env }, stdio: 'pipe' })
  const { timeout = 60_000 } = options
  let late = false
  const alarm = setTimeout(() => {
    late = true
    child.kill('SIGKILL')
  }, timeout)
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString('latin1')))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('latin1')))
  child.stdin.on('error', () => {}) // It may end without reading all of it.
  child.stdin.end(options.input)
  try {
    const [status] = (await once(child, 'close')) as [number | null]
    if (late) throw new Error(`${program} ${words.join(' ')} took more than ${timeout} ms: ${stdout}${stderr}`)
    return { status, stdout, stderr }
  } finally {
    clearTimeout(alarm)
  }
}

/** Runs a program that must end well, and returns what it printed. */
export async function runWell(program: string, words: readonly string[], options: ProgramOptions = {}): Promise<string> {
  const { status, stdout, stderr } = await run(program, words, options)
  if (status !== 0) throw new Error(`${program} ${words.join(' ')} ended with ${status}: ${stdout}${stderr}`)
  return stdout
}

/** A program that goes on until its test ends, and tells what it does by lines. */
export class Running {
  readonly child: ChildProcess
  /** All it has printed: standard output, then errors as they came. */
  printed: string
  readonly #wakers: Set<() => void>
  #ended: boolean

  constructor(t: TestContext, program: string, words: readonly string[], options: Omit<ProgramOptions, 'timeout' | 'input'> = {}) {
    this.printed = ''
    this.#wakers = new Set()
    this.#ended = false
    this.child = spawn(program, words, { cwd: options.cwd, env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'] })
    const wake = (): void => {
      for (const waker of this.#wakers) waker()
    }
    const read = (chunk: Buffer): void => {
      this.printed += chunk.toString('latin1')
      wake()
    }
    this.child.stdout?.on('data', read)
    this.child.stderr?.on('data', read)
    this.child.on('close', () => {
      this.#ended = true
      wake()
    })
    t.after(() => this.stop())
  }

  /** The first match of `pattern` in what it has printed, or prints within `timeout` ms; rejects if it ends before. */
  async prints(pattern: RegExp, timeout = 20_000): Promise<RegExpExecArray> {
    const match = await this.#until(() => pattern.exec(this.printed) ?? undefined, timeout)
    if (match === undefined) {
      throw new Error(
        `${this.child.spawnfile} ${this.#ended ? 'ended' : `was waited for ${timeout} ms`} without ${pattern}: ${this.printed}`,
      )
    }
    return match
  }

  /** Its exit status, when it ends by itself. */
  async end(timeout = 20_000): Promise<number | null> {
    await this.#until(() => (this.#ended ? true : undefined), timeout)
    if (!this.#ended) throw new Error(`${this.child.spawnfile} did not end within ${timeout} ms: ${this.printed}`)
    return this.child.exitCode
  }

  async stop(): Promise<void> {
    if (this.#ended) return
    this.child.kill('SIGTERM')
    await this.#until(() => (this.#ended ? true : undefined), 3000)
    if (this.#ended) return
    this.child.kill('SIGKILL')
    await this.#until(() => (this.#ended ? true : undefined), 3000)
  }

  async #until<T>(look: () => T | undefined, timeout: number): Promise<T | undefined> {
    const { promise, resolve } = Promise.withResolvers<T | undefined>()
    const check = (): void => {
      const seen = look()
      if (seen !== undefined || this.#ended) resolve(seen)
    }
    const alarm = setTimeout(() => resolve(undefined), timeout)
    this.#wakers.add(check)
    check()
    try {
      return await promise
    } finally {
      clearTimeout(alarm)
      this.#wakers.delete(check)
    }
  }
}
