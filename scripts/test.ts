/**
 * Runs every test that needs only Node: `npm test [-- PATTERN…]`. A pattern keeps the test files
 * whose path contains it. `--again` gives files that fail a second chance, alone.
 */
import { join } from 'node:path'
import { runTests } from './run-tests.ts'
import { filesBelow, root } from './sources.ts'

const words = process.argv.slice(2)
const patterns = words.filter((word) => !word.startsWith('--'))
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
  const paths = files.map((path) => join(root, path))
  process.exitCode = runTests(paths, 120_000, words)
}
