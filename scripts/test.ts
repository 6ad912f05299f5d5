/**
 * Runs every test that needs only Node: `npm test [-- PATTERN…]`. A pattern keeps the test files
 * whose path contains it.
 */
import { spawnSync } from 'node:child_process'
import { filesBelow, root } from './sources.ts'

const patterns = process.argv.slice(2).filter((word) => !word.startsWith('--'))
const flags = process.argv.slice(2).filter((word) => word.startsWith('--'))
const files = [...filesBelow('packages', isTest), ...filesBelow('scripts', isTest)].filter(
  (path) => !path.startsWith('packages/interop/') && (patterns.length === 0 || patterns.some((pattern) => path.includes(pattern))),
)

function isTest(path: string): boolean {
  return path.endsWith('.test.ts')
}

if (files.length === 0) {
  console.error(`npm test: no test file's path contains ${patterns.join(' or ')}`)
  process.exitCode = 1
} else {
  const { status, signal } = spawnSync(
    process.execPath,
    // Two files at a time: some of them start processes of their own.
    ['--conditions=@heddle/source', '--test', '--test-concurrency=2', '--test-timeout=120000', ...flags, ...files],
    { cwd: root, stdio: 'inherit' },
  )
  process.exitCode = signal === null ? (status ?? 1) : 1
}
