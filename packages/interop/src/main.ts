/**
 * `npm run test:interop [-- PATTERN…]`: installs the programs the tests talk to, then runs the test files
 * whose names contain a pattern, or all of them. `--install` stops after the first, `--again` gives files that fail a second
 * chance, alone.
 */
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { runTests } from '../../../scripts/run-tests.ts'
import { tool, tools } from './tools.ts'

const words = process.argv.slice(2)
const patterns = words.filter((word) => !word.startsWith('--'))
const folder = fileURLToPath(new URL('../test/', import.meta.url))
const files = readdirSync(folder)
  .filter((file) => file.endsWith('.test.ts') && (patterns.length === 0 || patterns.some((pattern) => file.includes(pattern))))
  .toSorted()
  .map((file) => folder + file)

if (files.length === 0) {
  console.error(`test:interop: no file of ${folder} has ${patterns.join(' or ')} in its name`)
  process.exitCode = 1
} else {
  try {
    // With a pattern the files themselves ask for what they need.
    if (patterns.length === 0 || words.includes('--install')) for (const name of tools) tool(name)
    if (!words.includes('--install')) {
      process.exitCode = runTests(
        files,
        300_000,
        words.filter((word) => word !== '--install'),
      )
    }
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  }
}
