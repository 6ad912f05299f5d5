import { basename, relative } from 'node:path'

/** What of `process` tells how the program was started. */
export interface Start {
  readonly argv: readonly string[]
  readonly execArgv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  cwd(): string
}

/**
 * A command line for the same program with other words after `command`, which began the words of
 * this one: as the person who reads it started it, so that it can be typed.
 */
export function invocation(start: Start, command: string, words: string): string {
  const { npm_lifecycle_event: event = '', npm_lifecycle_script: script = '', npm_config_user_agent: agent = '' } = start.env
  // A package manager's environment is inherited: it is about us only if its script is.
  if (script.includes('heddle-gateway')) {
    if (event === 'npx') return `npx heddle-gateway ${command} ${words}`
    if (event !== '' && new RegExp(`\\b${command}\\b`).test(script)) {
      const manager = agent.split('/')[0] ?? ''
      const run = event === 'start' ? `${manager || 'npm'} start` : `${manager || 'npm'} run ${event}`
      // Only npm wants to be told which words are the script's.
      return manager === '' || manager === 'npm' ? `${run} -- ${words}` : `${run} ${words}`
    }
  }
  const [, program = ''] = start.argv
  if (basename(program, '.cmd') === 'heddle-gateway') return `heddle-gateway ${command} ${words}`
  return ['node', ...start.execArgv, relative(start.cwd(), program), command, words].join(' ')
}
