import { writeFileSync } from 'node:fs'
import { UsageError } from 'heddle/http'
import { CommandError, readCommand, type Command } from './cli-options.ts'
import { LiveLine } from './live-line.ts'
import { makePlan } from './make-plan.ts'
import { reportOf } from './report.ts'
import type { LoadResult } from './result.ts'
import { run } from './run.ts'
import { ScenarioError } from './scenario.ts'
import { parseThreshold } from './threshold.ts'
import { usage } from './usage.ts'
import { version } from './version.ts'

/**
 * Runs the program; resolves with the exit status: 0, 1 if a threshold was exceeded or nothing was answered at all, 2 for
 * options that cannot be, 128 and its number after a signal.
 */
export async function main(argv: readonly string[]): Promise<number> {
  let command: Command
  try {
    command = readCommand(argv)
    if (command.name === 'run') check(command)
  } catch (error) {
    if (!(error instanceof CommandError || error instanceof ScenarioError || error instanceof UsageError)) throw error
    const lines = error instanceof ScenarioError ? error.message : `heddle-load: ${error.message.replace(/^run: /, '')}`
    console.error(`${lines}\n\nheddle-load --help lists the options.`)
    return 2
  }
  switch (command.name) {
    case 'help':
      process.stdout.write(usage)
      return 0
    case 'version':
      console.log(version)
      return 0
    case 'run':
      return await load(command)
  }
}

type Run = Extract<Command, { name: 'run' }>

/** Before anything begins, with the names of the command line. */
function check({ options, nameOf }: Run): void {
  makePlan(options, nameOf)
  for (const text of options.failIf ?? []) parseThreshold(text, '--fail-if')
}

async function load({ options, json, quiet }: Run): Promise<number> {
  const controller = new AbortController()
  let signalled: NodeJS.Signals | undefined
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signalled !== undefined) process.exit(statusOf(signal))
    signalled = signal
    console.error('heddle-load: ends what is under way; a second signal ends at once')
    controller.abort()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  const live = !quiet && process.stderr.isTTY ? new LiveLine(process.stderr) : undefined
  try {
    const result = await run({
      ...options,
      signal: controller.signal,
      ...(live === undefined ? {} : { onProgress: (progress) => live.show(progress) }),
    })
    live?.clear()
    const problem = write(result, json, quiet)
    if (problem !== undefined) {
      console.error(`heddle-load: --json: ${problem}`)
      return 1
    }
    const status = judge(result)
    return signalled === undefined ? status : statusOf(signalled)
  } finally {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
  }
}

function statusOf(signal: NodeJS.Signals): number {
  return signal === 'SIGINT' ? 130 : 143
}

/** Returns why the file could not be written. */
function write(result: LoadResult, json: string | undefined, quiet: boolean): string | undefined {
  // What is for programs has the standard output for itself.
  if (!quiet) (json === '-' ? process.stderr : process.stdout).write(reportOf(result))
  if (json === undefined) return undefined
  const text = `${JSON.stringify(result, undefined, 2)}\n`
  if (json === '-') process.stdout.write(text)
  else {
    try {
      writeFileSync(json, text)
    } catch (error) {
      return (error as Error).message
    }
  }
  return undefined
}

function judge({ thresholds, requests, gaveUp, errors, unopened }: LoadResult): number {
  let status = 0
  for (const { threshold, failed, reason } of thresholds) {
    if (!failed) continue
    console.error(`heddle-load: ${threshold}: ${reason}`)
    status = 1
  }
  if (requests.succeeded + requests.rejected === 0) {
    const [first] = [...Object.values(errors), ...Object.values(unopened)]
    const why = gaveUp ?? first?.message
    console.error(`heddle-load: not one request was answered${why === undefined ? '' : `: ${why}`}`)
    status = 1
  }
  return status
}
