import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { LoadResult } from '../src/result.ts'

const bin = fileURLToPath(new URL('../src/bin.ts', import.meta.url))

/** The program, running. */
export class Program {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  readonly ended: Promise<number | string | null>
  output = ''
  errors = ''
  readonly #waiting = new Set<() => void>()

  constructor(args: readonly string[], nodeArgs: readonly string[] = []) {
    this.child = spawn(process.execPath, ['--conditions=@heddle/source', ...nodeArgs, bin, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 110_000)
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => (this.output += text))
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text
      for (const wake of this.#waiting) wake()
    })
    this.ended = new Promise((resolve) => {
      this.child.on('close', (code, signal) => {
        clearTimeout(timer)
        for (const wake of this.#waiting) wake()
        resolve(signal ?? code)
      })
    })
  }

  /** Waits until `pattern` stands on its standard error. */
  async says(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.errors)) {
      if (this.child.exitCode !== null) throw new Error(`it ended without ${pattern}:\n${this.output}${this.errors}`)
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }
}

/** Runs it to its end. */
export async function finished(
  args: readonly string[],
  nodeArgs: readonly string[] = [],
): Promise<{ status: number | string | null; output: string; errors: string }> {
  const program = new Program(args, nodeArgs)
  const status = await program.ended
  return { status, output: program.output, errors: program.errors }
}

/** Runs it to its end for its JSON; fails unless it exits with `status`. */
export async function jsonOf(args: readonly string[], status = 0): Promise<LoadResult> {
  const ended = await finished([...args, '--json', '-', '-q'])
  if (ended.status !== status) throw new Error(`exit ${ended.status}, not ${status}:\n${ended.output}${ended.errors}`)
  return JSON.parse(ended.output) as LoadResult
}
