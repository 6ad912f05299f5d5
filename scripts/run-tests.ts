import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './sources.ts'

/**
 * Runs test files (absolute paths), two at a time since some start processes of their own, and returns
 * the exit code. `timeout`: ms a test may take. Of `words`, the flags go to Node's test runner, but for
 * `--again`: the files in which a test failed run once more, alone, and it is said; what fails then
 * fails the run. It is for machines that others use, too, where a test over real sockets may fail for
 * want of time.
 */
export function runTests(paths: readonly string[], timeout: number, words: readonly string[]): number {
  const flags = words.filter((word) => word.startsWith('--') && word !== '--again')
  const first = run(paths, 2, timeout, flags)
  if (!words.includes('--again') || first.code === 0 || first.failed.length === 0) return first.code
  console.log(`\nFAILED ONCE, and run again alone:\n  ${first.failed.join('\n  ')}\n`)
  return run(first.failed, 1, timeout, flags).code
}

function run(paths: readonly string[], concurrency: number, timeout: number, flags: readonly string[]): { code: number; failed: string[] } {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-tests-'))
  const list = join(folder, 'failed')
  const { status } = spawnSync(
    process.execPath,
    [
      '--conditions=@heddle/source',
      '--test',
      `--test-concurrency=${concurrency}`,
      `--test-timeout=${timeout}`,
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      `--test-reporter=${join(root, 'scripts/failed-files.ts')}`,
      `--test-reporter-destination=${list}`,
      ...flags,
      ...paths,
    ],
    { cwd: root, stdio: 'inherit' },
  )
  const failed = new Set(readFileSync(list, 'utf8').split('\n'))
  rmSync(folder, { recursive: true })
  return { code: status ?? 1, failed: paths.filter((path) => failed.has(path)) }
}
