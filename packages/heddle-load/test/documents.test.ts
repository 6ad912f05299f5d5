import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readCommand } from '../src/cli-options.ts'
import { loadScenario, run as load } from '../src/index.ts'
import { makePlan } from '../src/make-plan.ts'
import { parseThreshold } from '../src/threshold.ts'
import { answer, rawServer } from './servers.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'heddle-load-docs-'))
after(() => rmSync(folder, { recursive: true }))
const documents = ['README.md', 'docs/load.md', 'packages/heddle-load/README.md']

/** The words of a shell's line. */
function wordsOf(line: string): string[] {
  return [...line.replace(/ #.*$/, '').matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? (plain as string))
}

for (const path of documents) {
  test(`commands in ${path} can be followed`, () => {
    const commands = readFileSync(join(root, path), 'utf8')
      .split('\n')
      .flatMap((line) => /^(?:npx heddle-load|npm run load --) (.*)$/.exec(line)?.[1] ?? [])
    ok(commands.length >= 1, 'there is one')
    for (const command of commands) {
      const words = wordsOf(command).map((word) => (word.endsWith('load.yaml') ? join(root, 'examples/load.yaml') : word))
      const read = readCommand(words)
      ok(read.name === 'run', command)
      makePlan(read.options, read.nameOf)
      for (const rule of read.options.failIf ?? []) parseThreshold(rule)
    }
  })
}

test('the scenario in docs/load.md is one', () => {
  const text = /^```yaml\n([^]*?)^```/m.exec(readFileSync(join(root, 'docs/load.md'), 'utf8'))?.[1] as string
  const path = join(folder, 'load.yaml')
  writeFileSync(path, text)
  const { url, headers, requests } = loadScenario(path)
  equal(makePlan({ url, headers, requests }).requests.length, 2)
})

test('every rule in docs/load.md is one', () => {
  const section = /^## Thresholds\n([^]*?)^\| exit status/m.exec(readFileSync(join(root, 'docs/load.md'), 'utf8'))?.[1] as string
  const rules = [...section.matchAll(/`([a-z0-9.]+(?:>=|<=|>|<)[^`]+)`/g)].map(([, rule]) => rule as string)
  ok(rules.length >= 10, String(rules))
  for (const rule of rules) equal(parseThreshold(rule).text, rule)
})

test('every option of the program is in docs/load.md', () => {
  const text = readFileSync(join(root, 'docs/load.md'), 'utf8')
  const source = readFileSync(join(root, 'packages/heddle-load/src/cli-options.ts'), 'utf8')
  const table = /const words = \{([^]*?)\} as const/.exec(source)?.[1] ?? ''
  const names = [...table.matchAll(/^ {2}'?([a-z-]+)'?:/gm)].map(([, name]) => name as string)
  for (const name of names.filter((one) => !['help', 'version'].includes(one))) match(text, new RegExp(`--${name}\\b`), name)
})

test('examples/load.yaml is followed', async () => {
  const paths: string[] = []
  const server = await rawServer((exchange, { head, body }) => {
    paths.push(`${head.method} ${head.path} ${body.length}`)
    answer(exchange, 200, 'x')
  })
  const { headers, requests } = loadScenario(join(root, 'examples/load.yaml'))
  const result = await load({ url: `http://127.0.0.1:${server.port}`, headers, requests, count: 60 })
  equal(result.requests.succeeded, 60)
  deepEqual([...new Set(paths)].toSorted(), ['GET / 0', 'GET /search?q=heddle 0', 'POST /upload 16384'])
  await server.close({ deadline: 0 })
})

test('examples/load-check.ts says that all is fine, or not', async () => {
  const server = await rawServer((exchange, { head }) => answer(exchange, head.path === '/' ? 200 : 404, 'x'))
  const url = `http://127.0.0.1:${server.port}/`
  const example = (path: string) => run(process.execPath, ['--conditions=@heddle/source', join(root, 'examples/load-check.ts'), url + path])
  const { stdout, stderr } = await example('')
  match(stdout, /\nfine: errors>0 \(errors is 0\)\n$/)
  equal(stderr, '')
  const failed = await example('none').then(
    () => undefined,
    (error: { code: number; stdout: string }) => error,
  )
  equal(failed?.code, 1)
  match(failed?.stdout ?? '', /\ntoo bad: errors>0 \(errors is 400\)\n$/)
  await server.close({ deadline: 0 })
})
